//! Samples: claim, wait, commit, and pages of them.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, KeysAndAttributes, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
    Update,
};
use bench_domain::sample::{Effort, SampleState, SampleSummary, Stage};
use bench_domain::{
    BenchmarkName, Code, Outcome, Position, RunId, SampleRef, Spending, Timestamp, Usage, Verdict,
};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::attributes::{Reader, Record, json, number, text};
use crate::client::claim_token;
use crate::client::condition_held;
use crate::conflict::pause;
use crate::keys::{self, COUNT, key, sample_sort, shard_partition};
use crate::turn::{STAGE, Turn};
use crate::usage::{JUDGE_USAGE, USAGE, read_usage};
use crate::{BenchmarkRecord, BodyRef, State, StateError};

/// Records of one batch read: DynamoDB's own limit.
pub(crate) const READ_BATCH_MAX: usize = 100;
/// How often what a batch left over is asked for again.
const REREADS_MAX: u32 = 20;
/// The attribute that counts the attempts which did not end the sample and did not give it back: the one that holds it
/// and those that were lost.
pub(crate) const UNENDED: &str = "unended";
/// Batches in flight.
const BATCHES_IN_FLIGHT: usize = 8;

/// A sample as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRecord {
    /// Its place in the plan.
    pub position: Position,
    /// The item.
    pub item_id: String,
    /// The dataset's own id of the item; `None` where it has none, and in plans of an older program.
    pub source_id: Option<String>,
    /// Group of the item within its benchmark.
    pub group: Option<String>,
    /// Where the item's frame starts in the dataset's object.
    pub offset: u64,
    /// The frame's length.
    pub length: u64,
    /// Where it stands.
    pub state: SampleState,
    /// How often and how long it was tried.
    pub effort: Effort,
    /// Up to this attempt none left an answer behind: each gave the sample back.
    pub cleared: u32,
    /// How often reconciliation sent its message again.
    pub resends: u32,
    /// When its message should be handled, or its lease ends.
    pub due_at: Timestamp,
    /// The attempt whose answer was last counted as spent: regraded after a requeue it costs nothing again.
    pub counted: Option<u32>,
    /// What was handed over to who has the next turn, and what came of it; `None` before that.
    pub turn: Option<Turn>,
    /// How it ended, once it did.
    pub finished: Option<Finished>,
}

/// How a sample ended: all that lists, charts and metrics need.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Outcome, score, reason, extracted answer, detail.
    pub verdict: Verdict,
    /// Where prompt and answer are; `None` when there was no answer.
    pub body: Option<BodyRef>,
    /// First 16 hex digits of the digest of the item's identifying text.
    pub item_hash: Option<String>,
    /// Whether the token limit cut the answer off.
    pub truncated: bool,
    /// From request to the end of the answer, in milliseconds.
    pub latency_ms: Option<u64>,
    /// Tokens, as the provider counted them.
    pub usage: Option<Usage>,
    /// The model's id as the provider reported it.
    pub model: Option<String>,
    /// Tokens of all replies of the judge, as its provider counted them.
    pub judge_usage: Option<Usage>,
    /// From request to the end of the judge's last reply, in milliseconds.
    pub judge_latency_ms: Option<u64>,
    /// The judge's id as its provider reported it.
    pub judge_model: Option<String>,
    /// When it ended.
    pub at: Timestamp,
}

/// Values of an update expression, by placeholder.
pub(crate) type Values = Vec<(&'static str, AttributeValue)>;

/// What came of an attempt to claim a sample.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// It is the caller's until the lease ends.
    Yours(Box<ClaimedSample>),
    /// It is not due yet.
    NotDue(Timestamp),
    /// Somebody works on it.
    Busy,
    /// It is open, and somebody else's turn: it wants the message of this stage.
    Elsewhere(Stage),
    /// It is over.
    Over,
    /// There is no such sample.
    Gone,
}

/// A sample that the caller may work on.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedSample {
    /// The record after the claim.
    pub record: SampleRecord,
    /// The attempt's number: the fencing token of the commit.
    pub attempt: u32,
}

/// What came of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// The sample is over by this attempt. `closed` when it was its shard's last, or may have been.
    Done {
        /// Whether somebody must look whether the run is complete.
        closed: bool,
    },
    /// Another attempt has the sample now, or ended it: nothing was changed.
    Lost,
}

