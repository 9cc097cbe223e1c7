//! A local server that implements chat completions, either as fast as possible or with the faults that a test needs.
//!
//! It answers `GET …/models` with a list if the key begins with `sk-`, and with 401 for other keys, as a provider
//! would. These requests don't count as questions.
//!
//! The server finds the item in the prompt by a marker such as `[item 17]`, answers as the rule decides, and counts
//! the questions about each item. Questions to the model named [`JUDGE`] are counted separately.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Name of the judge model. Its questions count under `judge ` and the item.
pub const JUDGE: &str = "judge";
/// Maximum size of a request in bytes.
const REQUEST_BYTES_MAX: usize = 128 << 20;

/// A request, with the properties that rules need.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Text after `[item ` in the prompt. Empty if there is none.
    pub item: String,
    /// True if the judge is asked.
    pub is_judge: bool,
    /// Number of earlier questions about this item, to the model or to the judge.
    pub before: u64,
    /// Number of earlier requests about any item.
    pub total_before: u64,
    /// The bearer key of the request.
    pub key: Option<String>,
    /// The request body.
    pub body: Value,
}

/// Response to a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A streamed answer with this text.
    Text(String),
    /// A streamed answer with this text and without token counts.
    Uncounted(String),
    /// A streamed answer with this text and finish reason.
    Finished(String, &'static str),
    /// An event stream of these bytes. Each part is written separately.
    Events(Vec<Vec<u8>>),
    /// A status with a body and headers.
    Status(u16, String, Vec<(&'static str, String)>),
    /// A streamed answer with this text, sent after this time.
    Later(Duration, String),
    /// Another reply, sent as soon as the value is true. It can't be held itself.
    Held(watch::Receiver<bool>, Box<Reply>),
    /// A stream that is interrupted in the middle.
    HalfStream(String),
    /// A stream that contains all of this text, but ends before the model reports that it is done.
    NoEnd(String),
    /// Status 200 with a body that isn't a valid response.
    Garbage,
    /// The connection is closed without a response.
    Nothing,
    /// No response for this time, then the connection is closed.
    Hang(Duration),
}

impl Reply {
    /// Returns a streamed answer with this text, sent as soon as the value is true.
    pub fn once(is_time: watch::Receiver<bool>, text: impl Into<String>) -> Self {
        Self::Held(is_time, Box::new(Self::Text(text.into())))
    }

    /// Returns an event stream whose deltas have these raw JSON strings as their content, with this `usage` object.
    pub fn deltas(contents: &[&[u8]], usage: &str) -> Self {
        let delta = |content: &&[u8]| {
            [b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"", *content, b"\"}}]}\n\n"].concat()
        };
        let mut parts: Vec<Vec<u8>> = contents.iter().map(delta).collect();
        let end = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n\
             data: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n"
        );
        parts.push(end.into_bytes());
        Self::Events(parts)
    }
}

/// Chooses the response to a request.
pub type Rule = Arc<dyn Fn(&ModelRequest) -> Reply + Send + Sync>;

/// A running server. Stops when it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    rule: Rule,
    latency: Duration,
    asked: Mutex<HashMap<String, u64>>,
    answered: Mutex<HashMap<String, u64>>,
    log: Mutex<Vec<LoggedRequest>>,
    total: AtomicU64,
    gone: AtomicU64,
    in_flight: AtomicU64,
    in_flight_max: AtomicU64,
}

/// A request in the server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Text after `[item ` in the prompt. Empty if there is none.
    pub item: String,
    /// The bearer key of the request.
    pub key: Option<String>,
    /// True if the judge was asked.
    pub is_judge: bool,
}

impl ModelServer {
    /// Starts a server on a free loopback port.
    pub async fn start(latency: Duration, rule: Rule) -> anyhow::Result<Self> {
        Self::start_on(0, latency, rule).await
    }

