//! Error responses of the HTTP API.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use bench_domain::Code;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::host::HostError;

/// An error with its code, its status, one sentence, and when to try again.
#[derive(Debug)]
pub(super) struct ApiError {
    code: Code,
    status: StatusCode,
    detail: String,
    retry_after: Option<Duration>,
    /// Description of the limit that the sandbox was ended for.
    over_limit: Option<String>,
}

impl ApiError {
    /// Creates an error with this code and its usual status.
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        let status = code.status().and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { code, status, detail: detail.into(), retry_after: None, over_limit: None }
    }

    pub(super) fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }
}

impl From<HostError> for ApiError {
    fn from(error: HostError) -> Self {
        let (code, status, retry_after) = match &error {
            HostError::Invalid(_) => (Code::InvalidRequest, StatusCode::UNPROCESSABLE_ENTITY, None),
            HostError::Unsupported(_) => (Code::NotSupported, StatusCode::BAD_REQUEST, None),
            HostError::Gone(_) => (Code::SandboxNotFound, StatusCode::NOT_FOUND, None),
            HostError::OverLimit { .. } => (Code::SandboxOverLimit, StatusCode::NOT_FOUND, None),
            HostError::Conflict(_) => (Code::FileConflict, StatusCode::CONFLICT, None),
            HostError::TooManyRequests(_) => {
                (Code::ServerBusy, StatusCode::TOO_MANY_REQUESTS, Some(Duration::from_secs(5)))
            }
            HostError::Full { retry_after, .. } => {
                (Code::ServerBusy, StatusCode::SERVICE_UNAVAILABLE, Some(*retry_after))
            }
            HostError::Unavailable(_) => (Code::NotSupported, StatusCode::NOT_IMPLEMENTED, None),
            HostError::Failed(_) => (Code::InternalError, StatusCode::INTERNAL_SERVER_ERROR, None),
        };
        if matches!(error, HostError::Failed(_)) {
            tracing::error!(%error, "A request failed: {error}");
        }
        let detail = error.to_string();
        let over_limit = match error {
            HostError::OverLimit { limit, .. } => Some(limit),
            _ => None,
        };
        Self { code, status, detail, retry_after, over_limit }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut body = json!({ "detail": self.detail, "code": self.code });
        if let Some(limit) = self.over_limit {
            body["overLimit"] = limit.into();
        }
        let mut response = (self.status, Json(body)).into_response();
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
