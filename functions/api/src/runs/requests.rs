//! Parts of requests that several handlers read.

use bench_domain::{Code, RunId};
use bench_web::ApiError;

/// The run that a path names.
///
/// # Errors
/// 404 when that is no UUID: there is no such run.
pub(crate) fn run_id(text: &str) -> Result<RunId, ApiError> {
    // A page that is asked for with a space in front is not a run; `FromStr` would trim it.
    if text.trim() != text {
        return Err(run_not_found());
    }
    text.parse().map_err(|_| run_not_found())
}

pub(crate) fn run_not_found() -> ApiError {
    ApiError::new(Code::RunNotFound, "Run not found")
}
