//! Ends samples and runs whose messages went to an SQS dead-letter queue with an error result.
//!
//! One function serves the dead-letter queues of all queues; the ARN of a message's source identifies the queue. On AWS,
//! a schedule invokes it every five minutes, and it receives the messages itself; the embedded host delivers them like those
//! of other queues. A sample is ended through claim and commit like in any other function, so a dead letter can't
//! overwrite a finished result.

mod drain;
mod named;

use std::time::Duration;

use bench_domain::{Code, RunId, SampleRef, Stage, Usage, Verdict};
use bench_lambda::{Deadline, SqsBatchResponse, SqsEvent, UnreadableMessage, handle_dead_batch, metrics};
use bench_queue::{Message, QueueError, Queues, RECEIVES_MAX};
use bench_state::{
    Claim, Commit, EventKind, NewEvent, RunWithBenchmarks, State, StateError, Transition, UnreadableRecord,
};

pub use drain::Drained;

/// Default of [`DeadLetters::after_outage`].
pub const AFTER_OUTAGE: Duration = Duration::from_secs(30);
/// Maximum number of retries of a conditional write that conflicts with other writers.
const RACES_MAX: u32 = 20;

/// Function that serves the dead-letter queues.
pub struct DeadLetters {
    /// Runs and samples.
    pub state: State,
    /// The queues.
    pub queues: Queues,
    /// Wait before a sample is tried again if its deliveries led to no attempt.
    pub after_outage: Duration,
}

#[derive(Debug, thiserror::Error)]
enum DeadLetterError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("sample {0} is being worked on")]
    Busy(SampleRef),
    #[error("run {0} kept changing while it was to be failed")]
    Races(RunId),
}

impl DeadLetters {
    /// Handles a batch of messages from dead-letter queues, identified by their ARNs.
    pub async fn handle(&self, event: SqsEvent, deadline: Deadline) -> SqsBatchResponse {
        let handle = |message| async move {
            match message {
                Message::Sample { sample, .. } => self.end_sample(Stage::Answer, &sample, deadline).await,
                Message::Turn { sample, .. } => self.end_sample(Stage::Judge, &sample, deadline).await,
                Message::Plan { run, generation } => {
                    let why = format!("the run could not be planned in {RECEIVES_MAX} tries");
                    self.fail_run(run, generation, Code::PlanFailed, &why).await
                }
                Message::Finish { run, generation } => {
                    let why = format!("the run could not be closed in {RECEIVES_MAX} tries");
                    self.fail_run(run, generation, Code::FinishFailed, &why).await
                }
            }
        };
        handle_dead_batch(event, &self.queues, handle, |message| self.keep(message)).await
    }

    /// Stores a message that can't be parsed where operators can see it, so that it can leave the queue.
    async fn keep(&self, message: UnreadableMessage) -> Result<(), DeadLetterError> {
        let (run, sample) = named::named(&message.text);
        let unreadable = UnreadableRecord {
            message_id: message.message_id,
            queue: message.queue.as_str().to_owned(),
            sent_at: message.sent_at,
            text: message.text,
            problem: message.problem,
            run,
            sample,
        };
        self.state.note_unreadable(&unreadable, bench_clock::now()).await?;
        Ok(())
    }

    async fn end_sample(
        &self,
        stage: Stage,
        sample: &SampleRef,
        deadline: Deadline,
    ) -> Result<(), DeadLetterError> {
        let Some(found) = self.state.run_with_benchmarks(sample.run).await? else { return Ok(()) };
        if !found.run.state.status().is_open() {
            // Its report may be closed.
            return Ok(());
        }
        let Some(benchmark) = found.benchmark(sample.benchmark.as_str()) else { return Ok(()) };
        if benchmark.plan.as_ref().is_none_or(|plan| plan.attempt != sample.plan) {
            return Ok(());
        }
        let now = bench_clock::now();
        let claimed = match self.state.claim(stage, sample, now, deadline.0).await? {
            Claim::Claimed(claimed) => claimed,
            // Another message exists for a planned wait or for the next stage, or reconciliation will send one.
            Claim::NotDue(_) | Claim::Elsewhere(_) | Claim::Over | Claim::Gone => return Ok(()),
            Claim::Busy => return Err(DeadLetterError::Busy(sample.clone())),
        };
        let (attempt, record) = (claimed.attempt, &claimed.record);
        let tried = attempt.saturating_sub(1).saturating_sub(record.cleared);
        if tried < RECEIVES_MAX {
            // Deliveries that led to no attempt, as in an outage, say nothing about the sample.
            let due_at = now.plus(self.after_outage);
            if self.state.release(sample, attempt, record.cleared, due_at, record.history).await? {
                let message = Message::for_stage(stage, sample.clone(), found.run.generation);
                self.queues.send(&message, self.after_outage).await?;
            }
            return Ok(());
        }
        let (code, why) =
            (record.stage().lost_attempts_code(), record.stage().undeliverable_reason(RECEIVES_MAX));
        tracing::error!(run.id = %sample.run, "Sample {sample} ended as a dead letter");
        let finished = record.to_finished(Verdict::ungraded(code, why), now);
        let committed =
            self.state.commit(sample, &benchmark.sort(), attempt, &finished, Usage::default()).await?;
        if matches!(committed, Commit::Done { .. }) {
            metrics::count(metrics::SAMPLES_FAILED, 1.0);
        }
        if committed == (Commit::Done { closed: true }) {
            let found = self.state.run_with_benchmarks(sample.run).await?;
            if let Some(found) = found.filter(RunWithBenchmarks::is_complete) {
                self.send_finish(sample.run, found.run.generation).await?;
            }
        }
        Ok(())
    }

    async fn fail_run(
        &self,
        run: RunId,
        generation: u32,
        code: Code,
        why: &str,
    ) -> Result<(), DeadLetterError> {
        for _ in 0..RACES_MAX {
            let Some(found) = self.state.run(run).await? else { return Ok(()) };
            let now = bench_clock::now();
            if found.generation != generation {
                return Ok(());
            }
            let Ok(next) = found.state.fail(now, code, why) else { return Ok(()) };
            let event = NewEvent::new(EventKind::RunFailed, format!("Run failed: {why}"));
            if self.state.change_run(&found, &next, generation, &event, now).await? == Transition::Done {
                tracing::error!(run.id = %run, "Run {run} ended as a dead letter: {why}");
                return self.send_finish(run, generation).await;
            }
        }
        Err(DeadLetterError::Races(run))
    }

    async fn send_finish(&self, run: RunId, generation: u32) -> Result<(), DeadLetterError> {
        Ok(self.queues.send(&Message::Finish { run, generation }, Duration::ZERO).await?)
    }
}
