//! Adds a run that is over to the metrics.

use bench_domain::{Cost, RunId, RunStatus};
use bench_lambda::metrics;
use bench_state::RunWithBenchmarks;

use crate::Finisher;

impl Finisher {
    /// Counts the end of a run, once per generation. Failures are logged and otherwise ignored.
    pub(crate) async fn count_end(&self, run: RunId) {
        match self.state.run_with_benchmarks(run).await {
            Ok(Some(found)) => count(&found),
            Ok(None) => {}
            Err(error) => tracing::debug!(run.id = %run, %error, "The end of run {run} was not counted"),
        }
    }
}

fn count(found: &RunWithBenchmarks) {
    match found.run.state.status() {
        RunStatus::Succeeded => metrics::count(metrics::RUNS_SUCCEEDED, 1.0),
        RunStatus::Failed => metrics::count(metrics::RUNS_FAILED, 1.0),
        _ => {}
    }
    metrics::count(metrics::MODEL_SPEND_USD, cost_usd(found));
}

/// Returns the cost of the answers, their judging and the user simulator at the prices of the order, as far as it is known. A run that
/// was requeued or resumed is counted with all its answers each time.
fn cost_usd(found: &RunWithBenchmarks) -> f64 {
    let reports = found.benchmarks.iter().filter_map(|benchmark| benchmark.state.report());
    reports
        .flat_map(|report| [report.cost, report.judge_cost, report.user_cost])
        .flatten()
        .map(Cost::total_usd)
        .sum()
}
