//! Parts of requests that several handlers read.

use bench_domain::{Code, RunId};
use bench_state::{RunRecord, RunWithBenchmarks};
use bench_web::{ApiError, Caller};

use crate::Api;

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

/// Returns a run that the caller may read. To all others, a private run doesn't exist.
///
/// # Errors
/// 404 for a run that the caller may not read, or that doesn't exist.
pub(crate) async fn visible_run(api: &Api, run: RunId, caller: &Caller) -> Result<RunRecord, ApiError> {
    let found = api.state.run(run).await?.filter(|record| caller.sees_run(&record.spec));
    found.ok_or_else(run_not_found)
}

/// Returns a run with its benchmarks, like [`visible_run`].
///
/// # Errors
/// 404 for a run that the caller may not read, or that doesn't exist.
pub(crate) async fn visible_run_with_benchmarks(
    api: &Api,
    run: RunId,
    caller: &Caller,
) -> Result<RunWithBenchmarks, ApiError> {
    let found = api.state.run_with_benchmarks(run).await?.filter(|found| caller.sees_run(&found.run.spec));
    found.ok_or_else(run_not_found)
}
