//! The services behind a socket, for programs in other processes.
//!
//! Programs with this address in `AWS_ENDPOINT_URL` use the same tables, queues and buckets as this process. DynamoDB
//! and SQS don't authenticate callers, so bind the listener to loopback. S3 checks signatures.

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

/// Maximum size of a request to DynamoDB or SQS, in bytes: 16 MB of a batch write plus its JSON.
const JSON_BYTES_MAX: usize = 24 * 1024 * 1024;

/// Content type of the query protocol, which SNS uses. S3 requests of an SDK never have it.
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// Number of connections that a listener has accepted. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Connections(Arc<AtomicU64>);

impl Connections {
    /// Returns the number of connections so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Answers all requests to `listener` until the future is dropped or the listener fails. Counts every accepted
/// connection.
///
/// # Errors
/// Returns an error if the listener fails.
pub async fn serve(
    embedded: &Embedded,
    listener: TcpListener,
    connections: Connections,
) -> std::io::Result<()> {
    let Some(router) = router(embedded) else {
        return Err(std::io::Error::other("another process owns the services"));
    };
    let listener = listener.tap_io(move |stream| {
        connections.0.fetch_add(1, Ordering::Relaxed);
        // Without it a response may wait for the acknowledgment of the previous one, but everything still works.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await
}

/// Returns a router that answers all requests as the services do; `None` if another process owns them.
pub fn router(embedded: &Embedded) -> Option<Router> {
    let services = Arc::clone(embedded.services()?);
    Some(Router::new().fallback(handle).layer(DefaultBodyLimit::disable()).with_state(services))
}

async fn handle(State(services): State<Arc<Services>>, request: Request) -> Response {
    let headers = request.headers();
    let form = headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(FORM));
    if !headers.contains_key("x-amz-target") && !form {
        let Some(endpoint) = services.s3_endpoint() else {
            return error_response(StatusCode::SERVICE_UNAVAILABLE, "the services are closed");
        };
        return handle_s3(endpoint, request).await;
    }
    let (head, body) = request.into_parts();
    let body = match axum::body::to_bytes(body, JSON_BYTES_MAX).await {
        Ok(body) => body,
        Err(error) => return error_response(StatusCode::PAYLOAD_TOO_LARGE, &error.to_string()),
    };
    let request = http::Request::from_parts(head, SdkBody::from(body));
    let request = match HttpRequest::try_from(request) {
        Ok(request) => request,
        Err(error) => return error_response(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let response = match services.route(request, None).await {
        Ok(response) => response.try_into_http1x(),
        // A broken connection can't be simulated here; clients retry a 500 in the same way.
        Err(error) => return error_response(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error:?}")),
    };
    match response {
        Ok(response) => response.map(Body::new).into_response(),
        Err(error) => error_response(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

async fn handle_s3(endpoint: s3::Endpoint, request: Request) -> Response {
    endpoint.handle(request.map(s3::convert_body)).await.map(Body::new).into_response()
}

fn error_response(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "__type": "InternalServerError", "message": message });
    (status, [("content-type", "application/x-amz-json-1.0")], Bytes::from(body.to_string())).into_response()
}
