//! The Lambda Runtime API on loopback, as functions on Lambda see it.
//!
//! A function requests its next event (`next`), answers it (`response`, in one piece or as a stream) or reports an
//! error (`error`, `init/error`). Tests observe each invocation while its answer arrives: the parts sent so far are
//! available before the answer ends, with their times of arrival.
//!
//! A response to a function is one write and isn't delayed until earlier data is acknowledged (TCP_NODELAY).
//! Otherwise every invocation would take 40 ms longer through no fault of the function.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

/// Default time limit of an invocation, equal to API Gateway's timeout.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(29);
/// Maximum size of an answer in one piece, in bytes. Lambda has the same limit.
const ANSWER_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Separator between the prelude of a streamed HTTP answer and its body.
const PRELUDE_END: [u8; 8] = [0; 8];
/// Maximum size of the prelude in bytes.
const PRELUDE_BYTES_MAX: usize = 64 * 1024;

/// A running emulator. Stops when it is dropped.
#[derive(Debug)]
pub struct RuntimeApi {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    /// Events that wait for the function.
    waiting: Mutex<VecDeque<Event>>,
    offered: Notify,
    /// Invocations without a complete answer.
    open: Mutex<HashMap<String, mpsc::UnboundedSender<Part>>>,
    /// Times at which the function asked for its next event.
    asked: watch::Sender<Vec<Instant>>,
    init_errors: watch::Sender<Vec<FunctionError>>,
}

#[derive(Debug)]
struct Event {
    id: String,
    body: Bytes,
    timeout: Duration,
}

/// Error reported by a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionError {
    /// `errorType` of the report.
    pub kind: String,
    /// `errorMessage` of the report.
    pub message: String,
}

impl FunctionError {
    fn read(body: &[u8]) -> Self {
        let report: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
        Self { kind: text("errorType"), message: text("errorMessage") }
    }
}

/// Parts of an answer as they arrive: `Head`, any number of `Piece`, then `End` or `Broken`; or only `Failed`.
#[derive(Debug)]
enum Part {
    Head { streaming: bool, content_type: String },
    Piece(Bytes, Instant),
    End,
    Broken(String),
    Failed(FunctionError),
}

/// A piece of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Bytes of the piece.
    pub bytes: Bytes,
    /// Time of arrival.
    pub at: Instant,
}

/// An answer in one piece.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The JSON of the answer.
    pub body: Value,
    /// Time of arrival.
    pub at: Instant,
}

/// An event sent to the function.
#[derive(Debug)]
pub struct Invocation {
    parts: mpsc::UnboundedReceiver<Part>,
}

/// An HTTP answer that arrives as a stream.
#[derive(Debug)]
pub struct StreamedAnswer {
    /// Status, headers and cookies, which precede the body.
    pub prelude: Value,
    rest: Option<Piece>,
    parts: mpsc::UnboundedReceiver<Part>,
}

