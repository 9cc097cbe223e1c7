//! Grading an answer, or handing it over to who can.

use std::time::Duration;

use crate::{AskError, BenchmarkContext, InHand, Party, Stage, StoredBody};
use bench_benchmarks::{Benchmark, Grading};
use bench_domain::sampling::item_hash;
use bench_domain::{Finish, SampleBody, Timestamp, Usage};
use bench_items::{Item, identity};
use bench_lambda::metrics;
use bench_queue::Message;
use bench_state::{Answered, BodyRef, Finished, HandedOver};

use crate::Worker;

impl Worker {
    /// Reads an answer that was stored before.
    pub(crate) async fn read(
        &self,
        hand: &InHand<'_>,
        body: SampleBody,
        stored: StoredBody,
    ) -> Result<(), AskError> {
        let Some(benchmark) = hand.run.benchmark(&hand.sample.benchmark) else { return Ok(()) };
        let item = benchmark.item(&self.desk.blobs, hand).await?;
        self.read_item(hand, benchmark, &item, body, stored).await
    }

    /// Goes on with a stored answer: the next question, a verdict, or the next turn.
    pub(crate) async fn read_item(
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
        let answered = answered(hand, benchmark.benchmark, item, &body, stored);
        if let Some(steps) = benchmark.benchmark.steps() {
            let material = benchmark.material(&self.desk.blobs, item).await?;
            match steps.next(item, &material, &body.steps) {
                Ok(None) => {}
                // What cannot be asked ends the sample when it is to be asked: by then this answer is counted.
                Ok(Some(_)) | Err(_) => {
                    return self.hand_over(hand, Stage::Answer, &answered, &body, spent).await;
                }
            }
        }
        let verdict = match benchmark.benchmark.grade(item, &body.answer) {
            Grading::Done(verdict) => verdict,
            Grading::NeedsJudge => return self.hand_over(hand, Stage::Judge, &answered, &body, spent).await,
            Grading::NeedsSandbox => {
                return self.hand_over(hand, Stage::Sandbox, &answered, &body, spent).await;
            }
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
        body: &SampleBody,
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
                // Those of earlier questions were told of before.
                let asked = !matches!(hand.run.party, Party::Stored(_));
                desk.told_tokens(body.answer.usage.filter(|_| asked));
                if to.is_turn() {
                    metrics::count(metrics::SAMPLES_HANDED_OVER, 1.0);
                }
                let message = Message::of_stage(to, sample.clone(), hand.run.generation);
                desk.queues.send(&message, Duration::ZERO).await?;
            }
        }
        Ok(())
    }
}

/// What the record keeps of an answer, all questions of its item together.
fn answered(
    hand: &InHand<'_>,
    benchmark: &dyn Benchmark,
    item: &Item,
    body: &SampleBody,
    stored: StoredBody,
) -> Answered {
    let last = std::slice::from_ref(&body.answer);
    let answers =
        || body.steps.iter().map(|step| &step.answer).chain(if body.steps.is_empty() { last } else { &[] });
    let usage = match hand.run.party {
        // The run that asked the model has paid for it.
        Party::Stored(_) => Some(Usage::default()),
        _ => answers().filter_map(|answer| answer.usage).reduce(Usage::plus),
    };
    Answered {
        body: BodyRef { attempt: stored.attempt, sha256: stored.sha256 },
        item_hash: Some(item_hash(&identity(benchmark, item))),
        truncated: answers().any(|answer| answer.finish == Finish::Length),
        latency_ms: Some(answers().map(|answer| answer.latency_ms).sum()),
        usage,
        model: body.answer.model.clone(),
    }
}
