//! Client of the engine's API over its Unix socket: one connection per request.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

use crate::short_path::ShortPath;
use tokio::time::timeout;

/// Error of a body, of any kind.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// Body of a request or response of any source.
pub(crate) type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

/// Time limit of one call that isn't a stream.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a JSON response that is read as a whole, in bytes.
const JSON_BYTES_MAX: usize = 32 << 20;

/// Failure of a call to the engine.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The socket doesn't accept connections.
    #[error("can't connect to the container engine at `{}`: {source}", socket.display())]
    Connect {
        /// Path of the socket.
        socket: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The engine broke the protocol or closed the connection.
    #[error("the container engine did not answer properly: {0}")]
    Protocol(#[from] hyper::Error),
    /// The response is longer than its limit, or isn't JSON.
    #[error("the container engine's response is {0}")]
    Response(String),
    /// The engine didn't answer in time.
    #[error("the container engine did not answer within {seconds} s")]
    TimedOut {
        /// The time limit in seconds.
        seconds: u64,
    },
    /// The engine refused a call that the program made for itself.
    #[error("the container engine refused `{call}` with status {status}: {message}")]
    Refused {
        /// Method and path of the call.
        call: String,
        /// HTTP status.
        status: u16,
        /// The engine's message.
        message: String,
    },
}

/// Client of a container engine.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
}

impl Client {
    /// Creates a client of the engine that listens on `socket`.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into() }
    }

    /// Returns the path of the engine's socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Sends a request. The response's body is a stream without limits.
    pub(crate) async fn send(&self, request: Request<AnyBody>) -> Result<Response<Incoming>, ClientError> {
        let connect = async { UnixStream::connect(ShortPath::new(&self.socket)?.path()).await };
        let stream =
            connect.await.map_err(|source| ClientError::Connect { socket: self.socket.clone(), source })?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "Connection to the container engine ended");
            }
        });
        Ok(sender.send_request(request).await?)
    }

    /// Makes a call with a JSON body and returns status and JSON; `Null` for an empty response.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value), ClientError> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = request(method, path, full(body))?;
        let exchange = async {
            let response = self.send(request).await?;
            let status = response.status();
            Ok((status, read_json(response.into_body()).await?))
        };
        match timeout(CALL_TIMEOUT, exchange).await {
            Ok(result) => result,
            Err(_) => Err(ClientError::TimedOut { seconds: CALL_TIMEOUT.as_secs() }),
        }
    }

    /// Makes a call that must succeed.
    pub(crate) async fn expect(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let call = format!("{method} {path}");
        let (status, value) = self.call(method, path, body).await?;
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            return Ok(value);
        }
        let message = value["message"].as_str().unwrap_or("no message").to_owned();
        Err(ClientError::Refused { call, status: status.as_u16(), message })
    }
}

/// Creates a request to the engine with a JSON body.
pub(crate) fn request(method: Method, path: &str, body: AnyBody) -> Result<Request<AnyBody>, ClientError> {
    Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::HOST, "engine")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|error| ClientError::Response(format!("not requested: {error}")))
}

/// Creates a body of known bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> AnyBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Reads a body as JSON; `Null` if it is empty.
pub(crate) async fn read_json<B>(body: B) -> Result<Value, ClientError>
where
    B: hyper::body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let bytes = read_bytes(body, JSON_BYTES_MAX).await?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&bytes).map_err(|error| ClientError::Response(format!("not JSON: {error}")))
}

/// Reads a body of at most `bytes_max` bytes.
async fn read_bytes<B>(body: B, bytes_max: usize) -> Result<Bytes, ClientError>
where
    B: hyper::body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(ClientError::Response(format!("larger than {bytes_max} bytes")))
        }
        Err(error) => Err(ClientError::Response(format!("incomplete: {error}"))),
    }
}
