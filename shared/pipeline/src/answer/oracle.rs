//! Answers without a model: from the dataset itself, as a perfect model would, or none.

use bench_domain::{Answer, Code, SampleBody, Verdict};

use crate::Pipeline;
use crate::context::ClaimedSample;
use crate::error::PipelineError;

impl Pipeline {
    /// Answers with the item's expected answer. Returns `None` if the item can't be asked or has no such answer: the
    /// sample was then ended.
    pub(super) async fn ask_oracle(
        &self,
        claimed: &ClaimedSample,
    ) -> Result<Option<SampleBody>, PipelineError> {
        // First, so that a large item is read only once: no model is waited for.
        let (benchmark, item) = (claimed.benchmark.benchmark, claimed.item(&self.blobs).await?);
        let Some(next) = self.next_prompt(claimed).await? else { return Ok(None) };
        if let Some(why) = benchmark.missing_oracle(item) {
            self.end(claimed, Verdict::ungraded(Code::InvalidItem, why)).await?;
            return Ok(None);
        }
        let text = match (benchmark.steps(), &next.step) {
            (Some(steps), Some(step)) => steps.oracle(item, step),
            _ => benchmark.oracle(item),
        };
        Ok(Some(next.into_body(Answer::local(text))))
    }

    /// Gives an empty answer. Returns `None` if the item can't be asked: the sample was then ended.
    pub(super) async fn answer_nothing(
        &self,
        claimed: &ClaimedSample,
    ) -> Result<Option<SampleBody>, PipelineError> {
        let next = self.next_prompt(claimed).await?;
        Ok(next.map(|next| next.into_body(Answer::local(String::new()))))
    }
}
