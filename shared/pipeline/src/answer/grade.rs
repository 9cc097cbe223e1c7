//! Grades a stored answer, or hands the sample over to the stage that can.

use std::time::Duration;

use bench_benchmarks::Grading;
use bench_domain::sample::Stage;
use bench_domain::sampling::item_hash;
use bench_domain::{Finish, SampleBody, Usage};
use bench_items::{Item, identity};
use bench_lambda::metrics;
use bench_state::{Answered, Finished, HandedOver};

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
        let answered = answered(claimed, item, &body, stored);
        let benchmark = claimed.benchmark.benchmark;
        if let Some(steps) = benchmark.steps() {
            let material = claimed.benchmark.material(&self.blobs, item).await?;
            // A question that can't be asked ends the sample in the attempt that would ask it: by then this answer is
            // counted.
            if !matches!(steps.next(item, &material, &body.steps), Ok(None)) {
                return self.hand_over(claimed, Stage::Answer, &answered, &body, spent).await;
            }
        }
        let verdict = match benchmark.grade(item, &body.answer) {
            Grading::Done(verdict) => verdict,
            Grading::NeedsJudge => {
                return self.hand_over(claimed, Stage::Judge, &answered, &body, spent).await;
            }
            Grading::NeedsSandbox => {
                return self.hand_over(claimed, Stage::Sandbox, &answered, &body, spent).await;
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
        if self.commit(claimed, &finished, spent.into()).await? {
            self.count_answer_tokens(claimed, &body);
        }
        Ok(())
    }

    /// Opens the sample for another stage, or for its next question. Nothing is lost when the message is: the sample's
    /// record names the stage.
    async fn hand_over(
        &self,
        claimed: &ClaimedSample,
        to: Stage,
        answered: &Answered,
        body: &SampleBody,
        spent: Usage,
    ) -> Result<(), PipelineError> {
        let (sample, attempt) = (&claimed.sample, claimed.attempt);
        match self.state.hand_over(sample, attempt, to, answered, spent, bench_clock::now()).await? {
            HandedOver::Lost => {
                self.count_lost(claimed, Some(answered.body.attempt), spent.into()).await?;
                tracing::info!(run.id = %sample.run, "Sample {sample} was taken over");
            }
            HandedOver::Done => {
                self.count_answer_tokens(claimed, body);
                if to.is_turn() {
                    metrics::count(metrics::SAMPLES_HANDED_OVER, 1.0);
                }
                self.queues.send(&claimed.message(to), Duration::ZERO).await?;
            }
        }
        Ok(())
    }

    /// Counts the tokens of an answer for operators. Those of an item's earlier questions were counted with them.
    fn count_answer_tokens(&self, claimed: &ClaimedSample, body: &SampleBody) {
        let was_asked = !matches!(claimed.run.answers, AnswerSource::EarlierRun(_));
        self.activity.count_tokens(body.answer.usage.filter(|_| was_asked));
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