    /// Starts a server on a loopback port. 0 selects a free one.
    pub async fn start_on(port: u16, latency: Duration, rule: Rule) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.context("binding the model server")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            rule,
            latency,
            asked: Mutex::default(),
            answered: Mutex::default(),
            log: Mutex::default(),
            total: AtomicU64::new(0),
            gone: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            in_flight_max: AtomicU64::new(0),
        });
        let serving = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                tokio::spawn(async move {
                    // A client that disconnects isn't an error of the server.
                    let _ = serve(stream, &shared).await;
                });
            }
        });
        Ok(Self { address, shared, task })
    }

    /// Returns the value for `--base-url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the number of questions about each item.
    pub fn question_counts(&self) -> HashMap<String, u64> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of complete answers about each item.
    pub fn answer_counts(&self) -> HashMap<String, u64> {
        self.shared.answered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns all requests so far, in order.
    pub fn log(&self) -> Vec<LoggedRequest> {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of clients that disconnected during a [`Reply::Hang`].
    pub fn disconnects(&self) -> u64 {
        self.shared.gone.load(Ordering::Relaxed)
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.shared.in_flight.load(Ordering::Relaxed)
    }

    /// Returns the number of requests so far.
    pub fn total(&self) -> u64 {
        self.shared.total.load(Ordering::Relaxed)
    }

    /// Returns the maximum number of concurrent requests so far.
    pub fn in_flight_max(&self) -> u64 {
        self.shared.in_flight_max.load(Ordering::Relaxed)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers every item with this text.
pub fn always(text: &str) -> Rule {
    let text = text.to_owned();
    Arc::new(move |_| Reply::Text(text.clone()))
}

async fn serve(stream: TcpStream, shared: &Shared) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let Some((line, body, key)) = read_request(&mut stream).await? else { return Ok(()) };
        if let (true, Some(key)) = (is_models_request(&line), &key) {
            let (status, list) = match key.starts_with("sk-") {
                true => (200, r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#),
                false => (401, r#"{"error":{"message":"no such key"}}"#),
            };
            let head = format!(
                "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{list}",
                list.len()
            );
            stream.get_mut().write_all(head.as_bytes()).await?;
            continue;
        }
        let running = shared.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        shared.in_flight_max.fetch_max(running, Ordering::Relaxed);
        let goes_on = answer(&mut stream, shared, body, key).await;
        shared.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !goes_on? {
            return Ok(());
        }
    }
}

fn is_models_request(line: &str) -> bool {
    let mut words = line.split(' ');
    words.next() == Some("GET") && words.next().is_some_and(|path| path.ends_with("/models"))
}

/// Reads a request. Returns its first line, its body and its key.
async fn read_request(
    stream: &mut BufReader<TcpStream>,
) -> anyhow::Result<Option<(String, Value, Option<String>)>> {
    let (mut length, mut key, mut line) = (0, None, String::new());
    let mut first_line = String::new();
    let mut first = true;
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let text = line.trim_end();
        if text.is_empty() {
            if first {
                continue;
            }
            break;
        }
        if first {
            text.clone_into(&mut first_line);
        }
        first = false;
        let Some((name, value)) = text.split_once(':') else { continue };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse::<usize>()?.min(REQUEST_BYTES_MAX),
            "authorization" => key = value.trim().strip_prefix("Bearer ").map(str::to_owned),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some((first_line, serde_json::from_slice(&body).unwrap_or(Value::Null), key)))
}

fn item_marker(body: &Value) -> String {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text =
        messages.iter().filter_map(|message| message["content"].as_str()).next_back().unwrap_or_default();
    let marked = text.rsplit_once("[item ").and_then(|(_, rest)| rest.split_once(']'));
    marked.map(|(item, _)| item.to_owned()).unwrap_or_default()
}

async fn answer(
    stream: &mut BufReader<TcpStream>,
    shared: &Shared,
    body: Value,
    key: Option<String>,
) -> anyhow::Result<bool> {
    let item = item_marker(&body);
    let is_judge = body["model"] == JUDGE;
    let counted = if is_judge { format!("{JUDGE} {item}") } else { item.clone() };
    let before = {
        let mut asked = shared.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asked.entry(counted.clone()).or_default();
        *count += 1;
        *count - 1
    };
    let total_before = shared.total.fetch_add(1, Ordering::Relaxed);
    let asked = LoggedRequest { item: item.clone(), key: key.clone(), is_judge };
    shared.log.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    let request = ModelRequest { item, is_judge, before, total_before, key, body };
    let reply = (shared.rule)(&request);
    if !shared.latency.is_zero() {
        tokio::time::sleep(shared.latency).await;
    }
    let stream = stream.get_mut();
    let reply = match reply {
        Reply::Held(mut is_time, reply) => {
            // The test that waits for the reply keeps the sender.
            let _ = is_time.wait_for(|is_time| *is_time).await;
            *reply
        }
        reply => reply,
    };
    match reply {
        Reply::Text(text) => {
            stream.write_all(&streamed_answer(&text, Some("stop"), true, &request.body)).await?
        }
        Reply::Later(time, text) => {
            tokio::time::sleep(time).await;
            stream.write_all(&streamed_answer(&text, Some("stop"), true, &request.body)).await?;
        }
        Reply::Uncounted(text) => {
            stream.write_all(&streamed_answer(&text, Some("stop"), false, &request.body)).await?;
        }
        Reply::Finished(text, reason) => {
            stream.write_all(&streamed_answer(&text, Some(reason), true, &request.body)).await?;
        }
        Reply::Events(parts) => {
            let bytes: usize = parts.iter().map(Vec::len).sum();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {bytes}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await?;
            for part in parts {
                stream.write_all(&part).await?;
                stream.flush().await?;
            }
        }
        Reply::Status(status, body, headers) => {
            let mut head = format!("HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\n");
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
            stream.write_all(head.as_bytes()).await?;
            return Ok(true);
        }
        Reply::HalfStream(text) => {
            let whole = streamed_answer(&text, None, false, &request.body);
            stream.write_all(whole.get(..whole.len() / 2).unwrap_or_default()).await?;
            return Ok(false);
        }
        Reply::NoEnd(text) => {
            stream.write_all(&streamed_answer(&text, None, false, &request.body)).await?;
            return Ok(true);
        }
        Reply::Garbage => {
            let garbage = "<html>\u{fffd} not what you asked for";
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
                garbage.len()
            );
            stream.write_all(format!("{head}{garbage}").as_bytes()).await?;
            return Ok(true);
        }
        Reply::Nothing => return Ok(false),
        Reply::Held(..) => anyhow::bail!("a reply is held once"),
        Reply::Hang(time) => {
            // A waiting client sends nothing more, so a completed read means that it disconnected.
            if tokio::time::timeout(time, stream.read(&mut [0])).await.is_ok() {
                shared.gone.fetch_add(1, Ordering::Relaxed);
            }
            return Ok(false);
        }
    }
    *shared.answered.lock().unwrap_or_else(PoisonError::into_inner).entry(counted).or_default() += 1;
    Ok(true)
}

/// Builds a whole response: two deltas, the end, the usage if `counted`, and `[DONE]`.
fn streamed_answer(text: &str, finish: Option<&str>, counted: bool, request: &Value) -> Vec<u8> {
    let model = request["model"].as_str().unwrap_or("model");
    let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let (one, two) = text.split_at(half);
    let chunk = |delta: Value, finish: Option<&str>| {
        json!({ "id": "c", "object": "chat.completion.chunk", "model": model,
                "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
    };
    let mut events = String::new();
    for event in
        [chunk(json!({ "role": "assistant", "content": one }), None), chunk(json!({ "content": two }), None)]
    {
        events.push_str(&format!("data: {event}\n\n"));
    }
    if finish.is_some() {
        events.push_str(&format!("data: {}\n\n", chunk(json!({}), finish)));
        let usage = json!({ "id": "c", "object": "chat.completion.chunk", "model": model, "choices": [],
            "usage": { "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 } });
        if counted {
            events.push_str(&format!("data: {usage}\n\n"));
        }
        events.push_str("data: [DONE]\n\n");
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        events.len()
    );
    [head.as_bytes(), events.as_bytes()].concat()
}
