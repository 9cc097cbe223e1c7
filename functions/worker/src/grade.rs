//! Grading an answer, or handing it over to who can.

use std::time::Duration;

use bench_asking::{AskError, BenchmarkContext, InHand, Party, Stage, StoredBody};
use bench_benchmarks::Grading;
use bench_datasets::{Item, load_item};
use bench_domain::sampling::item_hash;
use bench_domain::{Finish, SampleBody, Timestamp, Usage};
use bench_lambda::metrics;
use bench_queue::Message;
use bench_state::{Answered, BodyRef, Finished, HandedOver};
use serde_json::Value;

use crate::Worker;

impl Worker {
    /// Grades an answer that was stored before.
    pub(crate) async fn grade(
        &self,
        hand: &InHand<'_>,
        body: SampleBody,
        stored: StoredBody,
    ) -> Result<(), AskError> {
        let Some(benchmark) = hand.run.benchmark(&hand.sample.benchmark) else { return Ok(()) };
        let record = &hand.claimed.record;
        let data_key = &benchmark.plan.dataset.data_key;
        let item = load_item(&self.desk.blobs, data_key, record.offset, record.length).await?;
        let item = benchmark.benchmark.of_sample(&item, hand.sample.position.sample);
        self.grade_item(hand, benchmark, &item, body, stored).await
    }

    pub(crate) async fn grade_item(
        &self,
        hand: &InHand<'_>,
        benchmark: &BenchmarkContext,
        item: &Item,
        body: SampleBody,
        stored: StoredBody,
    ) -> Result<(), AskError> {
        // An answer that was counted, and is graded again after a requeue, costs nothing more.
        let counted = hand.claimed.record.counted == Some(stored.attempt);
        let spent = if counted { Usage::default() } else { hand.run.spent_on(&body.prompt, &body.answer) };
        let answer = &body.answer;
        let answered = Answered {
            body: BodyRef { attempt: stored.attempt, sha256: stored.sha256 },
            item_hash: Some(item_hash(&identity(item))),
            truncated: answer.finish == Finish::Length,
            latency_ms: Some(answer.latency_ms),
            // The run that asked the model has paid for it.
            usage: match hand.run.party {
                Party::Stored(_) => Some(Usage::default()),
                _ => answer.usage,
            },
            model: answer.model.clone(),
        };
        let verdict = match benchmark.benchmark.grade(item, answer) {
            Grading::Done(verdict) => verdict,
            Grading::NeedsJudge => return self.hand_over(hand, Stage::Judge, &answered, spent).await,
            Grading::NeedsSandbox => return self.hand_over(hand, Stage::Sandbox, &answered, spent).await,
        };
        let Answered { body, item_hash, truncated, latency_ms, usage, model } = answered;
        let finished = Finished {
            verdict,
            body: Some(body),
            item_hash,
            truncated,
            latency_ms,
            usage,
            model,
            judge_usage: None,
            judge_latency_ms: None,
            judge_model: None,
            at: Timestamp::now(),
        };
        self.desk.commit(hand, benchmark, &finished, spent).await
    }

    /// Opens the sample for who has the next turn. Nothing is lost when the message is: the sample's record says whose turn
    /// it is.
    async fn hand_over(
        &self,
        hand: &InHand<'_>,
        to: Stage,
        answered: &Answered,
        spent: Usage,
    ) -> Result<(), AskError> {
        let desk = &self.desk;
        let (sample, attempt) = (hand.sample, hand.claimed.attempt);
        match desk.state.hand_over(sample, attempt, to, answered, spent, Timestamp::now()).await? {
            HandedOver::Lost => {
                desk.count_lost(hand, Some(answered.body.attempt), spent).await?;
                tracing::info!(run.id = %sample.run, "Sample {sample} was taken over");
            }
            HandedOver::Done => {
                desk.told_tokens(answered.usage);
                metrics::count(metrics::SAMPLES_HANDED_OVER, 1.0);
                desk.queues.send(&Message::of_stage(to, sample.clone()), Duration::ZERO).await?;
            }
        }
        Ok(())
    }
}

/// What an item is recognised by across revisions of its dataset: its question, else all of it.
fn identity(item: &Item) -> Value {
    let question =
        ["question", "problem", "prompt", "Question"].into_iter().find_map(|name| item.row.get(name));
    question.cloned().unwrap_or_else(|| Value::Object(item.row.clone()))
}
