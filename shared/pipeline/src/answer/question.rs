//! The next question about an item. Most items take one; each attempt asks one.

use bench_benchmarks::{ItemProblem, NextQuestion, next_question};
use bench_domain::{Answer, Code, Prompt, SampleBody, Step, Verdict};

use crate::Pipeline;
use crate::claim::ClaimedSample;
use crate::error::PipelineError;

/// The question that is asked now.
pub(super) struct NextPrompt {
    pub(super) prompt: Prompt,
    /// Name of the step; `None` for an item that takes one question.
    pub(super) step: Option<String>,
    /// The steps that were answered.
    pub(super) earlier: Vec<Step>,
    item_id: String,
    /// The expected answer, for the stored body.
    expected: String,
}

impl NextPrompt {
    /// Makes the body to store of an answer.
    pub(super) fn answered(self, answer: Answer) -> SampleBody {
        let Self { prompt, step, earlier: mut steps, item_id, expected } = self;
        if let Some(name) = step {
            steps.push(Step { name, prompt: prompt.clone(), answer: answer.clone() });
        }
        SampleBody { steps, ..SampleBody::new(item_id, prompt, answer, expected) }
    }
}

impl Pipeline {
    /// Makes the next prompt about the sample's item. Ends the sample and returns `None` if there can't be one.
    pub(super) async fn next_prompt(
        &self,
        claimed: &ClaimedSample,
    ) -> Result<Option<NextPrompt>, PipelineError> {
        let problem = match self.try_next_prompt(claimed).await? {
            Ok(next) => return Ok(Some(next)),
            Err(problem) => problem,
        };
        self.end(claimed, Verdict::ungraded(Code::InvalidItem, problem.to_string())).await?;
        Ok(None)
    }

    async fn try_next_prompt(
        &self,
        claimed: &ClaimedSample,
    ) -> Result<Result<NextPrompt, ItemProblem>, PipelineError> {
        let benchmark = claimed.benchmark.benchmark;
        let item = claimed.item(self).await?;
        let material = claimed.benchmark.material(&self.blobs, item).await?;
        let mut earlier = Vec::new();
        if benchmark.steps().is_some()
            && let Some(turn) = &claimed.record.turn
        {
            let stored = &turn.answer.body;
            let found = self.blobs.get_body(&claimed.sample, stored.attempt, Some(&stored.sha256)).await?;
            let Some((body, _)) = found else {
                let gone = "the stored answers to the item's earlier questions are gone".to_owned();
                return Ok(Err(ItemProblem::Content(gone)));
            };
            earlier = body.steps;
        }
        Ok(match next_question(benchmark, item, &material, &earlier) {
            Ok(Some(NextQuestion { step, prompt })) => {
                let item_id = claimed.record.item_id.clone();
                Ok(NextPrompt { prompt, step, earlier, item_id, expected: benchmark.expected(item) })
            }
            Ok(None) => Err(ItemProblem::no_question()),
            Err(problem) => Err(problem),
        })
    }
}
