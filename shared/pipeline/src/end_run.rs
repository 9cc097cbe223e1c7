//! A run that must not ask any more, and samples that are given back.

use std::time::Duration;

use bench_domain::{Code, FailureReason, RunState, Timestamp};
use bench_queue::Message;
use bench_state::{EventKind, NewEvent, Transition};

use crate::{AskError, Desk, InHand};

/// When the finisher comes to a run that its budget or refusals stopped: nobody believes it open any more.
const FINISH_AFTER: Duration = Duration::from_secs(2);
/// Times that a write which others keep changing is read anew.
const RACES_MAX: u32 = 20;

impl Desk {
    /// Ends the run: every further call would fail as well. The sample is left as it is.
    ///
    /// # Errors
    /// When a service fails.
    pub async fn fail_run(&self, hand: &InHand<'_>, code: Code, why: &str) -> Result<(), AskError> {
        self.close_run(hand, code, why).await?;
        self.give_back(hand).await
    }

    /// Ends the run as failed, if nobody else has ended it.
    pub(crate) async fn close_run(&self, hand: &InHand<'_>, code: Code, why: &str) -> Result<(), AskError> {
        let reason = FailureReason::of(code);
        let why = &*hand.run.keys.redact(why);
        let run = hand.sample.run;
        for _ in 0..RACES_MAX {
            let Some(found) = self.state.run(run).await? else { break };
            let now = Timestamp::now();
            if found.generation != hand.run.generation {
                break;
            }
            let Ok(next) = found.state.fail(now, code, why) else { break };
            let event = NewEvent::new(EventKind::RunFailed, format!("Run failed: {why}"));
            let event = match reason {
                Some(reason) => event.with(serde_json::json!({ "reason": reason })),
                None => event,
            };
            let generation = found.generation;
            if self.state.change_run(&found, &next, generation, &event, now).await? == Transition::Done {
                debug_assert!(matches!(next, RunState::Failed { .. }));
                match reason {
                    // As its owner wanted it.
                    Some(FailureReason::Budget) => tracing::info!(run.id = %run, "Run {run} {why}"),
                    Some(FailureReason::Refused) | None => {
                        tracing::error!(run.id = %run, error = why, "Run {run} failed: {why}")
                    }
                }
                // The finisher closes its benchmarks and removes the caller's key. Where answers are on their way it
                // comes when nobody believes the run open any more.
                let wait = if reason.is_some() { FINISH_AFTER } else { Duration::ZERO };
                self.queues.send(&Message::Finish { run, generation }, wait).await?;
                break;
            }
        }
        self.contexts.forget(run);
        Ok(())
    }

    /// Leaves the sample as if it had not been taken.
    ///
    /// # Errors
    /// When a service fails.
    pub async fn give_back(&self, hand: &InHand<'_>) -> Result<(), AskError> {
        let (attempt, effort) = (hand.claimed.attempt, hand.claimed.record.effort);
        self.state.release(hand.sample, attempt, attempt, Timestamp::now(), effort).await?;
        // Requeued meanwhile: the new generation's message may have met this claim and been dropped.
        let found = self.state.run(hand.sample.run).await?;
        if let Some(found) = found.filter(|found| found.state.status().is_open()) {
            let message = Message::of_stage(self.stage, hand.sample.clone(), found.generation);
            self.queues.send(&message, Duration::ZERO).await?;
        }
        Ok(())
    }
}
