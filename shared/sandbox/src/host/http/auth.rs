//! Who may use the host.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};

use super::answer::ApiError;
use crate::host::SandboxHost;

/// Lets through who shows the key.
pub(super) async fn check(State(host): State<Arc<SandboxHost>>, request: Request, next: Next) -> Response {
    let allowed = match &host.config().key {
        None => true,
        Some(key) => shown(request.headers()).is_some_and(|shown| key.is(shown)),
    };
    if allowed {
        return next.run(request).await;
    }
    let detail = "This sandbox host is used with its key: send it as `Authorization: Bearer KEY`.";
    ApiError::new(StatusCode::UNAUTHORIZED, detail).into_response()
}

/// The key that a request shows.
fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.as_bytes();
    // Two keys are none.
    if values.next().is_some() {
        return None;
    }
    let (scheme, key) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| key.trim_ascii())
}
