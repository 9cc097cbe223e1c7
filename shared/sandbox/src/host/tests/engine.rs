//! Sandboxes with a container engine, on a scripted one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path as UrlPath, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get, post};
use axum::{Json, Router};
use bench_engine::{Limits, ProbeOptions};
use http::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::fake_isolation::{Counts, FakeIsolation};
use crate::host::{EngineConfig, HostConfig, HostError, NewSandbox, SandboxHost};

/// Containers of the scripted engine: their labels by id.
type Containers = Arc<Mutex<BTreeMap<String, Value>>>;

/// A scripted engine on a socket in a folder.
struct ScriptedEngine {
    containers: Containers,
    folder: TempDir,
}

impl ScriptedEngine {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("engine.sock")).unwrap();
        let containers = Containers::default();
        tokio::spawn(axum::serve(listener, routes(Arc::clone(&containers))).into_future());
        Self { containers, folder }
    }

    fn add(&self, id: &str, instance: &str, sandbox: &str) {
        let labels = json!({ "bench-runner.instance": instance, "bench-runner.sandbox": sandbox });
        self.containers.lock().unwrap().insert(id.to_owned(), labels);
    }

    fn ids(&self) -> Vec<String> {
        self.containers.lock().unwrap().keys().cloned().collect()
    }

    /// Creates a host whose engine is on this socket in the folder.
    fn host(&self, socket: &str) -> (Arc<SandboxHost>, Arc<Counts>) {
        let config = HostConfig { engine: Some(self.config(socket)), ..HostConfig::with_slots(2) };
        let isolation =
            FakeIsolation { engine_folder: Some(self.folder.path().to_owned()), ..Default::default() };
        isolation.host(config)
    }

    fn config(&self, socket: &str) -> EngineConfig {
        let address = format!("unix://{}", self.folder.path().join(socket).display());
        EngineConfig {
            folder: self.engines(),
            probe: ProbeOptions {
                docker_host: Some(address),
                path: "/nonexistent".into(),
                ..ProbeOptions::new("")
            },
            limits: Limits::default(),
            images: vec!["docker.io/".to_owned()],
            own_images: "docker.io/library/bench__".to_owned(),
            images_bytes_max: 1 << 30,
            allow_network: false,
        }
    }

    fn engines(&self) -> PathBuf {
        self.folder.path().join("engines")
    }

    /// Returns the folders of hosts.
    fn hosts(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.engines()).into_iter().flatten().flatten();
        let hosts = entries.filter(|entry| entry.path().join("alive").exists());
        hosts.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

fn routes(containers: Containers) -> Router {
    let empty_list = || async { Json(json!([])) };
    Router::new()
        .route("/_ping", any(|| async { "OK" }))
        .route("/version", get(|| async { Json(json!({ "Version": "9.1", "ApiVersion": "1.41" })) }))
        .route("/info", get(|| async { Json(json!({ "OSType": "linux", "CgroupVersion": "2" })) }))
        .route(
            "/images/create",
            post(|| async { Json(json!({ "status": format!("sha256:{}", "e".repeat(64)) })) }),
        )
        .route("/images/json", get(empty_list))
        .route("/images/{id}", delete(empty_list))
        .route("/images/{name}/json", get(|| async { Json(json!({ "Id": "sha256:1", "Config": {} })) }))
        .route("/networks", get(empty_list))
        .route("/volumes", get(|| async { Json(json!({ "Volumes": [] })) }))
        .route("/containers/create", post(create))
        .route("/containers/json", get(list))
        .route("/containers/{id}", delete(remove))
        .route("/containers/{id}/wait", post(|| async { Json(json!({ "StatusCode": 0 })) }))
        .route("/containers/{id}/{call}", any(|| async { StatusCode::NO_CONTENT }))
        .with_state(containers)
}

async fn create(State(containers): State<Containers>, Json(body): Json<Value>) -> Response {
    let mut containers = containers.lock().unwrap();
    let id = format!("{:064x}", containers.len() + 100);
    containers.insert(id.clone(), body["Labels"].clone());
    (StatusCode::CREATED, Json(json!({ "Id": id, "Warnings": [] }))).into_response()
}

async fn list(State(containers): State<Containers>) -> Json<Value> {
    let containers = containers.lock().unwrap();
    Json(containers.iter().map(|(id, labels)| json!({ "Id": id, "Labels": labels })).collect())
}

async fn remove(State(containers): State<Containers>, UrlPath(id): UrlPath<String>) -> StatusCode {
    containers.lock().unwrap().remove(&id).map_or(StatusCode::NOT_FOUND, |_| StatusCode::NO_CONTENT)
}

fn with_engine() -> NewSandbox {
    NewSandbox { enable_docker_socket: Some(true), ..NewSandbox::default() }
}

