//! View of a run, without the parts that depend on other runs.

use std::sync::Arc;

use bench_runs::TERMINAL_TASKS;
use bench_state::{RunWithBenchmarks, ShardCount};
use bench_web::ApiError;
use bench_web::views::{RunView, benchmark_counts};
use futures_util::future::try_join_all;

use crate::Api;
use crate::catalog::benchmarks::known_items;
use crate::context::lock;

/// Maximum number of tasks that a run's view names.
const TASKS_MAX: u64 = 5;
/// Maximum number of runs whose tasks are cached.
const CACHED_TASKS_MAX: usize = 10_000;

/// Returns the view of a run without its position in the queue.
pub(crate) async fn view_without_position(api: &Api, found: &RunWithBenchmarks) -> Result<RunView, ApiError> {
    let run = found.run.spec.id;
    let counts: Vec<ShardCount> =
        try_join_all(found.benchmarks.iter().map(|benchmark| benchmark_counts(&api.state, run, benchmark)))
            .await?;
    let view = RunView::new(found, &counts, known_items, bench_clock::now());
    let view = view.with_tasks(tasks(api, found).await?);
    match view.status.is_open() && !api.state.works_on(&found.run) {
        true => Ok(view.into_interrupted()),
        false => Ok(view),
    }
}

/// Returns the names of the first tasks of a planned run of terminal tasks. They are read once by a process.
async fn tasks(api: &Api, found: &RunWithBenchmarks) -> Result<Option<Vec<String>>, ApiError> {
    let Some(benchmark) = found.benchmark(TERMINAL_TASKS) else { return Ok(None) };
    let Some(plan) = &benchmark.plan else { return Ok(None) };
    let key = (found.run.spec.id, plan.attempt);
    if let Some(known) = lock(&api.run_tasks).get(&key).map(Arc::clone) {
        return Ok(Some(known.to_vec()));
    }
    let first = api.state.first_samples(key.0, benchmark, TASKS_MAX).await?;
    let names: Arc<[String]> = first.into_iter().filter_map(|sample| sample.source_id).collect();
    // A plan may still be in progress.
    if names.len() as u64 == plan.items.min(TASKS_MAX) {
        let mut cached = lock(&api.run_tasks);
        if cached.len() >= CACHED_TASKS_MAX {
            cached.clear();
        }
        cached.insert(key, Arc::clone(&names));
    }
    Ok(Some(names.to_vec()))
}
