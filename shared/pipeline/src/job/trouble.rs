//! What goes wrong with sandboxes, and what that means for the sample and the run.

use std::time::Duration;

use crate::{AskError, InHand};
use bench_domain::sample::{Effort, backoff};
use bench_domain::{Code, Job};
use bench_lambda::metrics;
use bench_sandy::job::{JobError, JobErrorKind};

use super::new_round;
use crate::Turns;

/// How long a sample waits for a sandbox host that cannot be reached or answers nothing that can be used. One that says
/// it is full is waited for as long as a busy provider.
const HOST_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Sandboxes that may be lost under a job: a host that preempts them does so again and again.
const ROUNDS_MAX: u32 = 5;
/// How long a full host is left alone that does not say for how long.
const FULL_WAIT: Duration = Duration::from_secs(2);

impl Turns {
    /// A step of the job did not work: it is made again, or the job is begun again in another sandbox, or the sample
    /// ends, or the run.
    pub(crate) async fn job_failed(
        &self,
        hand: &InHand<'_>,
        job: &Job,
        error: &JobError,
    ) -> Result<(), AskError> {
        let why = format!("the sandbox host: {error}");
        // The host was sent a key.
        let why = hand.run.keys.redact(&why);
        let waits = hand.claimed.record.effort.waits;
        match error.kind() {
            JobErrorKind::Gone => self.next_round(hand, job, "the sandbox was lost").await,
            JobErrorKind::Busy => {
                let wait = error.retry_after().unwrap_or(FULL_WAIT);
                let patience = self.desk.config.patience;
                self.desk.wait_or_end(hand, Code::SandboxUnavailable, &why, wait, patience).await?;
                Ok(())
            }
            JobErrorKind::Transient => {
                tracing::info!(run.id = %hand.sample.run, "Sample {}: {why}", hand.sample);
                let wait = backoff(waits.saturating_add(1));
                self.desk.wait_or_end(hand, Code::SandboxUnavailable, &why, wait, HOST_PATIENCE).await
            }
            JobErrorKind::Refused => {
                if let Some(sandbox) = job.state.sandbox() {
                    self.end_sandbox(sandbox).await;
                }
                self.desk.fail_run(hand, Code::SandboxNotConfigured, &why).await
            }
            JobErrorKind::Fatal => {
                if let Some(sandbox) = job.state.sandbox() {
                    self.end_sandbox(sandbox).await;
                }
                self.end_without(hand, Code::SandboxFailed, &why).await
            }
        }
    }

    /// Begins again in another sandbox, or ends the sample when too many were used up.
    pub(crate) async fn next_round(&self, hand: &InHand<'_>, job: &Job, why: &str) -> Result<(), AskError> {
        metrics::count(metrics::SANDBOXES_LOST, 1.0);
        if let Some(sandbox) = job.state.sandbox() {
            self.end_sandbox(sandbox).await;
        }
        let round = job.round.saturating_add(1);
        if round > ROUNDS_MAX {
            let why = format!("{why}, the last time in sandbox {}", job.round);
            return self.end_without(hand, Code::SandboxFailed, &why).await;
        }
        tracing::info!(run.id = %hand.sample.run, "Sample {}: {why}; another sandbox is asked for", hand.sample);
        self.round(hand, &new_round(round)).await
    }

    /// Notes the round and leaves it to the next turn. Nothing that was stored in an earlier one is read again.
    pub(crate) async fn round(&self, hand: &InHand<'_>, job: &Job) -> Result<(), AskError> {
        if !self.save(hand, job).await? {
            return Ok(());
        }
        let effort = Effort { failures: 0, waiting_since: None, lost: 0, ..hand.claimed.record.effort };
        self.desk.put_off(hand, Duration::ZERO, effort).await
    }

    /// Ends the sample as infrastructure-error, its answer kept and its sandbox ended.
    pub(crate) async fn end_job_without(
        &self,
        hand: &InHand<'_>,
        code: Code,
        why: &str,
    ) -> Result<(), AskError> {
        let job = hand.claimed.record.turn.as_ref().and_then(|turn| turn.job.as_ref());
        if let Some(sandbox) = job.and_then(|job| job.state.sandbox()) {
            self.end_sandbox(sandbox).await;
        }
        self.end_without(hand, code, why).await
    }
}
