//! Stops a run when as many samples have failed as its order allows.
//!
//! Adds no calls to services for a run without the limit.

use bench_domain::budget::grouped;
use bench_domain::{Code, Outcome, Timestamp, Verdict};

use crate::Pipeline;
use crate::context::ClaimedSample;
use crate::error::PipelineError;

/// Returns true if a sample with this outcome counts as failed: it has no grade because an error or a limit prevented it. A
/// model that can't take a kind of prompt, such as images, is no failure.
pub(crate) const fn is_failure(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::InfrastructureError | Outcome::TooLong)
}

impl Pipeline {
    /// Counts a sample that failed, and stops the run if it is the last one allowed. A run that is
    /// requeued or resumed starts over: earlier failures say nothing about what works now.
    pub(crate) async fn stop_if_too_many_failures(
        &self,
        claimed: &ClaimedSample,
        verdict: &Verdict,
    ) -> Result<(), PipelineError> {
        let Some(max) = claimed.run.spec.limits.max_failures.map(u64::from) else { return Ok(()) };
        let since = claimed.run.resumption.map_or(Timestamp::default(), |resumption| resumption.at);
        let failures = self.state.count_failure(claimed.sample.run, since, bench_clock::now()).await?;
        if failures < max {
            return Ok(());
        }
        // The reason may quote an item that only the run's owner may see.
        let last = match verdict.code {
            Some(code) if claimed.benchmark.is_private() => code.as_str().to_owned(),
            _ if claimed.benchmark.is_private() => verdict.outcome.as_str().to_owned(),
            _ => verdict.reason.clone(),
        };
        let samples = if failures == 1 {
            "1 sample has".to_owned()
        } else {
            format!("{} samples have", grouped(failures))
        };
        let why = format!(
            "stopped: {samples} failed, and the run was ordered to stop at {}; the last failure: {last}",
            grouped(max)
        );
        self.close_run(claimed, Code::TooManyFailures, &why).await
    }
}
