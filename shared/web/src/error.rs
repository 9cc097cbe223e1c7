//! Errors as callers see them.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use bench_domain::{Code, UnusualStatus};
use bench_state::StateError;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::field_error::FieldError;

/// Message that replaces an internal cause in a response.
const INTERNAL: &str = "the server could not answer because of an internal error";

/// Refusal or failure of a request: code, status and sentence.
///
/// Programs act on the code; the sentence is for people. An internal error carries its cause for the log;
/// callers never see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiError {
    code: Code,
    status: StatusCode,
    detail: Detail,
    cause: Option<String>,
    retry_after: Option<Duration>,
    refusal: Option<Box<AdmissionRefusal>>,
    hint: Option<String>,
}

/// Place and code of the problem for which an uploaded task was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AdmissionRefusal {
    /// Stable code of the problem; docs/codes.md lists them as admission codes.
    pub code: &'static str,
    /// File in the archive; null if it is the archive or the task as a whole.
    pub file: Option<String>,
    /// Line of the file, from 1; null if the problem has none.
    pub line: Option<u32>,
}

/// Sentence for people, or the problems of a request with invalid fields.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ErrorDetail)]
#[serde(untagged)]
enum Detail {
    Text(String),
    Fields(Vec<FieldError>),
}

/// Body of every error.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ErrorBody {
    /// Sentence for people. For a request with invalid fields (422), a list of problems instead, each with `type`,
    /// `loc`, `msg` and `input`.
    detail: Detail,
    /// Stable code for programs. `detail` may be reworded.
    #[schema(value_type = CodeSchema)]
    code: Code,
    /// Problem of a task that was refused. Left out for all other errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = AdmissionRefusal, required = false)]
    refusal: Option<Box<AdmissionRefusal>>,
    /// What to do, where `detail` is a sentence of the earlier runner of terminal tasks that doesn't say it. Left out for all
    /// other errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    hint: Option<String>,
}

impl ApiError {
    /// Creates an error with this code and its status.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self::with_detail(code, Detail::Text(detail.into()))
    }

    /// Creates an error whose status differs from that of its code.
    pub fn unusual(exception: UnusualStatus, detail: impl Into<String>) -> Self {
        Self { status: status(Some(exception.status())), ..Self::new(exception.code(), detail) }
    }

    fn with_detail(code: Code, detail: Detail) -> Self {
        let status = status(code.status());
        Self { code, status, detail, cause: None, retry_after: None, refusal: None, hint: None }
    }

    /// Creates a 413 for a body of more than `bytes_max` bytes.
    pub fn too_large(bytes_max: usize) -> Self {
        let detail = format!("the request body has more than {bytes_max} bytes, which is the maximum");
        Self::new(Code::BodyTooLarge, detail)
    }

    /// Adds the time after which the caller may retry.
    #[must_use]
    pub const fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Adds the problem of a task that was refused.
    #[must_use]
    pub fn refused_for(mut self, refusal: AdmissionRefusal) -> Self {
        self.refusal = Some(Box::new(refusal));
        self
    }

    /// Adds what to do to a sentence that old clients know and that must stay as it is.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Creates a 422 with every problem of the request.
    pub fn validation(problems: Vec<FieldError>) -> Self {
        Self::with_detail(Code::InvalidRequest, Detail::Fields(problems))
    }

    /// Creates a 422 for a body that isn't JSON.
    pub(crate) fn invalid_json(problem: FieldError) -> Self {
        Self::with_detail(Code::InvalidJson, Detail::Fields(vec![problem]))
    }

    /// Creates a 500. The cause is logged when the response is made.
    pub fn internal(cause: impl Display) -> Self {
        Self { cause: Some(cause.to_string()), ..Self::new(Code::InternalError, INTERNAL) }
    }

    /// Creates an error from an extractor's refusal, with the status that the extractor chose.
    pub(crate) fn from_extractor(status: StatusCode, detail: &str) -> Self {
        let code = match status {
            _ if status.is_server_error() => return Self::internal(detail),
            StatusCode::PAYLOAD_TOO_LARGE => Code::BodyTooLarge,
            _ => Code::InvalidRequest,
        };
        Self { status, ..Self::new(code, detail) }
    }

    /// Puts the subject before the sentence. Leaves internal errors and lists of problems unchanged.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        if let (None, Detail::Text(text)) = (&self.cause, &mut self.detail) {
            *text = format!("{what}: {text}");
        }
        self
    }

    /// Returns the code.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Returns the status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the message as text, for callers in this process. It includes the cause of an internal error,
    /// which HTTP clients never see.
    pub fn message(&self) -> String {
        match (&self.cause, &self.detail) {
            (Some(cause), _) => cause.clone(),
            (None, Detail::Text(text)) => text.clone(),
            (None, Detail::Fields(problems)) => {
                problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

impl Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message())
    }
}

impl std::error::Error for ApiError {}

impl From<StateError> for ApiError {
    fn from(error: StateError) -> Self {
        Self::internal(error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Some(cause) = &self.cause {
            tracing::error!(http.status = self.status.as_u16(), error = %cause, "A request failed: {cause}");
        }
        let body = ErrorBody { detail: self.detail, code: self.code, refusal: self.refusal, hint: self.hint };
        let mut response = (self.status, Json(body)).into_response();
        if let Some(wait) = self.retry_after {
            // Whole seconds, rounded up, so that callers don't retry too early.
            let seconds = HeaderValue::from(wait.as_millis().div_ceil(1_000).max(1) as u64);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Converts the status of a code. A code without a status is never meant for a response, so it becomes 500.
fn status(status: Option<u16>) -> StatusCode {
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Schema of [`Code`] in the OpenAPI document: a string with one of the known names.
#[derive(Debug)]
pub struct CodeSchema;

impl PartialSchema for CodeSchema {
    fn schema() -> RefOr<Schema> {
        let mut description = "Stable code of an error. Later versions may add codes.\n".to_owned();
        for code in Code::ALL {
            description.push_str(&format!("\n- `{code}`: {}", code.meaning()));
        }
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(description))
            .enum_values(Some(Code::ALL.iter().map(|code| code.as_str())))
            .into()
    }
}

impl ToSchema for CodeSchema {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Code")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cause_is_logged_and_not_returned() {
        let error = ApiError::internal("table bench-state is on fire");
        assert_eq!(error.message(), "table bench-state is on fire");
        let response = error.into_response();
        assert_eq!(response.status(), 500);
        let body = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body, serde_json::json!({ "detail": INTERNAL, "code": "internal_error" }));
    }

    #[tokio::test]
    async fn a_refusal_is_one_sentence_and_a_code() {
        let response = ApiError::new(Code::RunNotFound, "Run not found").into_response();
        assert_eq!(response.status(), 404);
        let body = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
        assert_eq!(&body[..], br#"{"detail":"Run not found","code":"run_not_found"}"#);
        let response = ApiError::new(Code::RunNotFound, "Run not found").hint("look").into_response();
        let body = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
        assert_eq!(&body[..], br#"{"detail":"Run not found","code":"run_not_found","hint":"look"}"#);
    }
}
