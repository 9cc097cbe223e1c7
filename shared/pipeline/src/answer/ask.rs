//! Asking a model, and what its failures mean for the sample.

use crate::{AskError, InHand, Original, Party, Question, Reached, Replayed};
use bench_domain::{Answer, Code, Outcome, Verdict};
use bench_inference::{Failure, FailureKind, TooLong};
use bench_items::ROW_SIGN;

use crate::Worker;

impl Worker {
    /// Asks the model, stores and grades its answer.
    pub(crate) async fn ask(&self, hand: &InHand<'_>) -> Result<(), AskError> {
        let Some(benchmark) = hand.run.benchmark(&hand.sample.benchmark) else { return Ok(()) };
        let desk = &self.desk;
        if let Party::Stored(original) = &hand.run.party {
            return self.take_over(hand, original).await;
        }
        let record = &hand.claimed.record;
        let item = benchmark.item(&self.desk.blobs, hand).await?;
        let material = benchmark.material(&desk.blobs, &item).await?;
        let to_ask = match self.to_ask(hand, benchmark, &item, &material).await? {
            Ok(to_ask) => to_ask,
            Err(problem) => {
                let verdict = Verdict::ungraded(Code::InvalidItem, problem.to_string());
                return desk.end(hand, verdict).await;
            }
        };
        let prompt = &to_ask.prompt;
        let expected = benchmark.benchmark.expected(&item);
        let answer = match &hand.run.party {
            Party::Oracle => Answer::local(match (benchmark.benchmark.steps(), &to_ask.step) {
                (Some(steps), Some(step)) => steps.oracle(&item, step),
                _ => benchmark.benchmark.oracle(&item),
            }),
            Party::Replay(replay) => {
                let sample = hand.sample.position.sample;
                let row = format!("{ROW_SIGN}{}", record.item_id);
                // An item without an id of its own goes by the index of its row, with the sign or without it.
                let own_id = record.source_id.as_deref().unwrap_or(&record.item_id);
                let step = to_ask.step.as_deref().map(|name| (name, to_ask.earlier.len()));
                match replay.lookup(hand.sample.benchmark.as_str(), &[own_id, &row], sample, step) {
                    Some(mut answer) => {
                        hand.run.keys.redact_answer(&mut answer);
                        answer
                    }
                    None => {
                        let step = step.map_or_else(String::new, |(name, _)| format!(", step `{name}`"));
                        let why = format!("no stored response for item `{own_id}`, sample {sample}{step}");
                        return desk.end(hand, Verdict::ungraded(Code::NoStoredResponse, why)).await;
                    }
                }
            }
            Party::Stored(_) => return Ok(()),
            Party::Nobody(code, why) => return desk.fail_run(hand, *code, why).await,
            Party::Remote(endpoint) => {
                if let Some(why) = desk.budget_reached(hand).await? {
                    return desk.stop_run(hand, &why).await;
                }
                let question = Question {
                    model: &hand.run.spec.model.slug,
                    prompt,
                    generation: &benchmark.plan.generation,
                    reply_schema: None,
                };
                match desk.ask_provider(hand, endpoint, &question).await? {
                    Reached::Answer(answer) => *answer,
                    Reached::RunOver => return desk.give_back(hand).await,
                    Reached::Failure(failure) => {
                        desk.count_failed(hand, prompt, &failure).await;
                        let failure = benchmark.told(prompt, failure);
                        let tokens = benchmark.benchmark.input_tokens(&item);
                        return self.failed(hand, &failure, tokens).await;
                    }
                }
            }
        };
        let body = to_ask.answered(record.item_id.clone(), answer, expected);
        let receipt = hand.run.receive(hand.run.spent_on(&body.prompt, &body.answer));
        let stored = desk.store(hand, &body).await?;
        self.read_item(hand, benchmark, &item, body, stored).await?;
        if let Some(receipt) = receipt {
            receipt.committed();
        }
        Ok(())
    }

    /// What says something about the sample ends it; the rest is the desk's. `tokens` is the length of the prompt as
    /// its dataset counts it.
    async fn failed(
        &self,
        hand: &InHand<'_>,
        failure: &Failure,
        tokens: Option<u64>,
    ) -> Result<(), AskError> {
        let desk = &self.desk;
        match failure.kind {
            FailureKind::TooLong(what) => {
                let why = match (what, tokens) {
                    (TooLong::Context, Some(tokens)) => {
                        format!("the prompt of {tokens} tokens (cl100k_base) is too long: {}", failure.cause)
                    }
                    (TooLong::Context, None) => failure.cause.clone(),
                    (TooLong::Time, _) => format!("the answer took too long: {}", failure.cause),
                };
                desk.end(hand, Verdict::ungraded(failure.code(), why)).await
            }
            FailureKind::Unsupported => {
                let why = format!("the model cannot take the prompt's image: {}", failure.cause);
                desk.end(hand, Verdict::ungraded(failure.code(), why)).await
            }
            FailureKind::Refused => {
                let verdict = Verdict::wrong(Outcome::Refused, failure.cause.clone());
                desk.end(hand, Verdict { code: Some(failure.code()), ..verdict }).await
            }
            _ => desk.failed(hand, failure).await,
        }
    }

    /// Takes the answer of another run for this one's, which judges it anew. Where that has none the sample ends as
    /// it did there.
    async fn take_over(&self, hand: &InHand<'_>, original: &Original) -> Result<(), AskError> {
        let desk = &self.desk;
        let item_id = &hand.claimed.record.item_id;
        match original.replay(&desk.state, &desk.blobs, hand.sample, item_id).await? {
            Replayed::Answer(body) => {
                let stored = desk.store(hand, &body).await?;
                self.read(hand, *body, stored).await
            }
            Replayed::Ended(verdict) => desk.end(hand, verdict).await,
            Replayed::Missing(why) => desk.end(hand, Verdict::ungraded(Code::StoredDataMissing, why)).await,
        }
    }
}
