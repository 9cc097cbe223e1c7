//! The services behind a socket: for programs in processes of their own.
//!
//! Whoever finds this address in `AWS_ENDPOINT_URL` works on the same tables, queues and buckets as this process.
//! DynamoDB and SQS take a caller's word for who it is, so bind the listener to loopback; S3 checks signatures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use http::StatusCode;
use tokio::net::TcpListener;

use crate::Embedded;
use crate::connector::Services;
use crate::s3;

/// Largest request to DynamoDB or SQS, in bytes: 16 MB of a batch write, and its JSON around it.
const JSON_BYTES_MAX: usize = 24 * 1024 * 1024;

/// The query protocol, which SNS speaks; no S3 request of an SDK has it.
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// How many connections a listener has accepted so far. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Connections(Arc<AtomicU64>);

impl Connections {
    /// Connections so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Answers every request that comes to `listener`, until the future is dropped or the listener fails. Every
/// connection is counted when it is accepted.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    embedded: &Embedded,
    listener: TcpListener,
    connections: Connections,
) -> std::io::Result<()> {
    let services = Arc::clone(embedded.services());
    let router = Router::new().fallback(answer).layer(DefaultBodyLimit::disable()).with_state(services);
    let listener = listener.tap_io(move |stream| {
        connections.0.fetch_add(1, Ordering::Relaxed);
        // Without it an answer may wait for the acknowledgement of the one before; it works all the same.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await
}

async fn answer(State(services): State<Arc<Services>>, request: Request) -> Response {
    let headers = request.headers();
    let form = headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(FORM));
    if !headers.contains_key("x-amz-target") && !form {
        let Some(endpoint) = services.s3_endpoint() else {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "the services are closed");
        };
        return from_s3(endpoint, request).await;
    }
    let (head, body) = request.into_parts();
    let body = match axum::body::to_bytes(body, JSON_BYTES_MAX).await {
        Ok(body) => body,
        Err(error) => return refuse(StatusCode::PAYLOAD_TOO_LARGE, &error.to_string()),
    };
    let request = http::Request::from_parts(head, SdkBody::from(body));
    let request = match HttpRequest::try_from(request) {
        Ok(request) => request,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let response = match services.route(request, None).await {
        Ok(response) => response.try_into_http1x(),
        // A connection that breaks off cannot be shown here; clients repeat a 500 as they repeat that.
        Err(error) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error:?}")),
    };
    match response {
        Ok(response) => response.map(Body::new).into_response(),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

async fn from_s3(endpoint: s3::Endpoint, request: Request) -> Response {
    endpoint.handle(request.map(s3::body_of)).await.map(Body::new).into_response()
}

fn refuse(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "__type": "InternalServerError", "message": message });
    (status, [("content-type", "application/x-amz-json-1.0")], Bytes::from(body.to_string())).into_response()
}
