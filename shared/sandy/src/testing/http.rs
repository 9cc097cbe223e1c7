//! The subset of HTTP/1.1 that the client uses in tests.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Maximum size of a request's body, in bytes, as usual for web servers.
const REQUEST_BYTES_MAX: usize = 2 << 20;

/// A parsed request.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) key: Option<String>,
    /// First byte of the requested range.
    pub(super) from: Option<usize>,
    pub(super) is_json: bool,
    /// `None` if the body is too large.
    pub(super) body: Option<Value>,
}

pub(super) async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut parts = line.split_whitespace().map(str::to_owned);
    let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut request = Request { method, path, key: None, from: None, is_json: false, body: None };
    let mut length = 0;
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        let Some((name, value)) = text.split_once(':') else { continue };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or_default(),
            "content-type" => request.is_json = value == "application/json",
            "authorization" => request.key = value.strip_prefix("Bearer ").map(str::to_owned),
            "range" => {
                let from = value.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-'));
                request.from = from.and_then(|from| from.parse().ok());
            }
            _ => {}
        }
    }
    if length <= REQUEST_BYTES_MAX {
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        request.body = Some(serde_json::from_slice(&body).unwrap_or(Value::Null));
    }
    Ok(Some(request))
}

/// An answer to send.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string().into_bytes() }
    }

    pub(super) async fn send(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        stream.write_all(&[self.head().as_bytes(), &self.body].concat()).await
    }

    /// Sends the first half of the body and closes the connection.
    pub(super) async fn send_half(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let half = self.body.get(..self.body.len() / 2).unwrap_or_default();
        stream.write_all(&[self.head().as_bytes(), half].concat()).await?;
        stream.shutdown().await
    }

    fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} Status\r\ncontent-type: application/json\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        head
    }
}
