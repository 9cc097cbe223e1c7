//! Refused orders as HTTP errors.

use bench_domain::{Code, UnusualStatus};
use bench_runs::RunError;
use bench_web::ApiError;

/// Converts the refusal of an order to an HTTP error.
pub(crate) fn refusal(error: RunError) -> ApiError {
    let detail = sentence(&error);
    let refused = match &error {
        RunError::State(_) | RunError::Internal(_) => return ApiError::internal(error),
        RunError::RunOpen { .. } => ApiError::unusual(UnusualStatus::RejudgeOfOpenRun, detail),
        RunError::AnswersDeleted => ApiError::unusual(UnusualStatus::RejudgeOfDeletedRun, detail),
        _ => ApiError::new(error.code(), detail),
    };
    let refused = match error.code() {
        Code::ScopeMissing => refused.hint(
            "sign in again and allow this site to call models, or order with a key of your own, as `Authorization: Bearer KEY`",
        ),
        _ => refused,
    };
    match error.retry_after() {
        Some(wait) => refused.after(wait),
        None => refused,
    }
}

/// Returns the error message. For data that requests carry in a header, the message names the header.
fn sentence(error: &RunError) -> String {
    match error {
        RunError::JudgeNeedsKey(judge) => format!(
            "the judge `{judge}` needs a key of your own; send it as `X-Judge-Authorization: Bearer KEY`, or leave \
             `judge.model_id` out"
        ),
        RunError::UserNeedsKey(user) => format!(
            "the user model `{user}` needs a key of your own; send it as `X-User-Authorization: Bearer KEY`, or name one of \
             the provider that your key is for"
        ),
        RunError::KeyReused => {
            "this `Idempotency-Key` was used for another order; use a new one for each order".to_owned()
        }
        RunError::EarlierRunDeleted => {
            "the run ordered with this `Idempotency-Key` was deleted; use a new key to order again".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::response::IntoResponse;
    use bench_domain::{RunId, RunStatus};
    use bench_runs::AccessDenied;

    use super::*;

    #[test]
    fn statuses_are_those_that_clients_know() {
        let wait = Duration::from_secs(7);
        for (error, status, code, after) in [
            (RunError::ModelNotFound, 404, Code::ModelNotFound, None),
            (RunError::ProviderUnknown, 400, Code::UnsupportedProvider, None),
            (RunError::ResponsesMisplaced, 400, Code::InvalidModel, None),
            (RunError::PriceUnknown, 400, Code::PriceUnknown, None),
            (RunError::JudgeNeedsKey("a/b".into()), 400, Code::JudgeKeyRequired, None),
            (RunError::UserNeedsKey("a/b".into()), 400, Code::UserKeyRequired, None),
            (RunError::Judge(Box::new(RunError::ModelNotFound)), 404, Code::ModelNotFound, None),
            (RunError::NoBenchmarks, 400, Code::NoBenchmarks, None),
            (RunError::DatasetNotAvailable("gated".into()), 400, Code::DatasetUnavailable, None),
            (
                RunError::AccessDenied(AccessDenied::Benchmark("hle".parse().unwrap())),
                403,
                Code::GatedBenchmark,
                None,
            ),
            (RunError::TooManySamples { planned: 2, limit: 1 }, 422, Code::SamplesLimit, None),
            (RunError::TooManyOrders { limit: 1, wait }, 429, Code::OrderRateLimit, Some("7")),
            (RunError::TooManyOpenRuns { limit: 1 }, 429, Code::OpenRunsLimit, Some("60")),
            (RunError::KeyReused, 422, Code::IdempotencyKeyReused, None),
            (RunError::EarlierRunDeleted, 409, Code::RunDeleted, None),
            (RunError::AnswersDeleted, 400, Code::RunDeleted, None),
            (RunError::NotCreated, 409, Code::ConcurrentChange, None),
            (RunError::RunNotFound, 404, Code::RunNotFound, None),
            (
                RunError::RunOpen { run: RunId::random(), status: RunStatus::Running },
                409,
                Code::RunNotOver,
                None,
            ),
            (RunError::NoAnswers, 400, Code::NothingToJudge, None),
            (RunError::Internal("the cause".into()), 500, Code::InternalError, None),
        ] {
            let shown = error.to_string();
            let refused = refusal(error);
            assert_eq!((refused.status().as_u16(), refused.code()), (status, code), "{shown}");
            let response = refused.into_response();
            let told = response.headers().get("retry-after").map(|wait| wait.to_str().unwrap());
            assert_eq!(told, after, "{shown}");
        }
    }
}
