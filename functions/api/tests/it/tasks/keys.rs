//! Keys of callers: taken from the header or, where allowed, from the address; never shown, logged or stored in clear.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bench_domain::Code;
use bench_domain::run::{AuthMode, Owner};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::support::task_zip;
use crate::server::{Reply, Server};

const PLANTED: &str = "sk-or-planted-5f1d9c";

/// Collects what the process writes to its log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

fn contains(bytes: &[u8]) -> bool {
    bytes.windows(PLANTED.len()).any(|part| part == PLANTED.as_bytes())
}

fn assert_not_in_folder(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_not_in_folder(&path);
        } else if let Ok(bytes) = std::fs::read(&path) {
            assert!(!contains(&bytes), "{}", path.display());
        }
    }
}

fn assert_not_echoed(reply: &Reply) {
    assert!(!reply.text.contains(PLANTED), "{}", reply.text);
    for (name, value) in &reply.headers {
        assert!(!contains(value.as_bytes()), "{name}");
    }
}

#[tokio::test]
async fn a_planted_key_is_nowhere() {
    let log = Log::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    // The tests of this process run on threads of their own, each with its own log.
    // With a single subscriber in the process, places that another test reaches first would stay silent for ours.
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let guard = tracing::subscriber::set_default(subscriber);
    let server = Server::local().await;
    let task = server.task("a", 2).await;
    let key = format!("openrouter_api_key={PLANTED}");
    let escaped = format!("openrouter%5Fapi%5Fkey={}", PLANTED.replace('-', "%2D"));
    for key in [&key, &escaped] {
        for (method, path) in [
            ("POST", format!("/api/tasks?{key}&num_runs=0")),
            ("POST", format!("/api/tasks/x/execute-async?{key}&timeout_seconds=y")),
            ("POST", format!("/api/tasks/{task}/execute-async?timeout_seconds=1200&{key}")),
            ("POST", format!("/api/tasks/{task}/execute-async?{key}")),
            ("POST", format!("/api/tasks/{task}/execute-one?{key}&timeout_seconds=1")),
            ("POST", format!("/api/tasks/{task}/execute-async/?{key}")),
            ("POST", format!("/api/tasks/99/start?{key}")),
            ("GET", format!("/api/tasks?{key}&limit=0")),
            ("GET", format!("/api/runs?{key}&limit=-1")),
            ("GET", format!("/api/nothing?{key}")),
            ("PUT", format!("/api/tasks?{key}")),
        ] {
            assert_not_echoed(&server.ask(method, &path, &[], "").await);
        }
    }
    let bad = format!("openrouter_api_key={PLANTED}%20with%20spaces");
    let invalid = server.post(&format!("/api/tasks/{task}/execute-one?{bad}"), &[]).await;
    assert_eq!(invalid.problems(), ["value_error"]);
    assert_not_echoed(&invalid);
    let header = format!("Bearer {PLANTED}");
    let sent = [("authorization", header.as_str())];
    assert_not_echoed(&server.post(&format!("/api/tasks/{task}/execute-one?timeout_seconds=1"), &sent).await);
    let body = json!({ "tasks": [task], "agent": "oracle" });
    for path in ["/api/runs", "/api/runs/api"] {
        assert_not_echoed(&server.order(path, &sent, &body).await);
    }
    let view = server.get(&format!("/api/tasks/{task}")).await;
    assert_not_echoed(&view);
    for run in view.json()["run_ids"].as_array().unwrap() {
        assert_not_echoed(&server.get(&format!("/api/runs/{}", run.as_str().unwrap())).await);
    }
    drop(guard);
    let written = log.0.lock().unwrap().clone();
    assert!(!written.is_empty(), "the log was collected");
    assert!(!contains(&written), "the key is in the log");
    assert_not_in_folder(server.folder());
}

/// As the first runner's clients send it, to a server without a key of its own.
#[tokio::test]
async fn a_sent_key_pays_for_episodes_on_this_machine() {
    let server = Server::local().await;
    for (name, header) in [("query", None), ("header", Some(format!("Bearer {PLANTED}")))] {
        let query = format!("name={name}&agent=terminus-2&model=openrouter/openai/gpt-5.2&num_runs=2");
        let task = server.upload(&query, &[], &task_zip(name, &[])).await.json()["id"].as_u64().unwrap();
        let without = server.post(&format!("/api/tasks/{task}/execute-async"), &[]).await;
        assert_eq!(without.code(), Some(Code::ProviderNotConfigured), "{}", without.text);
        let path = format!("/api/tasks/{task}/execute-async");
        let reply = match &header {
            Some(header) => server.post(&path, &[("authorization", header)]).await,
            None => server.post(&format!("{path}?openrouter_api_key={PLANTED}"), &[]).await,
        };
        assert_eq!(reply.status, 200, "{}", reply.text);
        let run = server.last_run(task).await;
        let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
        assert_eq!((spec.auth, &spec.owner), (AuthMode::ApiKey, &Owner::Local), "{name}");
    }
}

#[tokio::test]
async fn an_exposed_server_takes_keys_in_addresses_only_if_its_operator_allows_it() {
    let admin = [("x-admin-secret", "hush")];
    let server = Server::new(false, &[]).await;
    let zip = task_zip("x", &[]);
    let refused = server.upload(&format!("name=x&openrouter_api_key={PLANTED}"), &admin, &zip).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (400, Some(Code::KeyInQuery)));
    assert!(refused.detail().contains("Authorization: Bearer"), "{}", refused.detail());
    assert_not_echoed(&refused);
    assert!(server.get("/api/tasks?openrouter_api_key=").await.code() == Some(Code::KeyInQuery));

    let server = Server::new(false, &[("BENCH_QUERY_KEYS", "true")]).await;
    server.list_with(bench_state::access::AccessKind::Key, PLANTED, |entry| entry.tasks = true).await;
    let accepted = server.upload(&format!("name=x&openrouter_api_key={PLANTED}"), &[], &zip).await;
    assert_eq!(accepted.status, 200, "{}", accepted.text);
    let other = [("authorization", "Bearer sk-other")];
    let listed = server.ask("GET", &format!("/api/tasks?openrouter_api_key={PLANTED}"), &other, "").await;
    assert_eq!(listed.json(), json!([]), "the header wins");
    let local = Server::new(true, &[("BENCH_QUERY_KEYS", "false")]).await;
    assert_eq!(local.get("/api/tasks?openrouter_api_key=k").await.status, 400);
}
