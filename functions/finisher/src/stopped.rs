//! A run that was stopped by its budget or by refusals keeps what was answered: each benchmark is closed with its report.
//! So does a run that had results and ended while its errors were asked again.

use bench_domain::run::BenchmarkState;
use bench_domain::sample::SampleState;
use bench_domain::{Code, FailureReason};
use bench_state::{RunWithBenchmarks, SampleRecord, StateError, Transition};

use crate::{FinishError, Finisher};

const BUDGET: &str = "The budget of the run was reached before this benchmark was complete";
const ERRORS: &str = "The run ended before all errors of this benchmark were asked again";
const REFUSED: &str = "The run's requests were refused before this benchmark was complete";

impl Finisher {
    /// Closes the benchmarks of a run that was stopped and keeps its results, once nobody works on their samples any more: a
    /// report counts the answers that were on their way, and none is added to it later. `false` while some are,
    /// for as long as a lease lasts.
    pub(crate) async fn close_stopped(&self, found: &RunWithBenchmarks) -> Result<bool, FinishError> {
        let mut reports = Vec::with_capacity(found.benchmarks.len());
        for benchmark in &found.benchmarks {
            if !matches!(benchmark.state, BenchmarkState::Running { .. }) {
                continue;
            }
            match self.report(&found.run, benchmark).await? {
                Some((_, in_hand)) if in_hand > 0 => return Ok(false),
                Some((report, _)) => reports.push((benchmark, report)),
                None => {}
            }
        }
        let (code, why) = match found.run.state.failure_reason() {
            Some(FailureReason::Refused) => (Code::AllRequestsRejected, REFUSED),
            Some(FailureReason::Budget) => (Code::BudgetReached, BUDGET),
            None => (Code::RunEnded, ERRORS),
        };
        for (benchmark, report) in reports {
            let now = bench_clock::now();
            let next = benchmark.state.stop(now, report, code, why).map_err(StateError::from)?;
            if self.state.end_benchmark(&found.run, benchmark, &next).await? == Transition::Raced {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether somebody may still be working on a sample.
    pub(crate) fn is_in_hand(&self, sample: &SampleRecord) -> bool {
        match &sample.state {
            SampleState::Claimed(lease) => lease.is_live(bench_clock::now(), self.state.epoch()),
            _ => false,
        }
    }
}
