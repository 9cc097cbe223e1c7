//! Hands samples over to the stage that grades a stored answer, or to the next question.

use std::time::Duration;

use bench_domain::{Stage, Usage};
use bench_lambda::metrics;
use bench_state::{AnswerRecord, Handover};

use crate::Pipeline;
use crate::context::ClaimedSample;
use crate::error::PipelineError;

impl Pipeline {
    /// Opens the sample for stage `to`, which is the current stage if the item has another question. `spent`
    /// are the tokens to count for a budget, `tokens` those to count for operators. A lost message does no
    /// harm, since the sample's record names the stage.
    pub(crate) async fn hand_over(
        &self,
        claimed: &ClaimedSample,
        to: Stage,
        answered: &AnswerRecord,
        spent: Usage,
        tokens: Option<Usage>,
    ) -> Result<(), PipelineError> {
        let (sample, attempt) = (&claimed.sample, claimed.attempt);
        match self.state.hand_over(sample, attempt, to, answered, spent, bench_clock::now()).await? {
            Handover::Lost => {
                self.count_lost(claimed, Some(answered.body.attempt), spent.into()).await?;
                tracing::info!(run.id = %sample.run, "Another attempt took over sample {sample}");
            }
            Handover::Done => {
                self.activity.count_tokens(tokens);
                if to.is_turn() {
                    metrics::count(metrics::SAMPLES_HANDED_OVER, 1.0);
                }
                self.queues.send(&claimed.message(to), Duration::ZERO).await?;
            }
        }
        Ok(())
    }
}