/// Counters of one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShardCount {
    /// Samples planned.
    pub expected: u64,
    /// Samples that are over.
    pub done: u64,
    /// Of these, graded.
    pub graded: u64,
    /// Of these, correct.
    pub correct: u64,
    /// Tokens of their prompts.
    pub input_tokens: u64,
    /// Tokens of their answers.
    pub output_tokens: u64,
    /// Tokens of prompts that count for a budget: never lowered, estimated where the provider counted nothing,
    /// and for a run with a budget with those of attempts that brought no answer.
    pub spent_input: u64,
    /// The same for answers.
    pub spent_output: u64,
    /// Tokens of the judge's prompts that count for a budget.
    pub judge_spent_input: u64,
    /// The same for the judge's replies.
    pub judge_spent_output: u64,
    /// The part of `spent_input` and `spent_output` together that is an estimate.
    pub spent_estimated: u64,
    /// The part of the judge's tokens that is an estimate.
    pub judge_spent_estimated: u64,
}

impl ShardCount {
    /// The model's tokens that count for a budget.
    pub const fn spent(&self) -> Usage {
        Usage {
            estimated_tokens: self.spent_estimated,
            ..Usage::counted(self.spent_input, self.spent_output, 0)
        }
    }

    /// The judge's tokens that count for a budget.
    pub const fn judge_spent(&self) -> Usage {
        Usage {
            estimated_tokens: self.judge_spent_estimated,
            ..Usage::counted(self.judge_spent_input, self.judge_spent_output, 0)
        }
    }

    /// All that counts for a budget.
    pub const fn spending(&self) -> Spending {
        Spending { answers: self.spent(), judge: self.judge_spent() }
    }

    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            expected: self.expected + other.expected,
            done: self.done + other.done,
            graded: self.graded + other.graded,
            correct: self.correct + other.correct,
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            spent_input: self.spent_input.saturating_add(other.spent_input),
            spent_output: self.spent_output.saturating_add(other.spent_output),
            judge_spent_input: self.judge_spent_input.saturating_add(other.judge_spent_input),
            judge_spent_output: self.judge_spent_output.saturating_add(other.judge_spent_output),
            spent_estimated: self.spent_estimated.saturating_add(other.spent_estimated),
            judge_spent_estimated: self.judge_spent_estimated.saturating_add(other.judge_spent_estimated),
        }
    }

    /// From its record. The counters of an older program have no spent tokens: there these are all tokens.
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Self, StateError> {
        let input_tokens = reader.count_or("input_tokens", 0)?;
        let output_tokens = reader.count_or("output_tokens", 0)?;
        Ok(Self {
            expected: reader.number("expected")?,
            done: reader.number_or("done", 0)?,
            graded: reader.number_or("graded", 0)?,
            correct: reader.number_or("correct", 0)?,
            input_tokens,
            output_tokens,
            spent_input: reader.count_or("spent_input", input_tokens)?,
            spent_output: reader.count_or("spent_output", output_tokens)?,
            judge_spent_input: reader.count_or("judge_spent_input", 0)?,
            judge_spent_output: reader.count_or("judge_spent_output", 0)?,
            spent_estimated: reader.count_or("spent_estimated", 0)?,
            judge_spent_estimated: reader.count_or("judge_spent_estimated", 0)?,
        })
    }
}

