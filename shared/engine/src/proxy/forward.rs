//! Passes requests on to the engine, and responses back, within limits of size and time.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use serde_json::Value;
use tokio::time::{Sleep, timeout};

use super::Shared;
use crate::client::{AnyBody, BoxError, Client, ClientError, full, request};
use crate::refusal::Refusal;

/// Maximum duration and size of the response to a call that isn't a stream.
const SHORT_TIME: Duration = Duration::from_secs(120);
const SHORT_BYTES_MAX: u64 = 32 << 20;

/// Maximum size and duration of what is received of the body of a refused request.
const DRAIN_BYTES_MAX: usize = 256 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Headers that belong to one connection, not to the response.
const HOP_HEADERS: [HeaderName; 4] =
    [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, header::TRAILER];

/// Limits of a response's body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) time_max: Duration,
    pub(super) bytes_max: u64,
}

impl Stream {
    /// Returns the limits of a call that isn't a stream.
    pub(super) fn short() -> Self {
        Self { time_max: SHORT_TIME, bytes_max: SHORT_BYTES_MAX }
    }
}

impl Shared {
    /// Returns the limits of a stream.
    pub(super) fn stream(&self) -> Stream {
        let limits = &self.rules.limits;
        Stream { time_max: limits.stream_time_max, bytes_max: limits.stream_bytes_max }
    }

    /// Sends a request to the engine and returns its response, with limits on its body.
    pub(super) async fn forward(
        &self,
        method: Method,
        address: &str,
        body: AnyBody,
        limits: Stream,
    ) -> Result<Response<AnyBody>, Refusal> {
        self.forward_to(&self.client, method, address, body, limits).await
    }

    /// Sends a request to the engine or to its service for a build.
    pub(super) async fn forward_to(
        &self,
        client: &Client,
        method: Method,
        address: &str,
        body: AnyBody,
        limits: Stream,
    ) -> Result<Response<AnyBody>, Refusal> {
        let mut request = request(method, address, body)?;
        if address.contains("/archive?") || address.contains("/build?") {
            request
                .headers_mut()
                .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/x-tar"));
        }
        // The proxy may stop while the engine waits, for example for a container's end.
        let sent = tokio::select! {
            () = self.stopping.cancelled(), if limits.time_max > SHORT_TIME => return Err(Refusal::Stopping),
            sent = timeout(limits.time_max, client.send(request)) => sent,
        };
        let response = sent.map_err(|_| ClientError::TimedOut { seconds: limits.time_max.as_secs() })??;
        let (mut parts, body) = response.into_parts();
        remove_hop_headers(&mut parts.headers);
        Ok(Response::from_parts(parts, limited(body, limits)))
    }
}

/// Receives and drops the rest of a body, within limits, because clients send all of it before they
/// read the response.
pub(super) async fn drain(body: &mut Incoming) {
    let received = async {
        let mut left = DRAIN_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, bytes::Bytes::len);
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    if tokio::time::timeout(DRAIN_TIMEOUT, received).await.is_err() {
        tracing::debug!("The body of a refused request was not received in time");
    }
}

/// Removes the headers of a connection.
pub(super) fn remove_hop_headers(headers: &mut HeaderMap) {
    for name in HOP_HEADERS {
        headers.remove(name);
    }
}

/// Creates a response with a JSON body.
pub(super) fn json_response(value: &Value) -> Response<AnyBody> {
    let mut response = Response::new(full(value.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// Limits a body in size and time. A body that exceeds a limit ends with an error, which closes the connection.
pub(super) fn limited<B>(body: B, limits: Stream) -> AnyBody
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let deadline = Box::pin(tokio::time::sleep(limits.time_max));
    LimitedBody { body, left: limits.bytes_max, deadline }.boxed_unsync()
}

struct LimitedBody<B> {
    body: B,
    /// Bytes that may still follow.
    left: u64,
    deadline: Pin<Box<Sleep>>,
}

impl<B> Body for LimitedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if this.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err("the stream's time is up".into())));
        }
        let frame = std::task::ready!(Pin::new(&mut this.body).poll_frame(context));
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, |data| data.len() as u64),
            _ => 0,
        };
        match this.left.checked_sub(bytes) {
            Some(left) => this.left = left,
            None => return Poll::Ready(Some(Err("the stream is larger than its limit".into()))),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}
