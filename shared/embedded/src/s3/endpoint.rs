//! Entry points for requests: from the SDK in this process, and from a listener.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, header};
use s3s::Body;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::bodies::{convert_body, sdk_body, without_forbidden_body};
use super::fast;
use super::service::Operations;
use super::store::Store;

/// Maximum number of bodies that a listener stores at once.
const BODIES_MAX: usize = 16;
/// Maximum time that a request waits for other bodies to be stored.
const BODY_WAIT: Duration = Duration::from_secs(10);

/// Creates the protocol layer (signatures, presigned URLs, XML) over a store, for one pair of keys.
#[must_use]
pub fn service(store: Store, access_key: &str, secret_key: &str) -> S3Service {
    let mut builder = S3ServiceBuilder::new(Operations { store });
    builder.set_auth(SimpleAuth::from_single(access_key, secret_key));
    builder.build()
}

/// S3 in this process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Endpoint {
    store: Store,
    service: Arc<S3Service>,
}

impl Endpoint {
    /// Creates an endpoint for one pair of keys.
    #[must_use]
    pub fn new(store: Store, access_key: &str, secret_key: &str) -> Self {
        Self { service: Arc::new(service(store.clone(), access_key, secret_key)), store }
    }

    /// Returns the endpoint for a listener, whose callers aren't trusted.
    #[must_use]
    pub fn listening(self) -> ListenerEndpoint {
        ListenerEndpoint { endpoint: self, bodies: Arc::new(Semaphore::new(BODIES_MAX)) }
    }

    /// Answers a request of the SDK in this process.
    ///
    /// The caller is trusted: simple object requests are answered without a check of their signature.
    pub async fn handle_sdk(&self, request: http::Request<SdkBody>) -> http::Response<SdkBody> {
        if let Some(response) = fast::try_handle(&self.store, &request).await {
            return response;
        }
        let response = self.handle(request.map(Body::http_body)).await;
        response.map(sdk_body)
    }

    /// Answers a request from any source, after checking its signature.
    pub async fn handle(&self, mut request: http::Request<Body>) -> http::Response<Body> {
        // The SDK signs the host but leaves it to its HTTP client to send that header; in this process there is none.
        if !request.headers().contains_key(header::HOST)
            && let Some(host) =
                request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok())
        {
            request.headers_mut().insert(header::HOST, host);
        }
        let bodiless = request.method() == Method::HEAD;
        let response = match self.service.call(request).await {
            Ok(response) => response,
            Err(error) => {
                tracing::error!(error = ?error, "The S3 protocol layer failed");
                let mut response = http::Response::new(Body::empty());
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                response
            }
        };
        without_forbidden_body(bodiless, response)
    }
}

/// S3 for callers that connect over a socket, as a `tower` service that never fails. axum accepts it as
/// `fallback_service`, with paths such as `/bucket/key`. Unsigned requests are rejected before their body is read. A
/// body that is stored needs a permit; its signature is checked before, from the request's header alone.
#[derive(Debug, Clone)]
pub struct ListenerEndpoint {
    endpoint: Endpoint,
    bodies: Arc<Semaphore>,
}

impl ListenerEndpoint {
    async fn answer(self, request: http::Request<Body>) -> http::Response<Body> {
        // The protocol layer reads forms, which browsers send to a bucket, completely before it checks their signature.
        if is_form(request.headers()) {
            return error_response(
                StatusCode::NOT_IMPLEMENTED,
                "NotImplemented",
                "Browser forms are not supported.",
            );
        }
        if !is_signed(&request) {
            return error_response(StatusCode::FORBIDDEN, "AccessDenied", "The request is not signed.");
        }
        if !matches!(*request.method(), Method::PUT | Method::POST) {
            return self.endpoint.handle(request).await;
        }
        match timeout(BODY_WAIT, self.bodies.acquire()).await {
            Ok(_permit) => self.endpoint.handle(request).await,
            Err(_) => {
                let mut response = error_response(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "SlowDown",
                    "Please reduce your request rate.",
                );
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(BODY_WAIT.as_secs()));
                response
            }
        }
    }
}

fn is_form(headers: &http::HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    kind.trim_ascii_start().get(..10).is_some_and(|start| start.eq_ignore_ascii_case(b"multipart/"))
}

/// Returns true if a request claims to be signed: in its headers or its address, in either version of the protocol.
fn is_signed(request: &http::Request<Body>) -> bool {
    request.headers().contains_key(header::AUTHORIZATION)
        || request.uri().query().is_some_and(|query| {
            form_urlencoded::parse(query.as_bytes())
                .any(|(name, _)| matches!(&*name, "X-Amz-Signature" | "Signature"))
        })
}

fn error_response(status: StatusCode, code: &str, message: &str) -> http::Response<Body> {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    );
    let mut response = http::Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    response
}

impl<B> tower::Service<http::Request<B>> for ListenerEndpoint
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<s3s::StdError>,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let listening = self.clone();
        let request = request.map(convert_body);
        Box::pin(async move { Ok(listening.answer(request).await) })
    }
}
