//! Items that take several questions: one attempt asks one of them.

use crate::{AskError, BenchmarkContext, InHand};
use bench_benchmarks::{ItemProblem, Material, NextQuestion, next_question};
use bench_domain::{Answer, Prompt, SampleBody, Step};
use bench_items::Item;

use crate::Worker;

/// What is to be asked now.
pub(crate) struct ToAsk {
    pub(crate) prompt: Prompt,
    /// Name of the step; `None` for an item that takes one question.
    pub(crate) step: Option<String>,
    /// The steps that were answered.
    pub(crate) earlier: Vec<Step>,
}

impl ToAsk {
    /// The body with the answer to it.
    pub(crate) fn answered(self, item_id: String, answer: Answer, expected: String) -> SampleBody {
        let Self { prompt, step, earlier: mut steps } = self;
        if let Some(name) = step {
            steps.push(Step { name, prompt: prompt.clone(), answer: answer.clone() });
        }
        SampleBody { steps, ..SampleBody::new(item_id, prompt, answer, expected) }
    }
}

impl Worker {
    /// The question that is next about an item.
    pub(crate) async fn to_ask(
        &self,
        hand: &InHand<'_>,
        benchmark: &BenchmarkContext,
        item: &Item,
        material: &Material,
    ) -> Result<Result<ToAsk, ItemProblem>, AskError> {
        let mut earlier = Vec::new();
        if benchmark.benchmark.steps().is_some()
            && let Some(turn) = &hand.claimed.record.turn
        {
            let stored = &turn.answer.body;
            let found = self.desk.blobs.get_body(hand.sample, stored.attempt, Some(&stored.sha256)).await?;
            let Some((body, _)) = found else {
                let gone = "the stored answers to the item's earlier questions are gone".to_owned();
                return Ok(Err(ItemProblem::Content(gone)));
            };
            earlier = body.steps;
        }
        Ok(match next_question(benchmark.benchmark, item, material, &earlier) {
            Ok(Some(NextQuestion { step, prompt })) => Ok(ToAsk { prompt, step, earlier }),
            Ok(None) => Err(ItemProblem::no_question()),
            Err(problem) => Err(problem),
        })
    }
}
