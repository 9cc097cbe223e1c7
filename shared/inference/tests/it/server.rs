//! A provider that answers with exactly the bytes that a test needs, on its own port.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bench_domain::Secret;
use bench_inference::Endpoint;
use bench_inference::providers::CHUTES;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const KEY: &str = "cpk_test_key_1";

/// A step of the server's response to one request. After the last step it waits for the next request.
#[derive(Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Waits in simulated time.
    Wait(Duration),
    /// Closes the connection normally.
    Close,
    /// Ends the connection with a reset.
    Reset,
    /// Sends nothing more.
    Stall,
}

pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

type Script = dyn Fn(usize, &Request) -> Vec<Step> + Send + Sync;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Arc<Mutex<Vec<Request>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Starts a server. `script` gets the number of the request, from 0, and the request.
    pub(crate) async fn start(script: impl Fn(usize, &Request) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
            connections: Arc::default(),
        };
        let (requests, connections) = (server.requests.clone(), server.connections.clone());
        let script: Arc<Script> = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, script.clone(), requests.clone()));
            }
        });
        server
    }

    /// Starts a server that answers every request in the same way.
    pub(crate) async fn always(steps: Vec<Step>) -> Self {
        Self::start(move |_, _| steps.clone()).await
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        let base = format!("http://{}/v1", self.address);
        Endpoint::new(&CHUTES, &base, Secret::new(KEY)).unwrap()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Script>, requests: Arc<Mutex<Vec<Request>>>) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer).await {
        let steps = {
            let mut requests = requests.lock().unwrap();
            let steps = script(requests.len(), &request);
            requests.push(request);
            steps
        };
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Wait(duration) => tokio::time::sleep(duration).await,
                Step::Close => return,
                Step::Reset => return stream.set_zero_linger().unwrap(),
                Step::Stall => std::future::pending().await,
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while buffer.len() < head_end + 4 + length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let rest = buffer.split_off(head_end + 4 + length);
    let body = buffer[head_end + 4..].to_vec();
    *buffer = rest;
    Some(Request { line, headers, body })
}

/// Returns a whole response with a correct `Content-Length`.
pub(crate) fn response(status: u16, headers: &str, body: &str) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    vec![Step::Send([head.as_bytes(), body.as_bytes()].concat())]
}

/// Returns the head of a response whose body is sent in chunks.
pub(crate) fn stream_head() -> Step {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\
                x-request-id: rid-1\r\n\r\n";
    Step::Send(head.as_bytes().to_vec())
}

pub(crate) fn chunk(bytes: &[u8]) -> Step {
    Step::Send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}

pub(crate) fn last_chunk() -> Step {
    Step::Send(b"0\r\n\r\n".to_vec())
}

/// Returns the events of an answer with this text, without the end of the response.
pub(crate) fn events(text: &str) -> String {
    let delta = |delta: serde_json::Value, finish: Option<&str>| {
        let piece = serde_json::json!({
            "id": "c-1", "object": "chat.completion.chunk", "model": "served/model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        });
        format!("data: {piece}\n\n")
    };
    let mut events = delta(serde_json::json!({"role": "assistant", "content": ""}), None);
    for word in text.split_inclusive(' ') {
        events += &delta(serde_json::json!({"content": word}), None);
    }
    events += &delta(serde_json::json!({}), Some("stop"));
    events
        + "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n"
}

/// Returns a whole streamed answer in one write.
pub(crate) fn streamed(text: &str) -> Vec<Step> {
    let steps = [stream_head(), chunk(events(text).as_bytes()), last_chunk()];
    let bytes = steps.into_iter().flat_map(|step| match step {
        Step::Send(bytes) => bytes,
        _ => Vec::new(),
    });
    vec![Step::Send(bytes.collect())]
}