impl SampleRecord {
    pub(crate) fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        let sort = reader.text("sk")?;
        let position =
            sort.strip_prefix("S#").and_then(|digits| digits.split_once('.')).and_then(|(item, sample)| {
                Some(Position { item: item.parse().ok()?, sample: sample.parse().ok()? })
            });
        let position =
            position.ok_or_else(|| StateError::damaged(reader.key(), "its key names no position"))?;
        let due_at = reader.time("due_at")?;
        let attempt = reader.number_or("attempt", 0)?;
        let finished = Finished::read(&reader)?;
        let state = match (reader.text("state")?, &finished) {
            ("open", _) => SampleState::Open { due_at },
            ("claimed", _) => SampleState::Claimed(bench_domain::sample::Lease {
                attempt,
                until: due_at,
                epoch: reader.number_or("epoch", 0)?,
            }),
            ("done", Some(finished)) => SampleState::Done { attempt, outcome: finished.verdict.outcome },
            (other, _) => {
                return Err(StateError::damaged(reader.key(), format!("state `{other}` is not complete")));
            }
        };
        // The attempt that holds the sample is not lost.
        let held = i64::from(matches!(state, SampleState::Claimed(_)));
        let lost = reader.number_or::<i64>(UNENDED, 0)? - held;
        let lost = u32::try_from(lost.max(0)).unwrap_or(u32::MAX);
        Ok(Self {
            position,
            item_id: reader.text("item_id")?.to_owned(),
            source_id: reader.maybe_text("source_id").map(str::to_owned),
            group: reader.maybe_text("group").map(str::to_owned),
            offset: reader.number("offset")?,
            length: reader.number("length")?,
            state,
            effort: Effort {
                attempts: attempt,
                failures: reader.number_or("failures", 0)?,
                waits: reader.number_or("waits", 0)?,
                waiting_since: reader.maybe_time("waiting_since")?,
                lost,
            },
            cleared: reader.number_or("cleared", 0)?,
            resends: reader.number_or("resends", 0)?,
            due_at,
            counted: reader.maybe_number("counted")?,
            turn: Turn::read(&reader)?,
            finished,
        })
    }

    /// What metrics need of it, once it is over.
    pub fn summary(&self) -> Option<SampleSummary> {
        let finished = self.finished.as_ref()?;
        Some(SampleSummary {
            position: self.position,
            item_id: self.item_id.clone(),
            outcome: finished.verdict.outcome,
            score: finished.verdict.score,
            truncated: finished.truncated,
            latency_ms: finished.latency_ms,
            usage: finished.usage,
            group: self.group.clone(),
            judge_usage: finished.judge_usage,
        })
    }
}

impl Finished {
    fn read(reader: &Reader<'_>) -> Result<Option<Self>, StateError> {
        if reader.maybe_text("state") != Some("done") {
            return Ok(None);
        }
        let outcome = reader.text("outcome")?;
        let outcome = Outcome::from_name(outcome)
            .ok_or_else(|| StateError::damaged(reader.key(), format!("outcome `{outcome}` is unknown")))?;
        let usage = read_usage(reader, USAGE)?;
        let body = BodyRef::read(reader)?;
        Ok(Some(Self {
            verdict: Verdict {
                outcome,
                // As text, since DynamoDB's numbers are decimal.
                score: reader.maybe_json("score")?,
                reason: reader.text_or_empty("reason").to_owned(),
                code: reader.maybe_text("error_code").and_then(Code::from_name),
                extracted: reader.maybe_text("extracted").map(str::to_owned),
                detail: reader.maybe_json("detail")?.unwrap_or_default(),
            },
            body,
            item_hash: reader.maybe_text("item_hash").map(str::to_owned),
            truncated: reader.number_or::<u8>("truncated", 0)? == 1,
            latency_ms: reader.maybe_number("latency_ms")?,
            usage,
            model: reader.maybe_text("model").map(str::to_owned),
            judge_usage: read_usage(reader, JUDGE_USAGE)?,
            judge_latency_ms: reader.maybe_number("judge_latency_ms")?,
            judge_model: reader.maybe_text("judge_model").map(str::to_owned),
            at: reader.time("finished_at")?,
        }))
    }

