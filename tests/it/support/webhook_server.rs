//! A webhook server that records its messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bench_domain::schedule::Webhook;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A running server. Stops when it is dropped.
pub(crate) struct WebhookServer {
    port: u16,
    told: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Drop for WebhookServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl WebhookServer {
    /// Starts a server that answers with these statuses in turn, and with 200 after that.
    pub(crate) async fn start(statuses: &[&'static str]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let told = Arc::new(Mutex::new(Vec::new()));
        let statuses = Arc::new(Mutex::new(statuses.iter().copied().collect::<VecDeque<_>>()));
        let heard = Arc::clone(&told);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let status = statuses.lock().unwrap().pop_front().unwrap_or("200 OK");
                if let Some(body) = serve(stream, status, port).await {
                    heard.lock().unwrap().push(body);
                }
            }
        });
        Self { port, told, task }
    }

    pub(crate) fn webhook(&self) -> Webhook {
        Webhook::new(&format!("http://127.0.0.1:{}/hook/secret", self.port), true).unwrap()
    }

    /// Returns all messages so far, including those answered with an error.
    pub(crate) fn messages(&self) -> Vec<Value> {
        self.told.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, status: &str, port: u16) -> Option<Value> {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let answer = format!(
        "HTTP/1.1 {status}\r\nlocation: http://127.0.0.1:{port}/elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    stream.get_mut().write_all(answer.as_bytes()).await.ok()?;
    serde_json::from_slice(&body).ok()
}
