//! Grades a stored answer, or hands the sample over to the stage that can.

use bench_benchmarks::Grading;
use bench_domain::sampling::item_hash;
use bench_domain::{Finish, SampleBody, Stage, Usage};
use bench_items::{Item, identity};
use bench_state::{Answered, Finished};

use super::source::AnswerSource;
use crate::Pipeline;
use crate::claim::ClaimedSample;
use crate::commit::StoredBody;
use crate::error::PipelineError;

impl Pipeline {
    /// Goes on with a stored answer: the next question, a verdict, or the next stage.
    pub(super) async fn grade(
        &self,
        claimed: &ClaimedSample,
        body: SampleBody,
        stored: StoredBody,
    ) -> Result<(), PipelineError> {
        let item = claimed.item(self).await?;
        // An answer that was counted, and is graded again after a requeue, costs nothing more.
        let counted = claimed.record.counted == Some(stored.attempt);
        let spent = if counted { Usage::default() } else { claimed.run.answers.spent_on(&body) };
        // For operators: those of an item's earlier questions were counted with them.
        let was_asked = !matches!(claimed.run.answers, AnswerSource::EarlierRun(_));
        let tokens = body.answer.usage.filter(|_| was_asked && !counted);
        let answered = answered(claimed, item, &body, stored);
        let benchmark = claimed.benchmark.benchmark;
        if let Some(steps) = benchmark.steps() {
            let material = claimed.benchmark.material(&self.blobs, item).await?;
            // A question that can't be asked ends the sample in the attempt that would ask it: by then this answer is
            // counted.
            if !matches!(steps.next(item, &material, &body.steps), Ok(None)) {
                return self.hand_over(claimed, Stage::Answer, &answered, spent, tokens).await;
            }
        }
        let verdict = match benchmark.grade(item, &body.answer) {
            Grading::Done(verdict) => verdict,
            Grading::NeedsTurn(stage) => {
                return self.hand_over(claimed, stage, &answered, spent, tokens).await;
            }
        };
        let Answered { body: stored, item_hash, truncated, latency_ms, usage, model } = answered;
        let finished = Finished {
            verdict,
            body: Some(stored),
            item_hash,
            truncated,
            latency_ms,
            usage,
            model,
            judge_usage: None,
            judge_latency_ms: None,
            judge_model: None,
            at: bench_clock::now(),
        };
        self.commit(claimed, &finished, spent.into(), tokens).await
    }
}

/// Returns what the record keeps of an answer, all questions of its item together.
fn answered(claimed: &ClaimedSample, item: &Item, body: &SampleBody, stored: StoredBody) -> Answered {
    let last = std::slice::from_ref(&body.answer);
    let answers =
        || body.steps.iter().map(|step| &step.answer).chain(if body.steps.is_empty() { last } else { &[] });
    let usage = match claimed.run.answers {
        // The run that asked the model has paid for it.
        AnswerSource::EarlierRun(_) => Some(Usage::default()),
        _ => answers().filter_map(|answer| answer.usage).reduce(Usage::plus),
    };
    Answered {
        body: stored.into(),
        item_hash: Some(item_hash(&identity(claimed.benchmark.benchmark, item))),
        truncated: answers().any(|answer| answer.finish == Finish::Length),
        latency_ms: Some(answers().map(|answer| answer.latency_ms).sum()),
        usage,
        model: body.answer.model.clone(),
    }
}
