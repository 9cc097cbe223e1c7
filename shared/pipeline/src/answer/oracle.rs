//! Answers from the dataset itself, as a perfect model would.

use bench_domain::{Answer, SampleBody};

use crate::Pipeline;
use crate::context::ClaimedSample;
use crate::error::PipelineError;

impl Pipeline {
    /// Answers with the item's expected answer. Returns `None` if the item can't be asked: the sample was
    /// then ended.
    pub(super) async fn ask_oracle(
        &self,
        claimed: &ClaimedSample,
    ) -> Result<Option<SampleBody>, PipelineError> {
        let Some(next) = self.next_prompt(claimed).await? else { return Ok(None) };
        let (benchmark, item) = (claimed.benchmark.benchmark, claimed.item(&self.blobs).await?);
        let text = match (benchmark.steps(), &next.step) {
            (Some(steps), Some(step)) => steps.oracle(item, step),
            _ => benchmark.oracle(item),
        };
        Ok(Some(next.into_body(Answer::local(text))))
    }
}
