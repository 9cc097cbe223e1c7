//! HTTP client of a data directory's socket.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use futures_util::Stream;
use http::{Request, Response, Uri};
use http_body_util::{BodyDataStream, BodyExt};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::address::SocketAddress;

/// Base of the addresses that the owner's router answers.
const ROUTER: &str = "http://localhost";

/// Errors of a request to the owner of a data directory.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// No process listens, or it ended before it answered.
    #[error("the process that uses the data directory {dir} has ended or is starting: {reason}")]
    Gone {
        /// The data directory.
        dir: PathBuf,
        /// Cause.
        reason: String,
        /// True if the request can't have been received.
        unsent: bool,
    },
    /// The process accepts connections, but doesn't answer.
    #[error("the process that uses the data directory {dir} does not answer")]
    Silent {
        /// The data directory.
        dir: PathBuf,
    },
    /// The owner answered with another status than 200.
    #[error("the process that uses the data directory answered {status}: {text}")]
    Refused {
        /// Status code.
        status: u16,
        /// Body of the response.
        text: String,
    },
    /// The socket can't be used, or a request or response isn't valid.
    #[error("the socket of the data directory {dir} can't be used: {reason}")]
    Unusable {
        /// The data directory.
        dir: PathBuf,
        /// Cause.
        reason: String,
    },
}

/// Client of the process that owns a data directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SocketClient(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    http: Client<Connector, SdkBody>,
    dir: PathBuf,
}

/// Opens connections to the socket, for every address.
#[derive(Debug, Clone)]
struct Connector(Arc<SocketAddress>);

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let address = Arc::clone(&self.0);
        Box::pin(async move { UnixStream::connect(&address.path).await.map(TokioIo::new) })
    }
}

impl SocketClient {
    /// Creates a client, without connecting.
    ///
    /// # Errors
    /// Returns [`SocketError::Unusable`] if the path is too long for a socket and can't be shortened.
    pub fn new(data_dir: &Path) -> Result<Self, SocketError> {
        let dir = data_dir.to_owned();
        let address = match SocketAddress::of(data_dir) {
            Ok(address) => Arc::new(address),
            Err(error) => return Err(SocketError::Unusable { dir, reason: error.to_string() }),
        };
        let http = Client::builder(TokioExecutor::new()).build(Connector(address));
        Ok(Self(Arc::new(Shared { http, dir })))
    }

    /// Reads JSON from the owner's router within `limit`.
    ///
    /// # Errors
    /// Returns a [`SocketError`] if the owner is gone, silent or refuses.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, limit: Duration) -> Result<T, SocketError> {
        let request = self.request("GET", path, SdkBody::empty())?;
        let body = self.within(limit, self.read(request)).await?;
        serde_json::from_slice(&body).map_err(|error| self.unusable(error))
    }

    /// Sends JSON to the owner's router, and waits for the end of its response.
    ///
    /// # Errors
    /// Returns a [`SocketError`] if the owner is gone, silent or refuses.
    pub async fn post(&self, path: &str, body: &impl Serialize, limit: Duration) -> Result<(), SocketError> {
        let request = self.request("POST", path, self.json(body)?)?;
        self.within(limit, self.read(request)).await.map(drop)
    }

    /// Sends JSON to the owner's router, and returns its response as a stream, which ends when the owner ends.
    ///
    /// # Errors
    /// Returns a [`SocketError`] if the owner is gone or refuses.
    pub async fn stream<T: Serialize>(
        &self,
        path: &str,
        body: &T,
    ) -> Result<impl Stream<Item = Result<Bytes, hyper::Error>> + Send + use<T>, SocketError> {
        let response = self.send(self.request("POST", path, self.json(body)?)?).await?;
        match response.status().is_success() {
            true => Ok(BodyDataStream::new(response.into_body())),
            false => Err(self.refused(response).await),
        }
    }

    /// Forwards a call of the AWS SDK.
    pub(super) async fn forward(&self, request: HttpRequest) -> Result<HttpResponse, SocketError> {
        let request = request.try_into_http1x().map_err(|error| self.unusable(error))?;
        let response = self.send(request).await?;
        HttpResponse::try_from(response.map(SdkBody::from_body_1_x)).map_err(|error| self.unusable(error))
    }

    /// Returns true if a process answers.
    pub(super) async fn answers(&self) -> bool {
        self.get::<serde_json::Value>(super::OWNER_PATH, super::SILENCE_MAX).await.is_ok()
    }

    /// Returns true if both are clones of one client.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn request(&self, method: &str, path: &str, body: SdkBody) -> Result<Request<SdkBody>, SocketError> {
        let request = Request::builder().method(method).uri(format!("{ROUTER}{path}"));
        let request = request.header(http::header::CONTENT_TYPE, "application/json");
        request.body(body).map_err(|error| self.unusable(error))
    }

    fn json(&self, body: &impl Serialize) -> Result<SdkBody, SocketError> {
        serde_json::to_vec(body).map(SdkBody::from).map_err(|error| self.unusable(error))
    }

    async fn send(&self, request: Request<SdkBody>) -> Result<Response<Incoming>, SocketError> {
        self.0.http.request(request).await.map_err(|error| self.gone(&error))
    }

    async fn read(&self, request: Request<SdkBody>) -> Result<Bytes, SocketError> {
        let response = self.send(request).await?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let body = response.into_body().collect().await.map_err(|error| SocketError::Gone {
            dir: self.0.dir.clone(),
            reason: error.to_string(),
            unsent: false,
        })?;
        Ok(body.to_bytes())
    }

    async fn within<T>(
        &self,
        limit: Duration,
        answer: impl Future<Output = Result<T, SocketError>>,
    ) -> Result<T, SocketError> {
        timeout(limit, answer).await.unwrap_or_else(|_| Err(SocketError::Silent { dir: self.0.dir.clone() }))
    }

    async fn refused(&self, response: Response<Incoming>) -> SocketError {
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        SocketError::Refused { status, text: String::from_utf8_lossy(&body).into_owned() }
    }

    fn gone(&self, error: &Error) -> SocketError {
        let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
        SocketError::Gone { dir: self.0.dir.clone(), reason: cause, unsent: error.is_connect() }
    }

    fn unusable(&self, reason: impl ToString) -> SocketError {
        SocketError::Unusable { dir: self.0.dir.clone(), reason: reason.to_string() }
    }
}
