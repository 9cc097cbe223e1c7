//! View of a run, without the parts that depend on other runs.
use bench_state::{RunWithBenchmarks, ShardCount};
use bench_web::ApiError;
use bench_web::views::{RunView, benchmark_counts};
use futures_util::future::try_join_all;

use crate::Api;
use crate::catalog::benchmarks::known_items;

/// Returns the view of a run without its position in the queue.
pub(crate) async fn view_without_position(api: &Api, found: &RunWithBenchmarks) -> Result<RunView, ApiError> {
    let run = found.run.spec.id;
    let counts: Vec<ShardCount> =
        try_join_all(found.benchmarks.iter().map(|benchmark| benchmark_counts(&api.state, run, benchmark)))
            .await?;
    let view = RunView::new(found, &counts, known_items, bench_clock::now());
    match view.status.is_open() && !api.state.works_on(&found.run) {
        true => Ok(view.into_interrupted()),
        false => Ok(view),
    }
}
