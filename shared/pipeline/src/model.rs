//! Asks a model at a provider for answers, or the judge for replies, for as long as the run needs them.

mod failure;
mod refusals;
mod wait;

use std::time::Duration;

use bench_domain::{Answer, Generation, Prompt};
use bench_inference::{ChatRequest, Failure};
use serde_json::Value;
use tokio::time::Instant;

use self::refusals::SendBlocked;
use crate::Pipeline;
use crate::context::{ClaimedSample, ModelClient};
use crate::error::PipelineError;

/// Interval at which a call in flight checks whether its run is still open.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A question to a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    /// Prompt to send.
    pub(crate) prompt: &'a Prompt,
    /// Generation settings of the answer.
    pub(crate) generation: &'a Generation,
    /// JSON schema of the answer, for models that support structured output.
    pub(crate) reply_schema: Option<&'a Value>,
}

/// Result of asking a model.
#[derive(Debug)]
pub(crate) enum AskResult {
    /// An answer.
    Answer(Box<Answer>),
    /// A failure.
    Failed(Failure),
    /// The run ended meanwhile.
    RunOver,
}

impl Pipeline {
    /// Asks a model once, unless its provider asked for a wait that hasn't ended. Returns early if the run
    /// ends. Removes the run's keys from the answer or the failure.
    pub(crate) async fn ask(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        question: &Question<'_>,
    ) -> Result<AskResult, PipelineError> {
        if let Some(failure) = self.active_wait(client, bench_clock::now()).await? {
            return Ok(AskResult::Failed(failure));
        }
        match self.send_blocked(claimed, client).await? {
            Some(SendBlocked::Wait(failure)) => return Ok(AskResult::Failed(failure)),
            Some(SendBlocked::RunOver) => return Ok(AskResult::RunOver),
            None => {}
        }
        let limit = self.config.answer_time.for_benchmark(claimed.benchmark.benchmark);
        let time = claimed.deadline.remaining(self.config.reserve).min(limit);
        let Question { prompt, generation, reply_schema } = *question;
        let request = ChatRequest { model: &client.model.slug, prompt, generation, reply_schema };
        let call = self.chat.complete(&client.endpoint, &request, Some(Instant::now() + time));
        tokio::pin!(call);
        let _asking = client.refusals.begin_request();
        let keys = &claimed.run.keys;
        loop {
            tokio::select! {
                done = &mut call => return Ok(match done {
                    Ok(mut answer) => {
                        client.refusals.note_answer();
                        keys.redact_answer(&mut answer);
                        AskResult::Answer(Box::new(answer))
                    }
                    Err(mut failure) => {
                        failure.redact(keys);
                        AskResult::Failed(failure)
                    }
                }),
                () = tokio::time::sleep(POLL_INTERVAL) => {
                    // A failed check doesn't cancel the call, since the answer is being paid for.
                    if matches!(self.runs.wants_answers(claimed.sample.run).await, Ok(false)) {
                        return Ok(AskResult::RunOver);
                    }
                }
            }
        }
    }
}
