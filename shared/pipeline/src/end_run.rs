//! Ends a run that must not ask any more questions.

use bench_domain::{Code, FailureReason, RunState};
use bench_queue::{FINISH_DELAY, Message};
use bench_state::{EventKind, NewEvent, Transition};

use crate::Pipeline;
use crate::context::ClaimedSample;
use crate::error::PipelineError;

/// Maximum number of retries of a conditional write that conflicts with other writers.
const RACES_MAX: u32 = 20;

impl Pipeline {
    /// Ends the run as failed, unless another attempt has ended it, and gives the sample back: further calls
    /// would fail as well.
    pub(crate) async fn fail_run(
        &self,
        claimed: &ClaimedSample,
        code: Code,
        why: &str,
    ) -> Result<(), PipelineError> {
        self.close_run(claimed, code, why).await?;
        self.give_back(claimed).await
    }

    /// Ends the run as failed, unless another attempt has ended it.
    ///
    /// # Errors
    /// Fails if a service fails or other writers keep changing the run. The message must then be delivered
    /// again.
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
        let reason = FailureReason::from_code(code);
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
                Some(reason) => event.with_data(serde_json::json!({ "reason": reason })),
                None => event,
            };
            let generation = found.generation;
            if self.state.change_run(&found, &next, generation, &event, now).await? == Transition::Done {
                debug_assert!(matches!(next, RunState::Failed { .. }));
                match reason {
                    // The run's owner set this limit, so it isn't an error.
                    Some(FailureReason::Budget) => tracing::info!(run.id = %run, "Run {run} {why}"),
                    Some(FailureReason::Refused | FailureReason::Failures) | None => {
                        tracing::error!(run.id = %run, run.status = "failed", error = why, "Run {run} failed: {why}")
                    }
                }
                // The finisher closes the benchmarks and removes the caller's key. It comes late enough that every
                // process has seen the run end.
                return Ok(self.queues.send(&Message::Finish { run, generation }, FINISH_DELAY).await?);
            }
        }
        Err(PipelineError::Races)
    }
}
