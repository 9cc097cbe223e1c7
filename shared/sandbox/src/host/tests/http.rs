//! The HTTP API without a network: keys, bodies, answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Request};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::fake_isolation::{Counts, FakeIsolation};
use crate::host::{ApiKey, HostConfig, SandboxHost, router};
use crate::isolation::IsolationError;

struct Api {
    host: Arc<SandboxHost>,
    counts: Arc<Counts>,
    key: Option<&'static str>,
}

impl Api {
    fn new(config: HostConfig) -> Self {
        let (host, counts) = FakeIsolation::default().host(config);
        Self { host, counts, key: None }
    }

    async fn send(&self, request: Request<Body>) -> (u16, HeaderMap, Value) {
        let response = router(Arc::clone(&self.host)).oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 1 << 24).await.unwrap();
        let value = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"));
        (parts.status.as_u16(), parts.headers, value)
    }

    async fn call(&self, method: &str, path: &str, body: impl Into<Body>) -> (u16, HeaderMap, Value) {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(key) = self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, response) = self.call("POST", path, body.to_string()).await;
        (status, response)
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let (status, _, response) = self.call("GET", path, Body::empty()).await;
        (status, response)
    }

    async fn create_sandbox(&self) -> String {
        let (status, response) =
            self.post("/api/sandboxes", &json!({ "priority": 3, "preemptable": true })).await;
        assert_eq!(status, 200, "{response}");
        response["sandboxId"].as_str().unwrap().to_owned()
    }
}

