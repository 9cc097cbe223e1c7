//! The dataset of tasks.

use bench_benchmarks::Benchmark;
use bench_domain::Code;
use bench_runs::TERMINAL_TASKS;
use bench_state::TaskRecord;
use bench_tasks::TaskError;
use bench_web::ApiError;

use super::visible::task_error;
use crate::Api;

/// Returns the benchmark whose items are tasks.
///
/// # Errors
/// 501 in a program without it.
pub(crate) fn benchmark() -> Result<&'static dyn Benchmark, ApiError> {
    bench_benchmarks::find(TERMINAL_TASKS).ok_or_else(|| {
        ApiError::new(Code::NotSupported, format!("this program has no benchmark `{TERMINAL_TASKS}`"))
    })
}

/// Imports the dataset of tasks.
pub(crate) async fn import(
    api: &Api,
    tasks: &[TaskRecord],
) -> Result<bench_domain::run::DatasetChoice, ApiError> {
    let dataset = api.tasks.dataset(tasks, benchmark()?).await;
    dataset.map_err(|error| match error {
        error @ TaskError::ArchiveMissing(_) => ApiError::new(Code::DatasetUnavailable, error.to_string()),
        error => task_error(error),
    })
}
