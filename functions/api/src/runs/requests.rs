//! Parts of requests that several handlers read.

use bench_domain::{Code, RunId};
use bench_web::ApiError;

/// Parses the run id in a path.
///
/// # Errors
/// 404 when it isn't a UUID, since no such run exists.
pub(crate) fn run_id(text: &str) -> Result<RunId, ApiError> {
    // `FromStr` would trim a leading space, but a path with a space names no run.
    if text.trim() != text {
        return Err(run_not_found());
    }
    text.parse().map_err(|_| run_not_found())
}

pub(crate) fn run_not_found() -> ApiError {
    ApiError::new(Code::RunNotFound, "Run not found")
}
