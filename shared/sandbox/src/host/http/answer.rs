//! Errors as callers see them.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::host::HostError;

/// A status, one sentence, and when to ask again.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    detail: String,
    retry_after: Option<Duration>,
    /// The limit that the sandbox was ended for.
    over_limit: Option<String>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None, over_limit: None }
    }

    pub(super) fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }
}

impl From<HostError> for ApiError {
    fn from(error: HostError) -> Self {
        let (status, retry_after) = match &error {
            HostError::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, None),
            HostError::NotHere(_) => (StatusCode::BAD_REQUEST, None),
            HostError::Gone(_) | HostError::OverLimit { .. } => (StatusCode::NOT_FOUND, None),
            HostError::Conflict(_) => (StatusCode::CONFLICT, None),
            HostError::TooMany(_) => (StatusCode::TOO_MANY_REQUESTS, Some(Duration::from_secs(5))),
            HostError::Full { retry_after, .. } => (StatusCode::SERVICE_UNAVAILABLE, Some(*retry_after)),
            HostError::Unable(_) => (StatusCode::NOT_IMPLEMENTED, None),
            HostError::Failed(_) => (StatusCode::INTERNAL_SERVER_ERROR, None),
        };
        if matches!(error, HostError::Failed(_)) {
            tracing::error!(%error, "A request failed: {error}");
        }
        let detail = error.to_string();
        let over_limit = match error {
            HostError::OverLimit { limit, .. } => Some(limit),
            _ => None,
        };
        Self { status, detail, retry_after, over_limit }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut said = json!({ "detail": self.detail });
        if let Some(limit) = self.over_limit {
            said["overLimit"] = limit.into();
        }
        let mut response = (self.status, Json(said)).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        response
    }
}
