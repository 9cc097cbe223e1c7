//! Asking the judge.

mod verdict;

use crate::{AskError, BenchmarkContext, InHand, Party, Question, Reached};
use bench_benchmarks::Judge;
use bench_domain::body::Judgement;
use bench_domain::run::ModelRef;
use bench_domain::{Answer, Code, Prompt, SampleBody, Verdict};
use bench_inference::{Endpoint, Failure, FailureKind, TooLong};
use bench_items::Item;

use crate::Turns;

/// What a judge has to do with a sample in hand.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) benchmark: &'a BenchmarkContext,
    pub(crate) judge: &'static dyn Judge,
    pub(crate) item: &'a Item,
}

impl Turns {
    /// Asks the judge about the stored answer, stores its reply and reads it.
    pub(crate) async fn ask(&self, hand: &InHand<'_>) -> Result<(), AskError> {
        let desk = &self.desk;
        let Some(benchmark) = hand.run.benchmark(&hand.sample.benchmark) else { return Ok(()) };
        let Some(turn) = &hand.claimed.record.turn else { return Ok(()) };
        let Some(judge) = benchmark.benchmark.judge() else {
            return self.end_without(hand, Code::InternalError, "this benchmark has no judge").await;
        };
        let stored = &turn.answer.body;
        let found = desk.blobs.get_body(hand.sample, stored.attempt, Some(&stored.sha256)).await?;
        let Some((body, _)) = found else {
            return self.end_without(hand, Code::StoredDataMissing, "the stored answer is gone").await;
        };
        let item = benchmark.item(&self.desk.blobs, hand).await?;
        let templates = benchmark.templates(&desk.blobs).await?;
        let prompt = match judge.prompt(&item, &body.answer, templates) {
            Ok(prompt) => prompt,
            Err(problem) => return self.end_without(hand, Code::InvalidItem, &problem.to_string()).await,
        };
        let case = Case { benchmark, judge, item: &item };
        let reply = match &hand.run.party {
            Party::Oracle => Answer::local(judge.oracle(&item, &body.answer)),
            Party::Nobody(code, why) => {
                return desk
                    .fail_run(hand, code.of_judge(), &format!("the judge could not be asked: {why}"))
                    .await;
            }
            Party::Replay(_) | Party::Stored(_) => {
                return desk
                    .fail_run(hand, Code::JudgeNotUsable, "the judge must be a model or `oracle`")
                    .await;
            }
            Party::Remote(endpoint) => {
                if let Some(why) = desk.budget_reached(hand).await? {
                    return desk.stop_run(hand, &why).await;
                }
                match self.ask_judge(hand, &case, endpoint, &prompt).await? {
                    Reached::Answer(reply) => *reply,
                    Reached::RunOver => return desk.give_back(hand).await,
                    Reached::Failure(failure) => {
                        desk.count_failed(hand, &prompt, &failure).await;
                        let failure = benchmark.told(&prompt, failure);
                        return self.failed(hand, &failure).await;
                    }
                }
            }
        };
        let receipt = hand.run.receive(hand.run.spent_on(&prompt, &reply));
        let model = hand.run.asked().map(ModelRef::qualified).unwrap_or_default();
        let body = SampleBody { judgement: Some(Judgement { model, prompt, reply }), ..body };
        let stored = desk.store(hand, &body).await?;
        self.read(hand, &case, &body, stored).await?;
        if let Some(receipt) = receipt {
            receipt.committed();
        }
        Ok(())
    }

    async fn ask_judge(
        &self,
        hand: &InHand<'_>,
        case: &Case<'_>,
        endpoint: &Endpoint,
        prompt: &Prompt,
    ) -> Result<Reached, AskError> {
        let protocol;
        let generation = match &case.benchmark.plan.judge {
            Some(planned) => &planned.generation,
            None => {
                protocol = (case.judge.facts().generation)();
                &protocol
            }
        };
        let schema = case.judge.reply_schema();
        let model = hand.run.asked().map(|model| model.slug.as_str()).unwrap_or_default();
        let question = Question { model, prompt, generation, reply_schema: schema.as_ref() };
        self.desk.ask_provider(hand, endpoint, &question).await
    }

    /// The desk's policy, but for a reply that took too long: the next one may not.
    async fn failed(&self, hand: &InHand<'_>, failure: &Failure) -> Result<(), AskError> {
        match failure.kind {
            FailureKind::TooLong(TooLong::Time) => self.desk.try_again(hand, failure).await,
            _ => self.desk.failed(hand, failure).await,
        }
    }

    /// Ends the sample as infrastructure-error, its answer kept.
    pub(crate) async fn end_without(&self, hand: &InHand<'_>, code: Code, why: &str) -> Result<(), AskError> {
        self.desk.end(hand, Verdict::ungraded(code, why)).await
    }
}