    /// The update expression's assignments and their values. Attributes without a value are removed.
    fn assignments(&self) -> Result<(String, Values), StateError> {
        let verdict = &self.verdict;
        let mut values = vec![
            (":outcome", text(verdict.outcome.as_str())),
            (":finished_at", number(self.at.as_micros())),
            (":truncated", number(u8::from(self.truncated))),
        ];
        let mut set = vec!["outcome = :outcome", "finished_at = :finished_at", "truncated = :truncated"];
        let mut remove = Vec::new();
        let mut put = |name: &'static str, assignment, placeholder, value: Option<AttributeValue>| match value
        {
            Some(value) => {
                set.push(assignment);
                values.push((placeholder, value));
            }
            None => remove.push(name),
        };
        let usage = |part: fn(&Usage) -> u64| self.usage.as_ref().map(|usage| number(part(usage)));
        let judge = |part: fn(&Usage) -> u64| self.judge_usage.as_ref().map(|usage| number(part(usage)));
        let some_text = |value: &Option<String>| value.as_ref().map(text);
        put("score", "score = :score", ":score", verdict.score.map(|s| json("score", &s)).transpose()?);
        let reason = (!verdict.reason.is_empty()).then(|| text(&verdict.reason));
        put("reason", "reason = :reason", ":reason", reason);
        put(
            "error_code",
            "error_code = :error_code",
            ":error_code",
            verdict.code.map(|code| text(code.as_str())),
        );
        put("extracted", "extracted = :extracted", ":extracted", some_text(&verdict.extracted));
        let detail = (!verdict.detail.is_empty()).then(|| json("detail", &verdict.detail)).transpose()?;
        put("detail", "detail = :detail", ":detail", detail);
        let body = self.body.as_ref();
        if let Some(body) = body {
            // Stays when the sample is opened again.
            put("counted", "counted = :counted", ":counted", Some(number(body.attempt)));
        }
        put("body_attempt", "body_attempt = :body", ":body", body.map(|body| number(body.attempt)));
        put("body_sha256", "body_sha256 = :sha", ":sha", body.map(|body| text(&body.sha256)));
        put("item_hash", "item_hash = :hash", ":hash", some_text(&self.item_hash));
        put("latency_ms", "latency_ms = :latency", ":latency", self.latency_ms.map(number));
        put("input_tokens", "input_tokens = :input", ":input", usage(|u| u.input_tokens));
        put("output_tokens", "output_tokens = :output", ":output", usage(|u| u.output_tokens));
        put("reasoning_tokens", "reasoning_tokens = :reasoning", ":reasoning", usage(|u| u.reasoning_tokens));
        // `model` is no reserved word of DynamoDB; `group` is, and is never in an expression.
        put("model", "model = :model", ":model", some_text(&self.model));
        let [input, output, reasoning] = JUDGE_USAGE;
        put(input, "judge_input = :judge_input", ":judge_input", judge(|u| u.input_tokens));
        put(output, "judge_output = :judge_output", ":judge_output", judge(|u| u.output_tokens));
        put(
            reasoning,
            "judge_reasoning = :judge_reasoning",
            ":judge_reasoning",
            judge(|u| u.reasoning_tokens),
        );
        let latency = self.judge_latency_ms.map(number);
        put("judge_latency_ms", "judge_latency_ms = :judge_latency", ":judge_latency", latency);
        put("judge_model", "judge_model = :judge_model", ":judge_model", some_text(&self.judge_model));
        let mut expression = set.join(", ");
        if !remove.is_empty() {
            expression.push_str(" REMOVE ");
            expression.push_str(&remove.join(", "));
        }
        Ok((expression, values))
    }
}