/// Creates a container through a sandbox's socket, and returns the response.
async fn create_container(socket: &Path, body: &Value) -> String {
    let body = body.to_string();
    let request = format!(
        "POST /containers/create HTTP/1.1\r\nHost: engine\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("timed out waiting for {what}");
}

#[tokio::test]
async fn a_sandbox_has_a_filtered_engine_until_it_ends() {
    let engine = ScriptedEngine::start();
    engine.add("machine", "other", "sb-1");
    let (host, counts) = engine.host("engine.sock");
    assert!(engine.hosts().is_empty() && host.resources().engine.name.is_none());
    let view = host.create(&with_engine()).await.unwrap();
    assert_eq!(view.engine.as_deref(), Some("docker 9.1"));
    let resources = host.resources().engine;
    assert_eq!((resources.name.as_deref(), resources.reason), (Some("docker"), None));
    assert_eq!(engine.hosts().len(), 1);
    let socket = counts.all.lock().unwrap()[0].place.clone().unwrap().socket;
    let refused =
        create_container(&socket, &json!({ "Image": "debian", "HostConfig": { "Privileged": true } })).await;
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("HostConfig.Privileged"), "{refused}");
    let made =
        create_container(&socket, &json!({ "Image": "debian", "HostConfig": { "NetworkMode": "none" } }))
            .await;
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    assert_eq!(engine.ids().len(), 2);
    let labels = engine.containers.lock().unwrap().values().next().cloned().unwrap();
    assert_eq!(labels["bench-runner.sandbox"], view.sandbox_id.as_str());
    // Others have none.
    let plain = host.create(&NewSandbox::default()).await.unwrap();
    assert_eq!((plain.engine, counts.all.lock().unwrap()[1].place.clone()), (None, None));
    host.terminate(&view.sandbox_id).await.unwrap();
    assert_eq!(engine.ids(), ["machine"]);
    assert!(!socket.exists());
    host.shut_down().await;
    assert_eq!((engine.ids(), engine.hosts()), (vec!["machine".to_owned()], Vec::new()));
}

#[tokio::test]
async fn without_an_engine_the_request_is_refused_with_the_reason() {
    let engine = ScriptedEngine::start();
    let (host, counts) = engine.host("absent.sock");
    for _ in 0..2 {
        let Err(HostError::Unavailable(reason)) = host.create(&with_engine()).await else { panic!() };
        assert!(
            reason.starts_with("The container engine at `") && reason.contains("can't connect"),
            "{reason}"
        );
        assert_eq!(host.resources().engine.reason, Some(reason));
    }
    assert_eq!(counts.alive(), 0);
    assert_eq!(engine.hosts(), Vec::<String>::new());
    host.create(&NewSandbox::default()).await.unwrap();
    host.shut_down().await;
    // A form without a place for the socket.
    let config = HostConfig { engine: Some(engine.config("engine.sock")), ..HostConfig::with_slots(1) };
    let (host, _) = FakeIsolation::default().host(config);
    let Err(HostError::Unavailable(reason)) = host.create(&with_engine()).await else { panic!() };
    assert!(reason.contains("cannot have a container engine"), "{reason}");
    host.shut_down().await;
    // A host that is configured to use none.
    let (host, _) = FakeIsolation::default().host(HostConfig::with_slots(1));
    let Err(HostError::Unavailable(reason)) = host.create(&with_engine()).await else { panic!() };
    assert!(reason.contains("configured to use no container engine"), "{reason}");
    host.shut_down().await;
}

#[tokio::test]
async fn an_engine_that_has_ended_is_no_full_host() {
    let engine = ScriptedEngine::start();
    let (host, counts) = engine.host("engine.sock");
    host.create(&with_engine()).await.unwrap();
    let (socket, away) = (engine.folder.path().join("engine.sock"), engine.folder.path().join("away"));
    std::fs::rename(&socket, &away).unwrap();
    let Err(HostError::Failed(reason)) = host.create(&with_engine()).await else { panic!() };
    assert!(reason.starts_with("The container engine doesn't answer, start it again: "), "{reason}");
    assert_eq!(counts.alive(), 1);
    std::fs::rename(&away, &socket).unwrap();
    host.create(&with_engine()).await.unwrap();
    host.shut_down().await;
}

#[tokio::test]
async fn the_next_host_removes_what_a_killed_one_left_and_nothing_else() {
    let engine = ScriptedEngine::start();
    engine.add("left-1", "dead", "sb-1");
    engine.add("left-2", "dead", "trial");
    engine.add("other", "living", "sb-1");
    engine.add("machine", "", "");
    for host in ["dead", "living"] {
        std::fs::create_dir_all(engine.engines().join(host)).unwrap();
        std::fs::write(engine.engines().join(host).join("alive"), "").unwrap();
    }
    let living = std::fs::File::open(engine.engines().join("living/alive")).unwrap();
    rustix::fs::flock(&living, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let (host, _) = engine.host("engine.sock");
    wait_until("the end of the dead host's folder", || !engine.hosts().contains(&"dead".to_owned())).await;
    assert_eq!(engine.ids(), ["machine", "other"]);
    host.shut_down().await;
    assert_eq!(
        (engine.ids(), engine.hosts()),
        (vec!["machine".to_owned(), "other".to_owned()], vec!["living".to_owned()])
    );
}
