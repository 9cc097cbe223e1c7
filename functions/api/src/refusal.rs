//! What is refused by the crate that makes runs, as HTTP says it.

use bench_runs::{Kind, RunError};
use bench_web::ApiError;
use http::StatusCode;

/// The answer to an order that led to no run.
pub fn refusal(error: RunError) -> ApiError {
    let told = |status| ApiError::new(error.code(), error.to_string()).with_status(status);
    match error.kind() {
        Kind::Invalid => told(StatusCode::BAD_REQUEST),
        Kind::OutOfBounds => told(StatusCode::UNPROCESSABLE_ENTITY),
        Kind::Forbidden => told(StatusCode::FORBIDDEN),
        Kind::NotFound => told(StatusCode::NOT_FOUND),
        Kind::Conflict => told(StatusCode::CONFLICT),
        Kind::TooMany { after } => told(StatusCode::TOO_MANY_REQUESTS).after(after),
        Kind::Internal => ApiError::internal(error),
    }
}
