//! Claims samples and gives them back.

use std::time::Duration;

use bench_domain::sample::AttemptHistory;
use bench_domain::{SampleRef, Stage, Timestamp};
use bench_lambda::Deadline;
use bench_queue::{DELAY_MAX, Message};
use bench_state::Claim;

use crate::Pipeline;
use crate::context::ClaimedSample;
use crate::error::PipelineError;

impl Pipeline {
    /// Claims a sample in `stage`, or in any later stage if `stage` is one. Returns `None` if the message
    /// needs no work: the run or the sample is over, another attempt holds the sample, or its message was
    /// sent again.
    pub(crate) async fn claim(
        &self,
        stage: Stage,
        sample: &SampleRef,
        generation: u32,
        deadline: Deadline,
    ) -> Result<Option<ClaimedSample>, PipelineError> {
        let Some((run, benchmark)) = self.runs.open(sample, generation).await? else {
            if stage.is_turn() {
                self.end_job_of(sample).await?;
            }
            return Ok(None);
        };
        let now = bench_clock::now();
        let mut claim = self.state.claim(stage, sample, now, deadline.0).await?;
        if let Claim::NotDue(due_at) = claim
            && let Some(resumed_at) = run.resumed_at()
            && self.state.end_put_off(sample, due_at, resumed_at, now).await?
        {
            claim = self.state.claim(stage, sample, now, deadline.0).await?;
        }
        match claim {
            Claim::Claimed(claimed) => {
                return Ok(Some(ClaimedSample::new(run, benchmark, sample.clone(), *claimed, deadline)));
            }
            Claim::NotDue(due_at) => {
                let message = Message::for_stage(stage, sample.clone(), run.generation);
                self.send_later(&message, now, due_at).await?;
            }
            // The attempt that holds it will finish it; otherwise reconciliation sends it again once the
            // lease has ended.
            Claim::Busy => {}
            // Handed over, possibly by an attempt that was killed before it could send the message.
            Claim::Elsewhere(found) if found.is_turn() => {
                let message = Message::for_stage(found, sample.clone(), run.generation);
                self.queues.send(&message, Duration::ZERO).await?;
            }
            Claim::Elsewhere(_) => {}
            // Possibly ended by an attempt that was killed before it could report the run as complete.
            Claim::Over => self.finish_if_complete(sample.run).await?,
            Claim::Gone => tracing::warn!(run.id = %sample.run, "There is no sample {sample}"),
        }
        Ok(None)
    }

    /// Gives the sample back after an error, so that its message can be retried before the lease ends.
    pub(crate) async fn release_after_error(&self, claimed: &ClaimedSample) -> Result<(), PipelineError> {
        let ClaimedSample { sample, record, attempt, .. } = claimed;
        // Keeps stored answers valid: the attempt may have failed after it stored one, and the next attempt
        // then uses it.
        self.state.release(sample, *attempt, record.cleared, bench_clock::now(), record.history).await?;
        Ok(())
    }

    /// Gives the sample back, to be tried again after `wait`. Answers stored by this attempt or earlier ones
    /// are not used again.
    pub(crate) async fn put_off(
        &self,
        claimed: &ClaimedSample,
        wait: Duration,
        history: AttemptHistory,
    ) -> Result<(), PipelineError> {
        let now = bench_clock::now();
        let due_at = now.plus(wait);
        let attempt = claimed.attempt;
        if self.state.release(&claimed.sample, attempt, attempt, due_at, history).await? {
            self.send_later(&claimed.message(claimed.record.stage()), now, due_at).await?;
        }
        Ok(())
    }

    /// Gives the sample back as if it had never been claimed.
    pub(crate) async fn give_back(&self, claimed: &ClaimedSample) -> Result<(), PipelineError> {
        let (attempt, history) = (claimed.attempt, claimed.record.history);
        self.state.release(&claimed.sample, attempt, attempt, bench_clock::now(), history).await?;
        // If the run was requeued meanwhile, the new generation's message may have met this claim and been
        // dropped.
        let found = self.state.run(claimed.sample.run).await?;
        if let Some(found) = found.filter(|found| found.state.status().is_open()) {
            let message =
                Message::for_stage(claimed.record.stage(), claimed.sample.clone(), found.generation);
            self.queues.send(&message, Duration::ZERO).await?;
        }
        Ok(())
    }

    /// Sends a delayed message, which replaces the received one.
    async fn send_later(
        &self,
        message: &Message,
        now: Timestamp,
        due_at: Timestamp,
    ) -> Result<(), PipelineError> {
        // Adds a second, since SQS counts whole seconds and an early delivery would only be put off again.
        let delay = match due_at.since(now) {
            Duration::ZERO => Duration::ZERO,
            wait => wait + Duration::from_secs(1),
        };
        self.queues.send(message, delay.min(DELAY_MAX)).await?;
        Ok(())
    }
}
