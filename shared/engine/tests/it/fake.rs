//! A scripted engine on a Unix socket, and a proxy in front of it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bench_engine::{Engine, NetworkPolicy, Owner, ProbeOptions, Proxy, SandboxRules, SharedFolder, probe};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

/// Full id of the sandbox's own container, and of one of another sandbox.
pub(crate) const OWN: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
pub(crate) const FOREIGN: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A request that reached the engine.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) address: String,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// A scripted engine with a proxy of the sandbox `s1`.
pub(crate) struct World {
    pub(crate) proxy: Option<Proxy>,
    pub(crate) engine: Engine,
    pub(crate) workspace: PathBuf,
    received: Arc<Mutex<Vec<Received>>>,
    _folder: TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(|rules| rules.network = NetworkPolicy::Unfiltered).await
    }

    /// Starts an engine and a proxy with changed rules.
    pub(crate) async fn with(change: impl FnOnce(&mut SandboxRules)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("engine.sock");
        let received = Arc::new(Mutex::new(Vec::new()));
        let listener = UnixListener::bind(&socket).unwrap();
        tokio::spawn(serve(listener, Arc::clone(&received)));
        let options = ProbeOptions {
            docker_host: Some(format!("unix://{}", socket.display())),
            path: "/nonexistent".into(),
            ..ProbeOptions::new(folder.path().join("run"))
        };
        let engine = probe(&options).await.unwrap();
        received.lock().unwrap().clear();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let mut rules = SandboxRules::new(Owner::new("i1", "s1").unwrap());
        rules.folders =
            vec![SharedFolder { seen: "/workspace".into(), host: workspace.clone(), writable: false }];
        change(&mut rules);
        let proxy = Proxy::start(&engine, &folder.path().join("proxy.sock"), rules).unwrap();
        Self { proxy: Some(proxy), engine, workspace, received, _folder: folder }
    }

    /// Sends a request with a JSON body through the proxy, and returns status and body.
    pub(crate) async fn send(&self, method: &str, address: &str, body: &Value) -> (u16, String) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send_raw(method, address, "", body.as_bytes()).await
    }

    /// Sends a request with additional lines in its head.
    pub(crate) async fn send_raw(
        &self,
        method: &str,
        address: &str,
        head: &str,
        body: &[u8],
    ) -> (u16, String) {
        let head = format!(
            "{method} {address} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n{head}Content-Length: {}\r\n\r\n",
            body.len()
        );
        let response =
            exchange(self.proxy.as_ref().unwrap().socket(), &[head.as_bytes(), body].concat()).await;
        let status = response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = response.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        (status, body)
    }

    /// Returns the requests that reached the engine since the last call, other than those that read.
    pub(crate) fn changes(&self) -> Vec<Received> {
        let all = std::mem::take(&mut *self.received.lock().unwrap());
        all.into_iter().filter(|request| request.method != "GET").collect()
    }

    /// Returns all requests that reached the engine since the last call.
    pub(crate) fn received(&self) -> Vec<Received> {
        std::mem::take(&mut *self.received.lock().unwrap())
    }
}

/// Sends bytes and returns everything that comes back.
pub(crate) async fn exchange(socket: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8_lossy(&response).into_owned()
}

async fn serve(listener: UnixListener, received: Arc<Mutex<Vec<Received>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let received = Arc::clone(&received);
        tokio::spawn(async move {
            let _ = answer(stream, received).await;
        });
    }
}