impl RuntimeApi {
    /// Starts an emulator on a free port.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("binding the Runtime API")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            offered: Notify::new(),
            open: Mutex::default(),
            asked: watch::Sender::new(Vec::new()),
            init_errors: watch::Sender::new(Vec::new()),
        });
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(init_error))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let listener = listener.tap_io(|stream| {
            // Without this, any response may be late, which would distort the measured times.
            let _ = stream.set_nodelay(true);
        });
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, task })
    }

    /// Returns the value for `AWS_LAMBDA_RUNTIME_API`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Sends the function an event.
    pub fn offer(&self, event: &Value) -> Invocation {
        self.offer_text(event.to_string())
    }

    /// Sends the function an event that may be invalid JSON.
    pub fn offer_text(&self, event: impl Into<String>) -> Invocation {
        self.offer_within(event, TIMEOUT_DEFAULT)
    }

    /// Sends the function an event with a time limit.
    pub fn offer_within(&self, event: impl Into<String>, timeout: Duration) -> Invocation {
        let (sender, parts) = mpsc::unbounded_channel();
        let id = format!("{:032x}", rand_id());
        lock(&self.shared.open).insert(id.clone(), sender);
        let event = Event { id, body: Bytes::from(event.into()), timeout };
        lock(&self.shared.waiting).push_back(event);
        self.shared.offered.notify_one();
        Invocation { parts }
    }

    /// Sends the function an event and waits for its answer.
    pub async fn invoke(&self, event: &Value) -> anyhow::Result<Answer> {
        self.offer(event).answer().await
    }

    /// Waits until the function has asked for an event for the `nth` time, counted from 1. Returns the time.
    ///
    /// The first request means that the function is initialized, each further request that it has finished an event.
    pub async fn wait_for_request(&self, nth: usize) -> anyhow::Result<Instant> {
        let mut asked = self.shared.asked.subscribe();
        let asked = asked.wait_for(|request| request.len() >= nth.max(1)).await?;
        asked.get(nth.max(1) - 1).copied().context("the function has not asked")
    }

    /// Returns the number of times that the function has asked for an event.
    pub fn request_count(&self) -> usize {
        self.shared.asked.borrow().len()
    }

    /// Waits until the function reports that its initialization failed.
    pub async fn init_error(&self) -> anyhow::Result<FunctionError> {
        let mut errors = self.shared.init_errors.subscribe();
        let errors = errors.wait_for(|errors| !errors.is_empty()).await?;
        errors.first().cloned().context("the function was initialized")
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Invocation {
    /// Waits for the whole answer. Fails if the function failed or streamed.
    pub async fn answer(mut self) -> anyhow::Result<Answer> {
        let mut whole = Vec::new();
        loop {
            match self.parts.recv().await.context("the emulator is gone")? {
                Part::Head { streaming, .. } => ensure!(!streaming, "the answer is a stream"),
                Part::Piece(bytes, _) => {
                    whole.extend_from_slice(&bytes);
                    ensure!(whole.len() <= ANSWER_BYTES_MAX, "the answer is larger than Lambda lets through");
                }
                Part::End => {
                    let at = Instant::now();
                    let body = serde_json::from_slice(&whole).context("the answer is no JSON")?;
                    return Ok(Answer { body, at });
                }
                Part::Broken(why) => bail!("the answer broke off: {why}"),
                Part::Failed(error) => bail!("the function failed: {}: {}", error.kind, error.message),
            }
        }
    }

    /// Waits for the error that the function reports. Fails if it answered.
    pub async fn failure(mut self) -> anyhow::Result<FunctionError> {
        match self.parts.recv().await.context("the emulator is gone")? {
            Part::Failed(error) => Ok(error),
            other => bail!("the function did not fail: {other:?}"),
        }
    }

    /// Waits for the prelude of a streamed HTTP answer.
    pub async fn wait_for_stream(mut self) -> anyhow::Result<StreamedAnswer> {
        match self.parts.recv().await.context("the emulator is gone")? {
            Part::Head { streaming: true, content_type } => ensure!(
                content_type == "application/vnd.awslambda.http-integration-response",
                "a stream of {content_type}"
            ),
            Part::Failed(error) => bail!("the function failed: {}: {}", error.kind, error.message),
            other => bail!("the answer is no stream: {other:?}"),
        }
        let mut begun = Vec::new();
        loop {
            match self.parts.recv().await.context("the emulator is gone")? {
                Part::Piece(bytes, at) => {
                    begun.extend_from_slice(&bytes);
                    let end = begun.windows(PRELUDE_END.len()).position(|window| window == PRELUDE_END);
                    if let Some(end) = end {
                        let prelude = begun.get(..end).unwrap_or_default();
                        let prelude = serde_json::from_slice(prelude).context("the prelude is no JSON")?;
                        let rest = begun.split_off(end + PRELUDE_END.len());
                        let rest = (!rest.is_empty()).then(|| Piece { bytes: rest.into(), at });
                        return Ok(StreamedAnswer { prelude, rest, parts: self.parts });
                    }
                    ensure!(begun.len() <= PRELUDE_BYTES_MAX, "the prelude has no end");
                }
                other => bail!("the answer ended in its prelude: {other:?}"),
            }
        }
    }
}

impl StreamedAnswer {
    /// Waits for the next piece of the body, as it was sent. `None` at the end.
    pub async fn next(&mut self) -> anyhow::Result<Option<Piece>> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        match self.parts.recv().await.context("the emulator is gone")? {
            Part::Piece(bytes, at) => Ok(Some(Piece { bytes, at })),
            Part::End => Ok(None),
            Part::Broken(why) => bail!("the answer broke off: {why}"),
            other => bail!("out of order: {other:?}"),
        }
    }

    /// Waits for the rest of the body.
    pub async fn read_rest(mut self) -> anyhow::Result<Vec<u8>> {
        let mut whole = Vec::new();
        while let Some(piece) = self.next().await? {
            whole.extend_from_slice(&piece.bytes);
        }
        Ok(whole)
    }
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
    shared.asked.send_modify(|request| request.push(Instant::now()));
    let event = loop {
        let offered = shared.offered.notified();
        if let Some(event) = lock(&shared.waiting).pop_front() {
            break event;
        }
        offered.await;
    };
    let deadline = SystemTime::now() + event.timeout;
    let deadline = deadline.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let headers = [
        ("lambda-runtime-aws-request-id", event.id),
        ("lambda-runtime-deadline-ms", deadline.to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:000000000000:function:emulated".to_owned(),
        ),
        ("lambda-runtime-trace-id", "Root=1-00000000-000000000000000000000000;Sampled=0".to_owned()),
        ("content-type", "application/json".to_owned()),
    ];
    let mut response = event.body.into_response();
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

async fn response(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    mut body: Body,
) -> Response {
    let Some(open) = lock(&shared.open).remove(&id) else {
        return (StatusCode::BAD_REQUEST, "no such invocation").into_response();
    };
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let streaming = text("lambda-runtime-function-response-mode") == "streaming";
    // The receiver may be gone; the function gets its response anyway.
    let _ = open.send(Part::Head { streaming, content_type: text("content-type").to_owned() });
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => {
                if let Ok(bytes) = frame.into_data() {
                    let _ = open.send(Part::Piece(bytes, Instant::now()));
                }
            }
            Err(error) => {
                let _ = open.send(Part::Broken(error.to_string()));
                return StatusCode::BAD_REQUEST.into_response();
            }
        }
    }
    let _ = open.send(Part::End);
    accepted()
}

async fn error(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Bytes) -> Response {
    if let Some(open) = lock(&shared.open).remove(&id) {
        let _ = open.send(Part::Failed(FunctionError::read(&body)));
    }
    accepted()
}

async fn init_error(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    shared.init_errors.send_modify(|errors| errors.push(FunctionError::read(&body)));
    accepted()
}

fn accepted() -> Response {
    (StatusCode::ACCEPTED, [(header::CONTENT_TYPE, "application/json")], r#"{"status":"OK"}"#).into_response()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns an id that is unique in this process.
fn rand_id() -> u128 {
    static LAST: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    (u128::from(std::process::id()) << 64) | u128::from(number)
}
