//! The HTTP API over real sandboxes, in every form that this machine allows.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bench_sandbox::host::{ApiKey, HostConfig, SandboxHost, router};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{TestForm, each_form, limits};

pub(crate) const KEY: &str = "a-key";

/// A host that serves its API.
pub(crate) struct TestServer {
    pub(crate) host: Arc<SandboxHost>,
    pub(crate) address: String,
    http: reqwest::Client,
}

impl TestServer {
    pub(crate) async fn start(form: &TestForm, slots: usize) -> Self {
        let config = HostConfig {
            limits: limits(),
            key: ApiKey::new(KEY),
            output_bytes_max: 64 << 10,
            ..HostConfig::with_slots(slots)
        };
        let host = SandboxHost::new(Arc::clone(form.isolation()), config);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let routes = router(Arc::clone(&host));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        Self { host, address, http }
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = self.http.request(method, format!("{}{path}", self.address)).bearer_auth(KEY);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call(Method::POST, path, Some(body)).await
    }

    async fn create_sandbox(&self, request: Value) -> String {
        let (status, answer) = self.post("/api/sandboxes", request).await;
        assert_eq!(status, 200, "{answer}");
        format!("/api/sandboxes/{}", answer["sandboxId"].as_str().unwrap())
    }

    async fn exec(&self, path: &str, command: &str) -> Value {
        let (status, answer) = self.post(&format!("{path}/exec"), json!({ "command": command })).await;
        assert_eq!(status, 200, "{command}: {answer}");
        answer
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_started_once_polled_and_harvested() {
    each_form(|form| async move {
        let server = TestServer::start(&form, 1).await;
        let path = server.create_sandbox(json!({ "priority": 3, "preemptable": true })).await;
        let script = "echo began >&2; python3 -c 'print(6 * 7)'; exit 3\n";
        let file = json!({ "path": "jobs/a-1/script.sh", "content": script });
        assert_eq!(server.post(&format!("{path}/files/write"), file).await.0, 200);
        let start = "cd jobs/a-1 && mkdir lock 2>/dev/null && { (setsid bash script.sh >out 2>err; echo $? >rc.tmp; mv rc.tmp rc) >/dev/null 2>&1 & }; echo asked";
        // Sent twice, as by a client whose first answer was lost.
        for _ in 0..2 {
            assert_eq!(server.exec(&path, start).await["stdout"], "asked\n");
        }
        let mut done = server.exec(&path, "cat jobs/a-1/rc").await;
        while done["exitCode"] != 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            done = server.exec(&path, "cat jobs/a-1/rc").await;
        }
        assert_eq!(done["stdout"], "3\n");
        let done = server.exec(&path, "cat jobs/a-1/out jobs/a-1/err; echo $SANDY_ISOLATION $SANDY_SANDBOX_ID").await;
        let id = path.rsplit_once('/').unwrap().1;
        assert_eq!(done["stdout"], format!("42\nbegan\n{} {id}\n", form.description().name));
        let (_, stats) = server.call(Method::GET, "/api/sandboxes/stats", None).await;
        assert_eq!((stats.as_array().unwrap().len(), &stats[0]["sandbox_id"]), (1, &json!(id)));
        assert_eq!(server.call(Method::POST, &format!("{path}/terminate"), None).await.0, 200);
        assert_eq!(server.call(Method::GET, &path, None).await.0, 404);
        server.host.shut_down().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_and_output_are_limited_and_commands_always_have_an_exit_code() {
    each_form(|form| async move {
        let server = TestServer::start(&form, 1).await;
        let path = server.create_sandbox(json!({})).await;
        let request = json!({ "command": "echo begun; sleep 600", "timeoutMs": 4_000 });
        let (_, done) = server.post(&format!("{path}/exec"), request).await;
        assert_eq!(
            (&done["exitCode"], &done["timedOut"], &done["stdout"]),
            (&json!(124), &json!(true), &json!("begun\n"))
        );
        let done =
            server.exec(&path, "head -c 20000000 /dev/zero | tr '\\0' x; printf '\\377' >&2; exit 7").await;
        assert_eq!((&done["exitCode"], &done["stderr"]), (&json!(7), &json!("\u{fffd}")));
        assert_eq!(done["stdout"].as_str().unwrap().len(), 64 << 10);
        assert_eq!(done["droppedBytes"], 20_000_000 - (64 << 10));
        assert_eq!(server.exec(&path, "kill -SEGV $$").await["exitCode"], 139);
        server.host.shut_down().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_stay_within_the_working_folder() {
    each_form(|form| async move {
        let server = TestServer::start(&form, 1).await;
        let path = server.create_sandbox(json!({})).await;
        let write = async |file: &str| {
            let (status, answer) = server
                .post(&format!("{path}/files/write"), json!({ "path": file, "content": "é\u{0}x" }))
                .await;
            assert!(status == 200 || answer["detail"].is_string(), "{answer}");
            status
        };
        assert_eq!((write("a/b/c.bin").await, write("/workspace/d").await), (200, 200));
        assert_eq!(
            server.exec(&path, "cat a/b/c.bin | od -An -tx1; cmp a/b/c.bin d").await["stdout"],
            " c3 a9 00 78\n"
        );
        assert_eq!((write("../x").await, write("/etc/passwd").await), (422, 422));
        server.exec(&path, "ln -s /etc out; mkdir folder").await;
        assert!([409, 422].contains(&write("out/x").await));
        assert!([409, 422].contains(&write("folder").await));
        server.host.shut_down().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_in_ended_sandboxes_fail_and_their_processes_are_gone() {
    each_form(|form| async move {
        let server = Arc::new(TestServer::start(&form, 1).await);
        let path = server.create_sandbox(json!({ "priority": 3, "preemptable": true })).await;
        let runs = {
            let (server, path) = (Arc::clone(&server), path.clone());
            tokio::spawn(async move {
                let request = json!({ "command": "touch here; sleep 600", "timeoutMs": 900_000 });
                server.post(&format!("{path}/exec"), request).await
            })
        };
        while server.exec(&path, "test -e here").await["exitCode"] != 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let urgent = server.create_sandbox(json!({ "priority": 0 })).await;
        let (status, answer) = runs.await.unwrap();
        assert_eq!(status, 404, "{answer}");
        assert_eq!(server.exec(&urgent, "ls").await["stdout"], "");
        // A sandbox whose programs kill everything they can still answers, or is gone; the host survives.
        let (status, _) =
            server.post(&format!("{urgent}/exec"), json!({ "command": "kill -9 -1; kill -9 $$" })).await;
        assert!([200, 404].contains(&status), "{status}");
        server.host.shut_down().await;
        let (status, answer) = server.post("/api/sandboxes", json!({})).await;
        assert!(status == 503 && answer["detail"].as_str().unwrap().contains("shut down"), "{answer}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_concurrent_sandboxes_share_the_slots() {
    each_form(|form| async move {
        let server = Arc::new(TestServer::start(&form, 2).await);
        let calls = (0..12).map(|n| {
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                let path = server.create_sandbox(json!({ "priority": n % 4 })).await;
                let done = server.exec(&path, &format!("echo {n} >x; cat x; ls")).await;
                assert_eq!(done["stdout"], format!("{n}\nx\n"));
                assert!(server.host.resources().slots_used <= 2);
                assert_eq!(server.call(Method::POST, &format!("{path}/terminate"), None).await.0, 200);
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
        assert_eq!((server.host.resources().slots_used, server.host.stats(None).await.len()), (0, 0));
        server.host.shut_down().await;
    })
    .await;
}