async fn answer(mut stream: UnixStream, received: Arc<Mutex<Vec<Received>>>) -> std::io::Result<()> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    let end = loop {
        let read = stream.read(&mut buffer).await?;
        bytes.extend_from_slice(&buffer[..read]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if read == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut body = bytes.split_off(end);
    let lower = head.to_ascii_lowercase();
    let length =
        lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    let is_chunked = lower.contains("transfer-encoding: chunked");
    loop {
        let is_complete = match length {
            Some(length) => body.len() >= length,
            None => !is_chunked || body.ends_with(b"0\r\n\r\n"),
        };
        if is_complete {
            break;
        }
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        body.extend_from_slice(&buffer[..read]);
    }
    let mut words = head.split(' ').map(str::to_owned);
    let (method, address) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let hijacks = lower.contains("upgrade: tcp");
    received.lock().unwrap().push(Received { method: method.clone(), address: address.clone(), head, body });
    if hijacks {
        stream
            .write_all(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nready\n")
            .await?;
        // Echoes until the client has no more input.
        let (mut reader, mut writer) = stream.split();
        tokio::io::copy(&mut reader, &mut writer).await?;
        return writer.shutdown().await;
    }
    let (status, value) = respond(&method, &address);
    let text = if value.is_null() { String::new() } else { format!("{value}\n") };
    let response = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(response.as_bytes()).await?;
    if method != "HEAD" {
        stream.write_all(text.as_bytes()).await?;
    }
    stream.shutdown().await
}

/// Returns the labels of an object of a sandbox.
pub(crate) fn labels(sandbox: &str) -> Value {
    json!({ "bench-runner.instance": "i1", "bench-runner.sandbox": sandbox })
}

fn respond(method: &str, address: &str) -> (u16, Value) {
    let path = address.split('?').next().unwrap_or_default();
    let path = path.strip_prefix("/v1.41").unwrap_or(path);
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let owner = |name: &str| match name {
        "own" | "aaaa" | "bench-i1-s1" | OWN => Some((OWN, labels("s1"))),
        "foreign" | "bbbb" | FOREIGN => Some((FOREIGN, labels("s2"))),
        "host" => Some(("cccc", json!({}))),
        "instance2" => Some(("dddd", json!({ "bench-runner.instance": "i2", "bench-runner.sandbox": "s1" }))),
        _ => None,
    };
    let not_found = (404, json!({ "message": "no such object" }));
    let list = json!([
        { "Id": OWN, "Labels": labels("s1"), "Names": ["/own"] },
        { "Id": FOREIGN, "Labels": labels("s2"), "Names": ["/foreign"] },
        { "Id": "cccc", "Labels": null },
    ]);
    match (method, &parts[..]) {
        (_, ["_ping"]) => (200, json!("OK")),
        ("GET", ["version"]) => (200, json!({ "Version": "1.0", "ApiVersion": "1.41", "Components": [] })),
        ("GET", ["info"]) => (
            200,
            json!({ "OSType": "linux", "Driver": "overlay2", "CgroupVersion": "2", "DockerRootDir": "/secret" }),
        ),
        ("POST", ["images", "create"]) => (200, json!({ "status": format!("sha256:{}", "e".repeat(64)) })),
        ("POST", ["networks", "create"]) => (201, json!({ "Id": "new" })),
        ("POST", ["containers", "create"]) => (201, json!({ "Id": "f".repeat(64), "Warnings": [] })),
        ("POST", ["containers", _, "wait"]) => (200, json!({ "StatusCode": 0 })),
        ("GET", ["containers", "json"] | ["networks"]) => (200, list),
        ("GET", ["volumes"]) => (
            200,
            json!({ "Volumes": [
                { "Name": "own", "Labels": labels("s1") }, { "Name": "foreign", "Labels": labels("s2") },
            ]}),
        ),
        ("GET", ["images", "json"]) => (
            200,
            json!([
                { "Id": "1", "RepoTags": ["localhost/bench/s1/a:1", "localhost/bench/s2/b:1"], "Labels": null },
                { "Id": "2", "RepoTags": ["localhost/bench/s2/c:1"], "Labels": labels("s2") },
                { "Id": "3", "RepoTags": ["debian:bookworm"], "Labels": null },
                { "Id": "4", "RepoTags": null, "Labels": labels("s1") },
            ]),
        ),
        ("GET", ["containers", name, "json"]) => match owner(name) {
            Some((id, labels)) => (200, json!({ "Id": id, "Config": { "Labels": labels } })),
            None => not_found,
        },
        ("GET", ["networks", name]) => match owner(name) {
            Some((id, labels)) => (200, json!({ "Id": id, "Labels": labels })),
            None => not_found,
        },
        ("GET", ["volumes", name]) => match owner(name) {
            Some((_, labels)) => (200, json!({ "Name": name, "Labels": labels })),
            None => not_found,
        },
        ("GET", ["exec", id, "json"]) => match owner(id) {
            Some((container, _)) => (200, json!({ "ID": id, "ContainerID": container })),
            None => not_found,
        },
        ("GET", ["images", .., "json" | "history"]) => {
            if path.contains("absent") {
                return not_found;
            }
            let is_own = ["own-image", "bench/s1/"].iter().any(|part| path.contains(part));
            let labels = if is_own { labels("s1") } else { json!(null) };
            let triggers =
                if path.contains("trigger") { json!(["RUN --mount=type=bind id"]) } else { json!([]) };
            (
                200,
                json!({ "Id": "sha256:1", "RepoTags": ["localhost/bench/s2/x:1"], "Config": { "Labels": labels, "OnBuild": triggers } }),
            )
        }
        ("GET", ["events"]) => (200, json!({ "Actor": { "Attributes": labels("s2") } })),
        ("GET", ["containers", _, "logs"]) => (200, json!("x".repeat(100_000))),
        ("DELETE", ["containers", _]) => (204, json!(null)),
        ("DELETE", _) => (200, json!([])),
        ("POST", _) => (200, json!({})),
        ("HEAD" | "PUT", _) => (200, json!(null)),
        _ => not_found,
    }
}
