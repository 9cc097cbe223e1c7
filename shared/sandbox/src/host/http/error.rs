//! Error responses of the HTTP API.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use bench_domain::{Code, UnusualStatus};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::host::HostError;

/// Time after which to try again if too many requests are waiting.
const QUEUE_WAIT: Duration = Duration::from_secs(5);

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
    /// Creates an error with this code and its status.
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self::with_status(code, code.status(), detail)
    }

    /// Creates an error whose status isn't that of its code.
    fn unusual(exception: UnusualStatus, detail: String) -> Self {
        Self::with_status(exception.code(), Some(exception.status()), detail)
    }

    fn with_status(code: Code, status: Option<u16>, detail: impl Into<String>) -> Self {
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { code, status, detail: detail.into(), retry_after: None, over_limit: None }
    }

    pub(super) fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }
}

impl From<HostError> for ApiError {
    fn from(error: HostError) -> Self {
        let detail = error.to_string();
        match error {
            HostError::Invalid(_) => Self::new(Code::InvalidRequest, detail),
            HostError::Gone(_) => Self::new(Code::SandboxNotFound, detail),
            HostError::OverLimit { limit, .. } => {
                Self { over_limit: Some(limit), ..Self::new(Code::SandboxOverLimit, detail) }
            }
            HostError::Conflict(_) => Self::new(Code::FileConflict, detail),
            HostError::TooManyRequests(_) => {
                Self::unusual(UnusualStatus::SandboxQueueFull, detail).retry_after(QUEUE_WAIT)
            }
            HostError::Full { retry_after, .. } => {
                Self::new(Code::ServerBusy, detail).retry_after(retry_after)
            }
            HostError::Unavailable(_) => Self::new(Code::NotSupported, detail),
            HostError::Failed(_) => {
                tracing::error!(error = %detail, "A request failed: {detail}");
                Self::new(Code::InternalError, detail)
            }
        }
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
