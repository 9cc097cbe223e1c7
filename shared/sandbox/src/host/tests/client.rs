//! The project's own client, over a real loopback connection.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bench_http_server::Limits;
use bench_sandy::{Sandy, SandyConfig, SandyError};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::not_isolated::NotIsolated;
use crate::host::{ApiKey, HostConfig, SandboxHost, router};

struct ServedHost {
    host: Arc<SandboxHost>,
    address: String,
    http: reqwest::Client,
}

async fn serve_host(config: HostConfig) -> ServedHost {
    serve_host_within(config, Limits::within_this_machine(100)).await
}

async fn serve_host_within(config: HostConfig, limits: Limits) -> ServedHost {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let host = SandboxHost::new(Arc::new(NotIsolated::default()), config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let routes = router(Arc::clone(&host));
    tokio::spawn(bench_http_server::serve(listener, routes, limits, std::future::pending()));
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    ServedHost { host, address, http }
}

impl ServedHost {
    fn sandy(&self, key: &str) -> Sandy {
        let config = SandyConfig::from_vars(|name| match name {
            "SANDY_BASE_URL" => Some(self.address.clone()),
            "SANDY_API_KEY" => Some(key.to_owned()),
            _ => None,
        });
        Sandy::new(config.unwrap())
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let url: Url = format!("{}{path}", self.address).parse().unwrap();
        let response = self.http.post(url).bearer_auth("k").json(body).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.json().await.unwrap()
    }
}

#[tokio::test]
async fn the_client_reads_resources_metrics_and_stats() {
    let config = HostConfig { key: ApiKey::new("k"), memory_reserve_bytes: 0, ..HostConfig::with_slots(2) };
    let served = serve_host(config).await;
    assert_eq!(served.sandy("wrong").resources().await, Err(SandyError::Status(401)));
    let made = served.post("/api/sandboxes", &json!({ "priority": 3, "preemptable": true })).await;
    let id = made["sandboxId"].as_str().unwrap().to_owned();
    let sandy = served.sandy("k");
    let resources = sandy.resources().await.unwrap();
    assert!(resources.can_create_sandbox && resources.reject_reason.is_none());
    assert_eq!((resources.priority_breakdown["low"], resources.limits["slots"]), (1, Some(2.0)));
    assert!(
        resources.disk_total_bytes.unwrap() > 0
            && resources.disk_used_ratio == resources.disk_used_ratio_camel_case
    );
    assert!(
        resources.memory_percent.is_some() && resources.cpu_count.is_some() && resources.load15.is_some()
    );
    let metrics = sandy.metrics(12).await.unwrap();
    assert!(metrics.len() == 1 && metrics[0].memory_ratio.is_some(), "{metrics:?}");
    let stats = sandy.sandboxes(std::slice::from_ref(&id)).await.unwrap();
    assert_eq!((stats.len(), &stats[0].sandbox_id, &stats[0].container_id), (1, &id, &None));
    assert!(stats[0].updated_at.is_some() && stats[0].memory_limit_bytes == Some(4 << 30));
    assert_eq!(sandy.sandboxes(&["another".to_owned()]).await.unwrap(), []);
    assert_eq!(sandy.sandboxes(&[]).await.unwrap().len(), 1);
    served.host.shut_down().await;
}

#[tokio::test]
async fn commands_run_as_real_processes() {
    let config = HostConfig {
        key: ApiKey::new("k"),
        memory_reserve_bytes: 0,
        output_bytes_max: 1_000,
        env: [("SANDY_FILES".to_owned(), "/files".to_owned())].into(),
        ..HostConfig::with_slots(1)
    };
    let served = serve_host(config).await;
    let made = served.post("/api/sandboxes", &json!({})).await;
    let path = format!("/api/sandboxes/{}", made["sandboxId"].as_str().unwrap());
    let run = async |command: &str| {
        let request = json!({ "command": command, "env": { "A": "b c" } });
        served.post(&format!("{path}/exec"), &request).await
    };
    let file = json!({ "path": "jobs/x/script.sh", "content": "cat; echo \"$A $SANDY_FILES\"; exit 3\n" });
    served.post(&format!("{path}/files/write"), &file).await;
    let done = run("bash jobs/x/script.sh").await;
    assert_eq!((&done["stdout"], &done["exitCode"]), (&json!("b c /files\n"), &json!(3)));
    let done = run("printf '\\377ok' >&2; head -c 5000 /dev/zero | tr '\\0' a").await;
    assert_eq!(done["stderr"], json!("\u{fffd}ok"));
    assert_eq!((done["stdout"].as_str().unwrap().len(), &done["droppedBytes"]), (1_000, &json!(4_000)));
    served.post(&format!("{path}/terminate"), &json!({})).await;
    served.host.shut_down().await;
}

#[tokio::test]
async fn slow_bodies_do_not_block_others() {
    let long = Duration::from_secs(600);
    let limits = Limits { body_stall_timeout: long, ..Limits::within_this_machine(100) };
    let config = HostConfig { body_timeout: long, memory_reserve_bytes: 0, ..HostConfig::with_slots(1) };
    let served = serve_host_within(config, limits).await;
    let made = served.post("/api/sandboxes", &json!({})).await;
    let path = format!("/api/sandboxes/{}/exec", made["sandboxId"].as_str().unwrap());
    let address = served.address.trim_start_matches("http://").to_owned();
    let mut slow = Vec::new();
    for _ in 0..32 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{{");
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    let request = json!({ "command": "echo quick" });
    let done = tokio::time::timeout(long / 4, served.post(&path, &request))
        .await
        .expect("the request is not blocked");
    assert_eq!(done["stdout"], json!("quick\n"));
    for stream in slow {
        let unanswered = stream.try_read(&mut [0]).unwrap_err();
        assert_eq!(unanswered.kind(), std::io::ErrorKind::WouldBlock);
    }
    served.host.shut_down().await;
}
