//! Ends a run that must not ask any more.

use std::time::Duration;

use bench_domain::{Code, FailureReason, RunState};
use bench_queue::Message;
use bench_state::{EventKind, NewEvent, Transition};

use crate::Pipeline;
use crate::claim::ClaimedSample;
use crate::error::PipelineError;

/// When the finisher comes to a run that its budget or refusals stopped: nobody believes it open any more.
const FINISH_AFTER: Duration = Duration::from_secs(2);
/// Times that a write which others keep changing is read anew.
const RACES_MAX: u32 = 20;

impl Pipeline {
    /// Ends the run as failed, if no other attempt has ended it, and gives the sample back: every further call would fail as
    /// well.
    pub(crate) async fn fail_run(
        &self,
        claimed: &ClaimedSample,
        code: Code,
        why: &str,
    ) -> Result<(), PipelineError> {
        self.close_run(claimed, code, why).await?;
        self.give_back(claimed).await
    }

    /// Ends the run as failed, if no other attempt has ended it.
    ///
    /// # Errors
    /// When a service fails, or when others keep changing the run: the message has to be delivered again.
    pub(crate) async fn close_run(
        &self,
        claimed: &ClaimedSample,
        code: Code,
        why: &str,
    ) -> Result<(), PipelineError> {
        let closed = self.try_close_run(claimed, code, why).await;
        self.runs.forget(claimed.sample.run);
        closed
    }

    async fn try_close_run(
        &self,
        claimed: &ClaimedSample,
        code: Code,
        why: &str,
    ) -> Result<(), PipelineError> {
        let reason = FailureReason::of(code);
        let why = &*claimed.run.keys.redact(why);
        let run = claimed.sample.run;
        for _ in 0..RACES_MAX {
            let Some(found) = self.state.run(run).await? else { return Ok(()) };
            let now = bench_clock::now();
            if found.generation != claimed.run.generation {
                return Ok(());
            }
            let Ok(next) = found.state.fail(now, code, why) else { return Ok(()) };
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
                return Ok(self.queues.send(&Message::Finish { run, generation }, wait).await?);
            }
        }
        Err(PipelineError::Races)
    }
}