/// Returns the detail of an error, which has nothing else but a code.
fn detail(response: &Value) -> &str {
    let fields = response.as_object().unwrap();
    assert_eq!(fields.len(), 2, "{response}");
    assert!(fields["code"].as_str().and_then(bench_domain::Code::from_name).is_some(), "{response}");
    let detail = fields["detail"].as_str().unwrap();
    assert!(!detail.is_empty() && detail.len() < 400, "{detail}");
    detail
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_is_created_used_and_ended() {
    let api = Api::new(HostConfig::with_slots(2));
    let id = api.create_sandbox().await;
    let path = format!("/api/sandboxes/{id}");
    let (status, shown) = api.get(&path).await;
    assert_eq!(status, 200);
    assert_eq!(
        (&shown["status"], &shown["priority"], &shown["isolation"]),
        (&json!("running"), &json!(3), &json!("fake"))
    );
    let (status, done) = api.post(&format!("{path}/exec"), &json!({ "command": "echo é" })).await;
    assert_eq!(status, 200);
    assert_eq!(
        (&done["stdout"], &done["stderr"], &done["exitCode"]),
        (&json!("echo é"), &json!("\u{fffd}\u{fffd}"), &json!(0))
    );
    let (status, done) = api
        .post(
            &format!("{path}/exec"),
            &json!({ "command": "sleep 1000", "timeoutMs": 1_000, "env": null, "cwd": null }),
        )
        .await;
    assert_eq!((status, &done["exitCode"], &done["timedOut"]), (200, &json!(124), &json!(true)));
    let file = json!({ "path": "a/b.txt", "content": "x\u{0}é" });
    let (status, written) = api.post(&format!("{path}/files/write"), &file).await;
    assert_eq!((status, &written["bytes"]), (200, &json!(4)));
    assert_eq!(api.counts.all.lock().unwrap()[0].file("a/b.txt").unwrap(), "x\0é".as_bytes());
    let (status, stats) = api.get(&format!("/api/sandboxes/stats?ids=nope,%20{id}")).await;
    assert_eq!((status, stats.as_array().unwrap().len(), &stats[0]["sandbox_id"]), (200, 1, &json!(id)));
    let (status, refused) = api.post(&format!("{path}/agent/run"), &json!({ "agent": "codex" })).await;
    assert!(status == 501 && detail(&refused).contains("no coding agents"), "{refused}");
    let (status, _, ended) = api.call("POST", &format!("{path}/terminate"), Body::empty()).await;
    assert_eq!((status, &ended["status"]), (200, &json!("terminated")));
    for (method, rest) in [
        ("GET", ""),
        ("POST", "/terminate"),
        ("POST", "/exec"),
        ("POST", "/files/write"),
        ("POST", "/agent/run"),
    ] {
        let (status, _, response) = api.call(method, &format!("{path}{rest}"), "{}").await;
        assert!(status == 404 && detail(&response).contains(&id), "{rest}: {status} {response}");
    }
    assert_eq!(api.counts.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn requests_without_the_key_are_rejected() {
    let mut api = Api::new(HostConfig { key: ApiKey::new("right-key"), ..HostConfig::with_slots(1) });
    for (method, path) in [
        ("GET", "/api/resources"),
        ("GET", "/api/sandboxes/stats"),
        ("GET", "/api/metrics/timeseries"),
        ("POST", "/api/sandboxes"),
        ("GET", "/api/sandboxes/x"),
        ("POST", "/api/sandboxes/x/exec"),
        ("DELETE", "/api/sandboxes/x"),
        ("GET", "/elsewhere"),
    ] {
        for key in [None, Some(""), Some("wrong"), Some("right-key2"), Some("right-ke")] {
            api.key = key;
            let (status, headers, response) = api.call(method, path, "{}").await;
            assert_eq!(
                (status, &headers["www-authenticate"]),
                (401, &"Bearer".parse().unwrap()),
                "{path} {key:?}"
            );
            assert!(!detail(&response).contains("right"));
        }
    }
    for headers in
        [&["Basic right-key"][..], &["right-key"], &["Bearer"], &["Bearer right-key", "Bearer right-key"]]
    {
        let mut request = Request::builder().uri("/api/resources");
        for header in headers {
            request = request.header("authorization", *header);
        }
        assert_eq!(api.send(request.body(Body::empty()).unwrap()).await.0, 401, "{headers:?}");
    }
    api.key = Some("right-key");
    assert_eq!(api.get("/api/resources").await.0, 200);
    let request = Request::builder().uri("/api/resources").header("authorization", "bearer  right-key ");
    assert_eq!(api.send(request.body(Body::empty()).unwrap()).await.0, 200);
    assert_eq!(api.counts.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn invalid_requests_are_rejected_and_change_nothing() {
    let api = Api::new(HostConfig::with_slots(1));
    for (body, status) in [
        ("", 422),
        ("{", 422),
        ("[]", 422),
        ("null", 422),
        ("\"x\"", 422),
        ("\u{0}\u{1}", 422),
        (r#"{"priority": "high"}"#, 422),
        (r#"{"priority": 4}"#, 422),
        (r#"{"priority": -1}"#, 422),
        (r#"{"priority": 1.5}"#, 422),
        (r#"{"preemptable": 1}"#, 422),
        (r#"{"priority": 1, "priority": 2}"#, 422),
        (r#"{"upstream": {}}"#, 422),
        (r#"{"enableDockerSocket": true, "upstream": "tcp://engine"}"#, 501),
    ] {
        let (got, _, response) = api.call("POST", "/api/sandboxes", body).await;
        assert_eq!(got, status, "{body}: {response}");
        detail(&response);
    }
    let (status, _, _) = api.call("POST", "/api/sandboxes", vec![0xff_u8, 0xfe]).await;
    assert_eq!((status, api.counts.alive()), (422, 0));
    let (status, made) =
        api.post("/api/sandboxes", &json!({ "enableDockerSocket": false, "more": [1] })).await;
    assert_eq!((status, &made["priority"], &made["preemptable"]), (200, &json!(2), &json!(false)));
    let path = format!("/api/sandboxes/{}", made["sandboxId"].as_str().unwrap());
    let long = "x".repeat(128 * 1024);
    let many: serde_json::Map<_, _> = (0..257).map(|n| (format!("V{n}"), json!(""))).collect();
    for body in [
        json!({}),
        json!({ "command": "" }),
        json!({ "command": " \n" }),
        json!({ "command": ["ls"] }),
        json!({ "command": "a\u{0}b" }),
        json!({ "command": long }),
        json!({ "command": "x", "timeoutMs": 0 }),
        json!({ "command": "x", "timeoutMs": -5 }),
        json!({ "command": "x", "timeoutMs": "5" }),
        json!({ "command": "x", "cwd": "a\u{0}" }),
        json!({ "command": "x", "cwd": "y".repeat(5_000) }),
        json!({ "command": "x", "env": { "": "1" } }),
        json!({ "command": "x", "env": { "A=B": "1" } }),
        json!({ "command": "x", "env": { "A": "\u{0}" } }),
        json!({ "command": "x", "env": { "A": 1 } }),
        json!({ "command": "x", "env": { "A": long } }),
        json!({ "command": "x", "env": many }),
    ] {
        let (status, response) = api.post(&format!("{path}/exec"), &body).await;
        assert_eq!(status, 422, "{response}");
        detail(&response);
    }
    for (body, expected) in [
        (json!({ "path": "x" }), 422),
        (json!({ "path": "", "content": "" }), 422),
        (json!({ "path": "a\u{0}", "content": "" }), 422),
        (json!({ "path": "../x", "content": "" }), 422),
        (json!({ "path": "full", "content": "" }), 409),
        (json!({ "path": "x", "content": 5 }), 422),
    ] {
        let (status, response) = api.post(&format!("{path}/files/write"), &body).await;
        assert_eq!(status, expected, "{response}");
        detail(&response);
    }
    let (status, response) = api.post(&format!("{path}/exec"), &json!({ "command": "fail" })).await;
    assert!(status == 500 && detail(&response).contains("no process"), "{response}");
    for path in [
        "/api/metrics/timeseries?hours=0",
        "/api/metrics/timeseries?hours=49",
        "/api/metrics/timeseries?hours=x",
    ] {
        let (status, response) = api.get(path).await;
        assert!(status == 422 && detail(&response).contains("hours"), "{path}");
    }
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/api/sandboxes", 405),
        ("DELETE", "/api/sandboxes/x", 405),
        ("GET", "/api/sandboxes/%00%ff/exec", 405),
        ("GET", "/api/sandboxes/..%2f..%2fetc", 404),
    ] {
        let (got, _, response) = api.call(method, path, Body::empty()).await;
        assert_eq!(got, status, "{path}");
        detail(&response);
    }
    assert!(api.counts.commands.lock().unwrap().iter().all(|exec| exec.command == "fail"));
}

#[tokio::test(start_paused = true)]
async fn the_length_and_time_of_bodies_are_limited() {
    let config = HostConfig { body_bytes_max: 1_000, ..HostConfig::with_slots(1) };
    let api = Api::new(config);
    let id = api.create_sandbox().await;
    let path = format!("/api/sandboxes/{id}/files/write");
    let file = json!({ "path": "x", "content": "y".repeat(1_000) }).to_string();
    let (status, _, response) = api.call("POST", &path, file.clone()).await;
    assert!(status == 413 && detail(&response).contains("1000 bytes"), "{response}");
    // The same without a Content-Length header.
    let pieces = stream::iter([Ok::<_, std::io::Error>(Bytes::from(file))]);
    assert_eq!(api.call("POST", &path, Body::from_stream(pieces)).await.0, 413);
    let breaks = stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]);
    assert_eq!(api.call("POST", &path, Body::from_stream(breaks)).await.0, 400);
    let never = stream::pending::<Result<Bytes, std::io::Error>>();
    let (late, _, response) = api.call("POST", &path, Body::from_stream(never)).await;
    assert!(late == 408 && detail(&response).contains("60 s"), "{response}");
}

/// Returns a body that sends this number of bytes at once, then nothing.
fn stalling(bytes: usize) -> Body {
    let begun = stream::iter([Ok::<_, std::io::Error>(Bytes::from(vec![b' '; bytes]))]);
    Body::from_stream(begun.chain(stream::pending()))
}

#[tokio::test(start_paused = true)]
async fn stalled_bodies_do_not_block_others() {
    let api = Api::new(HostConfig::with_slots(1));
    let id = api.create_sandbox().await;
    let before = tokio::time::Instant::now();
    let slow = (0..64).map(|_| api.call("POST", "/api/sandboxes", stalling(100)));
    let others = async {
        for _ in 0..10 {
            let command = json!({ "command": "x" });
            assert_eq!(api.post(&format!("/api/sandboxes/{id}/exec"), &command).await.0, 200);
            let file = json!({ "path": "x", "content": "y".repeat(1 << 20) });
            assert_eq!(api.post(&format!("/api/sandboxes/{id}/files/write"), &file).await.0, 200);
        }
        before.elapsed()
    };
    let (slow, waited) = tokio::join!(futures_util::future::join_all(slow), others);
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    assert!(slow.iter().all(|(status, _, _)| *status == 408));
}

#[tokio::test(start_paused = true)]
async fn the_memory_of_bodies_is_limited() {
    let config =
        HostConfig { body_bytes_max: 1 << 20, bodies_bytes_max: 1 << 20, ..HostConfig::with_slots(1) };
    let api = Api::new(config);
    let id = api.create_sandbox().await;
    let path = format!("/api/sandboxes/{id}/files/write");
    let large = json!({ "path": "x", "content": "y".repeat(500 << 10) });
    let slow = api.call("POST", &path, stalling(900 << 10));
    let others = async {
        let (status, headers, response) = api.call("POST", &path, large.to_string()).await;
        assert_eq!((status, &headers["retry-after"]), (503, &"10".parse().unwrap()));
        assert!(detail(&response).contains("try again"), "{response}");
        let small = json!({ "path": "x", "content": "y".repeat(50 << 10) });
        assert_eq!(api.post(&path, &small).await.0, 200, "small bodies never wait");
    };
    let ((late, _, _), ()) = tokio::join!(slow, others);
    assert_eq!(late, 408);
    assert_eq!(api.post(&path, &large).await.0, 200, "the memory is free again");
}

#[tokio::test(start_paused = true)]
async fn a_body_without_the_key_is_not_read() {
    let api = Api::new(HostConfig { key: ApiKey::new("right-key"), ..HostConfig::with_slots(1) });
    let read = Arc::new(AtomicBool::new(false));
    let reading = Arc::clone(&read);
    let body = stream::poll_fn(move |_| {
        reading.store(true, Ordering::Relaxed);
        Poll::<Option<Result<Bytes, std::io::Error>>>::Pending
    });
    assert_eq!(api.call("POST", "/api/sandboxes", Body::from_stream(body)).await.0, 401);
    assert!(!read.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn retryable_errors_say_when_to_retry() {
    let api = Api::new(HostConfig::with_slots(1));
    let id = api.create_sandbox().await;
    *api.counts.all.lock().unwrap()[0].cores.lock().unwrap() = Some(1.0);
    let before = tokio::time::Instant::now();
    let (status, headers, response) = api.call("POST", "/api/sandboxes", r#"{"priority": 3}"#).await;
    assert_eq!((status, &headers["retry-after"]), (503, &"5".parse().unwrap()));
    assert_eq!(before.elapsed(), Duration::from_secs(20));
    assert!(detail(&response).contains("slot is in use"));
    api.host.terminate(&id).await.unwrap();
    let failure = IsolationError::Unsafe("no landlock".to_owned());
    let (host, counts) =
        FakeIsolation { failure: Some(failure), ..FakeIsolation::default() }.host(HostConfig::with_slots(1));
    let api = Api { host, counts, key: None };
    let (status, headers, response) = api.call("POST", "/api/sandboxes", "{}").await;
    assert_eq!((status, headers.get("retry-after")), (501, None));
    assert_eq!(detail(&response), "This machine cannot keep programs apart: no landlock.");
}

#[tokio::test(start_paused = true)]
async fn resources_have_all_fields() {
    let api = Api::new(HostConfig::with_slots(2));
    api.create_sandbox().await;
    let (_, resources) = api.get("/api/resources").await;
    for field in [
        "canCreateSandbox",
        "rejectReason",
        "limits",
        "priorityBreakdown",
        "cpu_percent",
        "memory_percent",
        "memory_total_gb",
        "memory_available_gb",
        "disk_used_ratio",
        "cpuCount",
        "load1",
        "load5",
        "load15",
        "memoryTotalBytes",
        "memoryUsedBytes",
        "memoryAvailableBytes",
        "diskTotalBytes",
        "diskUsedBytes",
        "diskFreeBytes",
        "diskUsedRatio",
    ] {
        assert!(resources.get(field).is_some(), "{field}");
    }
    assert_eq!(resources["canCreateSandbox"], true);
    assert_eq!(resources["priorityBreakdown"], json!({ "critical": 0, "high": 0, "normal": 0, "low": 1 }));
    assert_eq!(
        resources["isolation"],
        json!({ "form": "fake", "holds": ["nothing at all"], "lacks": ["It holds nothing."] })
    );
    assert_eq!(
        (&resources["limits"]["slots"], &resources["limits"]["outputBytes"]),
        (&json!(2), &json!(1 << 20))
    );
    assert_eq!((&resources["slotsUsed"], &resources["waiting"]), (&json!(1), &json!(0)));
    api.create_sandbox().await;
    let (_, resources) = api.get("/api/resources").await;
    assert_eq!(
        (&resources["canCreateSandbox"], &resources["rejectReason"]),
        (&json!(false), &json!("All 2 slots are in use."))
    );
}