impl State {
    /// Takes a sample that is in this stage, or in any that is a turn if this one is, until `lease_until`. It must be due, or
    /// its lease must be over.
    ///
    /// The claim carries a random token: a repeat after a lost answer finds its own claim and has it.
    pub async fn claim(
        &self,
        stage: Stage,
        sample: &SampleRef,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Claim, StateError> {
        let token = claim_token();
        let in_stage = match stage.is_turn() {
            false => "(attribute_not_exists(#stage) OR #stage = :answer)",
            true => "attribute_exists(#stage) AND #stage <> :answer",
        };
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .update_expression(
                "SET #state = :claimed, due_at = :until, epoch = :epoch, claim_token = :token, resends = :zero \
                 ADD attempt :one, unended :one",
            )
            .condition_expression(format!(
                "attribute_exists(pk) AND #state <> :done AND {in_stage} \
                 AND (due_at <= :now OR (#state = :claimed AND epoch <> :epoch))",
            ))
            .expression_attribute_names("#state", "state")
            .expression_attribute_names("#stage", STAGE)
            .expression_attribute_values(":claimed", text("claimed"))
            .expression_attribute_values(":answer", text(Stage::Answer.as_str()))
            .expression_attribute_values(":done", text("done"))
            .expression_attribute_values(":until", number(lease_until.as_micros()))
            .expression_attribute_values(":now", number(now.as_micros()))
            .expression_attribute_values(":epoch", number(self.epoch))
            .expression_attribute_values(":token", number(token))
            .expression_attribute_values(":zero", number(0))
            .expression_attribute_values(":one", number(1))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let error = match update {
            Ok(updated) => {
                let record = SampleRecord::read(&updated.attributes.unwrap_or_default())?;
                let attempt = record.effort.attempts;
                return Ok(Claim::Yours(Box::new(ClaimedSample { record, attempt })));
            }
            Err(error) => error,
        };
        let Some(UpdateItemError::ConditionalCheckFailedException(failed)) = error.as_service_error() else {
            return Err(StateError::sdk("claim the sample", error));
        };
        let Some(old) = failed.item().filter(|record| !record.is_empty()) else { return Ok(Claim::Gone) };
        let record = SampleRecord::read(old)?;
        Ok(match record.state {
            SampleState::Done { .. } => Claim::Over,
            SampleState::Open { .. } if record.stage().is_turn() != stage.is_turn() => {
                Claim::Elsewhere(record.stage())
            }
            SampleState::Open { due_at } => Claim::NotDue(due_at),
            SampleState::Claimed(_) if Reader::new(old).maybe_number("claim_token")? == Some(token) => {
                let attempt = record.effort.attempts;
                Claim::Yours(Box::new(ClaimedSample { record, attempt }))
            }
            SampleState::Claimed(_) => Claim::Busy,
        })
    }

    /// Gives a claimed sample back, to be handled at `due_at`: a planned wait, a failed attempt, or work
    /// that was interrupted. `false` when the attempt does not hold the sample any more.
    ///
    /// `cleared` is the attempt up to which none left an answer behind: the next one looks for one from there on.
    pub async fn release(
        &self,
        sample: &SampleRef,
        attempt: u32,
        cleared: u32,
        due_at: Timestamp,
        effort: Effort,
    ) -> Result<bool, StateError> {
        let mut expression =
            "SET #state = :open, due_at = :due, cleared = :cleared, failures = :failures, waits = :waits, \
             unended = :lost"
                .to_owned();
        let mut update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .condition_expression("#state = :claimed AND attempt = :attempt")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":open", text("open"))
            .expression_attribute_values(":claimed", text("claimed"))
            .expression_attribute_values(":attempt", number(attempt))
            .expression_attribute_values(":cleared", number(cleared))
            .expression_attribute_values(":due", number(due_at.as_micros()))
            .expression_attribute_values(":failures", number(effort.failures))
            .expression_attribute_values(":waits", number(effort.waits))
            .expression_attribute_values(":lost", number(effort.lost));
        match effort.waiting_since {
            Some(since) => {
                expression.push_str(", waiting_since = :since");
                update = update.expression_attribute_values(":since", number(since.as_micros()));
            }
            None => expression.push_str(" REMOVE waiting_since"),
        }
        let released = update
            .update_expression(expression)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let error = match released {
            Ok(_) => return Ok(true),
            Err(error) => error,
        };
        match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                // The answer to our own first try may have been lost.
                let mine = failed.item().is_some_and(|record| {
                    let reader = Reader::new(record);
                    reader.maybe_text("state") == Some("open")
                        && reader.maybe_number("attempt").ok().flatten() == Some(attempt)
                });
                Ok(mine)
            }
            _ => Err(StateError::sdk("give the sample back", error)),
        }
    }

    /// Ends a sample that `attempt` holds, and counts it.
    ///
    /// `benchmark_sort` is the sort key of the run's benchmark, whose closed shards are counted. The tokens of
    /// `finished` count as spent.
    pub async fn commit(
        &self,
        sample: &SampleRef,
        benchmark_sort: &str,
        attempt: u32,
        finished: &Finished,
    ) -> Result<Commit, StateError> {
        self.commit_spending(sample, benchmark_sort, attempt, finished, finished.usage.unwrap_or_default())
            .await
    }

    /// The same, where so many tokens count as spent, of the model and of the judge.
    pub async fn commit_spending(
        &self,
        sample: &SampleRef,
        benchmark_sort: &str,
        attempt: u32,
        finished: &Finished,
        spent: impl Into<Spending>,
    ) -> Result<Commit, StateError> {
        let spent = spent.into();
        let mut closing = false;
        // Usual and closing form can take turns only while samples are reopened next to this one.
        for repeat in 0..20 {
            if repeat > 1 {
                pause(repeat).await;
            }
            let mut items = vec![
                self.finish_update(sample, attempt, finished)?,
                self.count_update(sample, finished, spent, closing)?,
            ];
            if closing {
                items.push(self.shards_update(sample.run, benchmark_sort, 1)?);
            }
            let Err(canceled) = self.transact("commit the sample", items).await? else {
                return Ok(Commit::Done { closed: closing });
            };
            if canceled.condition_failed(0) {
                let mine = canceled.record(0).is_some_and(|record| {
                    let reader = Reader::new(record);
                    reader.maybe_text("state") == Some("done")
                        && reader.maybe_number("attempt").ok().flatten() == Some(attempt)
                });
                // Done by an earlier try whose answer was lost: that may have been the shard's last.
                return Ok(if mine { Commit::Done { closed: true } } else { Commit::Lost });
            }
            closing = !closing;
        }
        Err(StateError::Service {
            verb: "commit the sample",
            problem: "its shard's counters kept changing".into(),
        })
    }

    fn finish_update(
        &self,
        sample: &SampleRef,
        attempt: u32,
        finished: &Finished,
    ) -> Result<TransactWriteItem, StateError> {
        let (assignments, values) = finished.assignments()?;
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .update_expression(format!("SET #state = :done, {assignments} ADD {UNENDED} :ended"))
            .condition_expression("#state = :claimed AND attempt = :attempt")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":done", text("done"))
            .expression_attribute_values(":claimed", text("claimed"))
            .expression_attribute_values(":attempt", number(attempt))
            .expression_attribute_values(":ended", number(-1))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        for (name, value) in values {
            update = update.expression_attribute_values(name, value);
        }
        let update = update.build().map_err(|error| StateError::damaged("sample", error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    fn count_update(
        &self,
        sample: &SampleRef,
        finished: &Finished,
        spent: Spending,
        closing: bool,
    ) -> Result<TransactWriteItem, StateError> {
        let usage = finished.usage.unwrap_or_default();
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(keys::sample_partition(sample), COUNT)))
            .update_expression(
                "ADD done :one, graded :graded, correct :correct, input_tokens :input, output_tokens :output, \
                 spent_input :spent_input, spent_output :spent_output, spent_estimated :estimated, \
                 judge_spent_input :judge_input, judge_spent_output :judge_output, \
                 judge_spent_estimated :judge_estimated",
            )
            .condition_expression(if closing { "done = #last" } else { "done < #last" })
            .expression_attribute_names("#last", "last")
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":graded", number(u8::from(finished.verdict.outcome.is_graded())))
            .expression_attribute_values(
                ":correct",
                number(u8::from(finished.verdict.outcome == Outcome::Correct)),
            )
            .expression_attribute_values(":input", number(usage.input_tokens))
            .expression_attribute_values(":output", number(usage.output_tokens))
            .expression_attribute_values(":spent_input", number(spent.answers.input_tokens))
            .expression_attribute_values(":spent_output", number(spent.answers.output_tokens))
            .expression_attribute_values(":judge_input", number(spent.judge.input_tokens))
            .expression_attribute_values(":judge_output", number(spent.judge.output_tokens))
            .expression_attribute_values(":estimated", number(spent.answers.estimated_tokens))
            .expression_attribute_values(":judge_estimated", number(spent.judge.estimated_tokens))
            .build()
            .map_err(|error| StateError::damaged("sample", error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    pub(crate) fn shards_update(
        &self,
        run: RunId,
        benchmark_sort: &str,
        by: i32,
    ) -> Result<TransactWriteItem, StateError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(keys::run_partition(run), benchmark_sort)))
            .update_expression("ADD shards_done :by")
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_values(":by", number(by))
            .build()
            .map_err(|error| StateError::damaged("benchmark", error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    /// Reads one sample.
    pub async fn sample(&self, sample: &SampleRef) -> Result<Option<SampleRecord>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the sample", error))?;
        got.item().map(SampleRecord::read).transpose()
    }

    /// Samples of a plan from `offset` on, `limit` at most, in the order of the plan: by item, then by sample.
    pub async fn samples_page(
        &self,
        run: RunId,
        benchmark: &BenchmarkRecord,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<SampleRecord>, StateError> {
        let Some(plan) = &benchmark.plan else { return Ok(Vec::new()) };
        let per_item = u64::from(plan.samples_per_item.max(1));
        let end = plan.samples().min(offset.saturating_add(limit));
        let wanted = (offset.min(end)..end).map(|index| {
            let position = Position {
                item: u32::try_from(index / per_item).unwrap_or(u32::MAX),
                sample: u32::try_from(index % per_item).unwrap_or(0),
            };
            let partition =
                shard_partition(run, &benchmark.name, plan.attempt, position.item % plan.shards.max(1));
            key(partition, sample_sort(position))
        });
        let mut samples = self.read_batches(wanted.collect()).await?;
        samples.sort_by_key(|sample| sample.position);
        Ok(samples)
    }

    async fn read_batches(&self, wanted: Vec<Record>) -> Result<Vec<SampleRecord>, StateError> {
        // Collected first: a closure that borrows would make this future not `Send`.
        let reads: Vec<_> =
            wanted.chunks(READ_BATCH_MAX).map(|batch| self.read_batch(batch.to_vec())).collect();
        let read: Vec<Vec<Record>> =
            stream::iter(reads).buffer_unordered(BATCHES_IN_FLIGHT).try_collect().await?;
        read.iter().flatten().map(SampleRecord::read).collect()
    }

    pub(crate) async fn read_batch(&self, wanted: Vec<Record>) -> Result<Vec<Record>, StateError> {
        let mut found = Vec::with_capacity(wanted.len());
        let request = KeysAndAttributes::builder().set_keys(Some(wanted)).consistent_read(true).build();
        let request = request.map_err(|error| StateError::damaged("batch", error))?;
        let mut left = HashMap::from([(self.table.clone(), request)]);
        for attempt in 0..=REREADS_MAX {
            if attempt > 0 {
                pause(attempt).await;
            }
            let read = self.client.batch_get_item().set_request_items(Some(left)).send().await;
            let read = read.map_err(|error| StateError::sdk("read a batch", error))?;
            found.extend(read.responses.unwrap_or_default().into_values().flatten());
            left = read.unprocessed_keys.unwrap_or_default();
            left.retain(|_, request| !request.keys().is_empty());
            if left.is_empty() {
                return Ok(found);
            }
        }
        Err(StateError::Service { verb: "read a batch", problem: "the table did not give all of it".into() })
    }

    /// All samples of one shard that are not over, or with `all` every one, a page at a time.
    ///
    /// `from` is the position after which the page starts. The second value is where the next one does.
    pub async fn shard_page(
        &self,
        run: RunId,
        benchmark: &BenchmarkName,
        plan: u32,
        shard: u32,
        all: bool,
        from: Option<Position>,
    ) -> Result<(Vec<SampleRecord>, Option<Position>), StateError> {
        let mut query = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :shard AND sk > :from")
            .expression_attribute_values(":shard", text(shard_partition(run, benchmark, plan, shard)))
            .expression_attribute_values(":from", text(from.map_or_else(|| "S#".to_owned(), sample_sort)))
            .consistent_read(true);
        if !all {
            query = query
                .filter_expression("#state <> :done")
                .expression_attribute_names("#state", "state")
                .expression_attribute_values(":done", text("done"));
        }
        let page = query.send().await.map_err(|error| StateError::sdk("read samples", error))?;
        let samples: Vec<_> = page.items().iter().map(SampleRecord::read).collect::<Result<_, _>>()?;
        let next = page.last_evaluated_key().map(|record| Reader::new(record).text_or_empty("sk").to_owned());
        let next = next.as_deref().and_then(|sort| sort.strip_prefix("S#")).and_then(|digits| {
            let (item, sample) = digits.split_once('.')?;
            Some(Position { item: item.parse().ok()?, sample: sample.parse().ok()? })
        });
        Ok((samples, next))
    }

    /// The counters of all shards of a benchmark, in the order of the shards.
    pub async fn shard_counts(
        &self,
        run: RunId,
        benchmark: &BenchmarkName,
        plan: u32,
        shards: u32,
    ) -> Result<Vec<ShardCount>, StateError> {
        let wanted: Vec<Record> =
            (0..shards).map(|shard| key(shard_partition(run, benchmark, plan, shard), COUNT)).collect();
        let mut counts = vec![ShardCount::default(); shards as usize];
        for batch in wanted.chunks(READ_BATCH_MAX) {
            for record in self.read_batch(batch.to_vec()).await? {
                let reader = Reader::new(&record);
                let shard =
                    reader.text("pk")?.rsplit('#').next().and_then(|digits| digits.parse::<usize>().ok());
                let Some(slot) = shard.and_then(|shard| counts.get_mut(shard)) else { continue };
                *slot = ShardCount::read(&reader)?;
            }
        }
        Ok(counts)
    }

    /// Notes that a sample's message was sent again, if nothing happened to the sample meanwhile.
    pub async fn note_resent(&self, sample: &SampleRef, record: &SampleRecord) -> Result<bool, StateError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .update_expression("SET resends = :resends")
            .condition_expression("#state <> :done AND due_at = :due")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":resends", number(record.resends + 1))
            .expression_attribute_values(":done", text("done"))
            .expression_attribute_values(":due", number(record.due_at.as_micros()))
            .send()
            .await;
        condition_held("note the resent message", update)
    }
}
