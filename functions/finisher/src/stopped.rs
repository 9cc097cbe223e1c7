//! Closes each benchmark of a run that was stopped by its budget or by refusals, so that the run keeps its answers in
//! reports. Does the same for a run with results that ended while its errors were asked again.

use bench_domain::run::BenchmarkState;
use bench_domain::sample::SampleState;
use bench_domain::{Code, FailureReason};
use bench_state::{RunWithBenchmarks, SampleRecord, StateError, Transition};

use crate::{FinishError, Finisher};

const BUDGET: &str = "The budget of the run was reached before this benchmark was complete";
const ERRORS: &str = "The run ended before all errors of this benchmark were asked again";
const REFUSED: &str = "The run's requests were refused before this benchmark was complete";

impl Finisher {
    /// Closes the benchmarks of a stopped run that keeps its results, once no attempt works on their samples: reports
    /// then include the answers that were pending, and no answers are added later. Returns `false` while attempts are
    /// in progress, at most until their leases end.
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

    /// Returns true if an attempt may still be working on a sample.
    pub(crate) fn is_in_hand(&self, sample: &SampleRecord) -> bool {
        match &sample.state {
            SampleState::Claimed(lease) => lease.is_live(bench_clock::now(), self.state.epoch()),
            _ => false,
        }
    }
}
