//! Handles failures of sandboxes and their host, for the sample and the run.

use std::time::Duration;

use bench_domain::sample::{AttemptHistory, backoff};
use bench_domain::{Code, Job};
use bench_lambda::metrics;
use bench_sandy::job::{JobError, JobErrorKind};

use super::{JobTurn, new_round, saved_job};
use crate::Pipeline;
use crate::error::PipelineError;

/// Maximum time for which a sample waits for a sandbox host that can't be reached or sends unusable
/// responses. A host that reports being full is waited for as long as a busy provider.
const HOST_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Maximum number of sandboxes lost under a job: a host that preempts one will do so again.
const ROUNDS_MAX: u32 = 5;
/// Wait for a full host that doesn't say how long to wait.
const FULL_WAIT: Duration = Duration::from_secs(2);

impl Pipeline {
    /// Handles a failed step of the job: repeats the step, starts the job again in another sandbox, or ends
    /// the sample or the run.
    pub(super) async fn handle_job_failure(
        &self,
        turn: JobTurn<'_>,
        job: &Job,
        error: &JobError,
    ) -> Result<(), PipelineError> {
        let why = format!("the sandbox host: {error}");
        // The host was sent a key, which its errors may quote.
        let why = turn.claimed.run.keys.redact(&why);
        let waits = turn.claimed.record.history.waits;
        match error.kind() {
            JobErrorKind::Gone => self.next_round(turn, job, "the sandbox was lost").await,
            JobErrorKind::Busy => {
                let wait = error.retry_after().unwrap_or(FULL_WAIT);
                let patience = self.config.patience;
                self.wait_or_end(turn.claimed, Code::SandboxUnavailable, &why, wait, patience).await
            }
            JobErrorKind::Transient => {
                tracing::info!(run.id = %turn.claimed.sample.run, "Sample {}: {why}", turn.claimed.sample);
                let wait = backoff(waits.saturating_add(1));
                self.wait_or_end(turn.claimed, Code::SandboxUnavailable, &why, wait, HOST_PATIENCE).await
            }
            JobErrorKind::Refused => {
                if let Some(sandbox) = job.state.sandbox() {
                    self.end_sandbox(sandbox).await;
                }
                self.fail_run(turn.claimed, Code::SandboxNotConfigured, &why).await
            }
            JobErrorKind::Fatal => {
                if let Some(sandbox) = job.state.sandbox() {
                    self.end_sandbox(sandbox).await;
                }
                self.end_without_verdict(turn.claimed, fatal_code(error), &why).await
            }
        }
    }

    /// Starts another round in a new sandbox, or ends the sample after too many rounds.
    pub(super) async fn next_round(
        &self,
        turn: JobTurn<'_>,
        job: &Job,
        why: &str,
    ) -> Result<(), PipelineError> {
        metrics::count(metrics::SANDBOXES_LOST, 1.0);
        if let Some(sandbox) = job.state.sandbox() {
            self.end_sandbox(sandbox).await;
        }
        let round = job.round.saturating_add(1);
        if round > ROUNDS_MAX {
            let why = format!("{why}, the last time in sandbox {}", job.round);
            return self.end_without_verdict(turn.claimed, Code::SandboxFailed, &why).await;
        }
        tracing::info!(run.id = %turn.claimed.sample.run, "Sample {}: {why}; another sandbox is asked for", turn.claimed.sample);
        self.begin_round(turn, &new_round(round)).await
    }

    /// Saves a new round and leaves it to the next attempt. Bodies stored in earlier rounds are not read
    /// again.
    pub(super) async fn begin_round(&self, turn: JobTurn<'_>, job: &Job) -> Result<(), PipelineError> {
        if !self.save_job(turn, job).await? {
            return Ok(());
        }
        let history =
            AttemptHistory { failures: 0, waiting_since: None, lost: 0, ..turn.claimed.record.history };
        self.put_off(turn.claimed, Duration::ZERO, history).await
    }

    /// Ends the sample as infrastructure-error. Keeps its answer and ends its sandbox.
    pub(super) async fn end_job_without_verdict(
        &self,
        turn: JobTurn<'_>,
        code: Code,
        why: &str,
    ) -> Result<(), PipelineError> {
        let job = saved_job(turn.handed_over)?;
        if let Some(sandbox) = job.as_ref().and_then(|job| job.state.sandbox()) {
            self.end_sandbox(sandbox).await;
        }
        self.end_without_verdict(turn.claimed, code, why).await
    }
}

/// Returns the code of a sample whose job can't succeed.
fn fatal_code(error: &JobError) -> Code {
    match error {
        JobError::MissingPackages(_) | JobError::NoPython => Code::SandboxSetupNeeded,
        _ => Code::SandboxFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_without_its_packages_needs_a_setup() {
        let packages = JobError::MissingPackages("the sandbox has no numpy".to_owned());
        assert_eq!(packages.to_string(), "the sandbox has no numpy");
        for (error, code) in [
            (packages, Code::SandboxSetupNeeded),
            (JobError::NoPython, Code::SandboxSetupNeeded),
            (JobError::Spec("a path leaves the folder".to_owned()), Code::SandboxFailed),
        ] {
            assert_eq!((error.kind(), fatal_code(&error)), (JobErrorKind::Fatal, code));
        }
    }
}
