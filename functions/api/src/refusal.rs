//! What is refused by the crate that makes runs, as HTTP says it.

use bench_runs::{Kind, RunError};
use bench_web::ApiError;
use http::StatusCode;

/// The answer to an order that led to no run.
pub fn refusal(error: RunError) -> ApiError {
    let told = |status| ApiError::new(error.code(), sentence(&error)).with_status(status);
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

/// What an error says. Where it is about something that requests have in a header, it names the header.
fn sentence(error: &RunError) -> String {
    match error {
        RunError::JudgeNeedsKey(judge) => format!(
            "The judge {judge} needs a key of your own: send it as X-Judge-Authorization: Bearer, or leave \
             judge.model_id out."
        ),
        RunError::KeyReused => "This Idempotency-Key was used for another order.".to_owned(),
        RunError::EarlierRunDeleted => "The run made under this Idempotency-Key was deleted.".to_owned(),
        _ => error.to_string(),
    }
}
