//! Authentication of requests.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bench_domain::Code;

use super::error::ApiError;
use crate::host::SandboxHost;

/// Rejects requests without the host's key.
pub(super) async fn check(State(host): State<Arc<SandboxHost>>, request: Request, next: Next) -> Response {
    let key = host.config().key.as_ref();
    let allowed = key.is_none_or(|key| key.is_sent_in(request.headers()));
    if allowed {
        return next.run(request).await;
    }
    let detail = "This sandbox host requires a key: send it as `Authorization: Bearer KEY`.";
    ApiError::new(Code::MissingCredentials, detail).into_response()
}
