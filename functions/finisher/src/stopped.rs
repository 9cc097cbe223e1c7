//! Closes each benchmark of a run that ended early, so that the run keeps its answers in reports.
//!
//! The benchmarks of a run that was stopped by its budget, by refusals or by failures fail, and so do those of a run with
//! results that ended while its errors were asked again. The benchmarks of a canceled run are skipped.

use bench_domain::run::BenchmarkState;
use bench_domain::sample::SampleState;
use bench_domain::{Code, FailureReason, RunState};
use bench_state::{RunRecord, RunWithBenchmarks, SampleRecord, StateError, Transition};

use crate::{FinishError, Finisher, Report};

const BUDGET: &str = "The budget of the run was reached before this benchmark was complete";
const ERRORS: &str = "The run ended before all errors of this benchmark were asked again";
const FAILURES: &str = "Too many samples of the run failed before this benchmark was complete";
const REFUSED: &str = "The run's requests were refused before this benchmark was complete";

impl Finisher {
    /// Closes the planned benchmarks of a run that ended early, once no attempt works on their samples: reports then
    /// include the answers that were pending, and no answers are added later. Returns `false` while attempts are in
    /// progress, at most until their leases end.
    pub(crate) async fn close_stopped(&self, found: &RunWithBenchmarks) -> Result<bool, FinishError> {
        let mut reports = Vec::with_capacity(found.benchmarks.len());
        for benchmark in &found.benchmarks {
            if !matches!(benchmark.state, BenchmarkState::Running { .. }) {
                continue;
            }
            match self.report(&found.run, benchmark).await? {
                Some(Report { in_hand, .. }) if in_hand > 0 => return Ok(false),
                Some(Report { report, index, .. }) => reports.push((benchmark, report, index)),
                None => {}
            }
        }
        let run = &found.run;
        let failed = match run.state.failure_reason() {
            Some(FailureReason::Refused) => Some((Code::AllRequestsRejected, REFUSED)),
            Some(FailureReason::Budget) => Some((Code::BudgetReached, BUDGET)),
            Some(FailureReason::Failures) => Some((Code::TooManyFailures, FAILURES)),
            None if run.errors_only => Some((Code::RunEnded, ERRORS)),
            None => None,
        };
        for (benchmark, report, index) in reports {
            self.note_index(run, benchmark, index).await?;
            let now = bench_clock::now();
            let next = match failed {
                Some((code, why)) => benchmark.state.stop(now, report, code, why),
                None => benchmark.state.skip(now, Some(report), Code::RunEnded, why_skipped(run)),
            };
            let next = next.map_err(StateError::from)?;
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

/// Returns the reason for which the open benchmarks of a run that is over are skipped.
pub(crate) const fn why_skipped(run: &RunRecord) -> &'static str {
    match run.state {
        RunState::Canceled { .. } => "Run canceled",
        _ => "The run ended before this benchmark was complete",
    }
}
