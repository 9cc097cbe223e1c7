//! The API of the pretended engine, as far as it tells how commands ended.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// Name of the file that makes the engine list commands as Docker does: only as long as they run.
pub(crate) const LISTS_RUNNING: &str = "lists-running";

/// Serves the API of the engine in this folder at a socket, until the task is aborted.
pub(crate) fn serve(engine: &Path, socket: &Path) -> JoinHandle<()> {
    let listener = UnixListener::bind(socket).unwrap();
    let engine = engine.to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that ends early is no failure of the test.
            drop(answer(&engine, stream).await);
        }
    })
}

async fn answer(engine: &Path, mut stream: UnixStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let text = String::from_utf8_lossy(&request);
    let path = text.split(' ').nth(1).unwrap_or_default();
    let found = body(engine, path);
    let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
    let body = found.unwrap_or_default();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).await
}

fn body(engine: &Path, path: &str) -> Option<String> {
    let execs = execs(&engine.join("execs"));
    let lists_all = !engine.join(LISTS_RUNNING).exists();
    let is_running = |exec: &Value| exec["Running"] == true;
    let mut parts = path.trim_start_matches('/').split(['/', '?']);
    match (parts.next()?, parts.next()?) {
        ("containers", _) => {
            let listed = execs.iter().filter(|(_, exec)| lists_all || is_running(exec));
            Some(json!({ "ExecIDs": listed.map(|(name, _)| name).collect::<Vec<_>>() }).to_string())
        }
        ("exec", wanted) => execs.iter().find(|(name, _)| name == wanted).map(|(_, exec)| exec.to_string()),
        ("events", _) if lists_all => Some(String::new()),
        ("events", _) => {
            Some(execs.iter().map(|(name, exec)| events(name, exec, is_running(exec))).collect())
        }
        _ => None,
    }
}

/// Returns a command's events in Docker's form.
fn events(name: &str, exec: &Value, is_running: bool) -> String {
    let config = &exec["ProcessConfig"];
    let words = config["arguments"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let line = words
        .fold(config["entrypoint"].as_str().unwrap_or_default().to_owned(), |line, word| line + " " + word);
    let event = |action: &str| {
        json!({ "Action": action, "Actor": { "Attributes": { "execID": name } } }).to_string() + "\n"
    };
    let ended = if is_running { String::new() } else { event("exec_die") };
    event(&format!("exec_create: {line}")) + &event(&format!("exec_start: {line}")) + &ended
}

fn execs(folder: &PathBuf) -> Vec<(String, Value)> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let read = files.map(|file| {
        let exec = serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap();
        (file.file_name().into_string().unwrap(), exec)
    });
    read.collect()
}
