//! The turns of a sample behind its first question: its answer, or a part of it, is stored; the next question has to be
//! asked, a judge has to say what the answer is worth, or it has to be run in a sandbox.

use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use bench_domain::sample::Stage;
use bench_domain::{SampleRef, Spending, Timestamp, Usage, Verdict};

use crate::attributes::{Reader, number, text};
use crate::keys::{self, COUNT, key};
use crate::samples::Values;
use crate::turn::{JOB, STAGE};
use crate::usage::JUDGE_USAGE;
use crate::{Answered, BodyRef, Finished, SampleRecord, State, StateError};

/// A judge's reply that holds no verdict: the judge is asked again.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Where answer and reply are.
    pub body: BodyRef,
    /// Tokens of all replies so far, this one included.
    pub usage: Option<Usage>,
    /// Tokens of this one that count for a budget.
    pub spent: Usage,
}

/// What came of handing an answer over, or of noting a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandedOver {
    /// The sample is open for who judges.
    Done,
    /// Another attempt has the sample now, or ended it: nothing was changed.
    Lost,
}

impl SampleRecord {
    /// Whose turn it is, or was last.
    pub const fn stage(&self) -> Stage {
        match &self.turn {
            Some(turn) => turn.stage,
            None => Stage::Answer,
        }
    }

    /// The stored prompt and answer: as the sample ended, or as they were handed over and have no verdict.
    pub fn stored(&self) -> Option<&BodyRef> {
        match (&self.finished, &self.turn) {
            (Some(finished), _) => finished.body.as_ref(),
            (None, Some(turn)) => Some(&turn.answer.body),
            (None, None) => None,
        }
    }

    /// The whole answer that waits for its judge or its sandbox, or never got a verdict since the run ended first.
    pub fn unjudged(&self) -> Option<&Answered> {
        let turn = self.turn.as_ref().filter(|turn| self.finished.is_none() && turn.stage.is_turn());
        turn.map(|turn| &turn.answer)
    }

    /// Attempts that asked the model, and those of later turns.
    pub fn attempts(&self) -> (u32, u32) {
        let all = self.effort.attempts;
        let model = self.turn.as_ref().and_then(|turn| turn.answered_by).unwrap_or(all).min(all);
        (model, all - model)
    }

    /// The end of the sample with this verdict, with the answer that was handed over if one was, and without a
    /// reply of the judge.
    pub fn ended(&self, verdict: Verdict, at: Timestamp) -> Finished {
        let (answer, judge_usage) = match &self.turn {
            Some(turn) => (Some(turn.answer.clone()), turn.usage),
            None => (None, None),
        };
        let Some(Answered { body, item_hash, truncated, latency_ms, usage, model }) = answer else {
            return Finished {
                verdict,
                body: None,
                item_hash: None,
                truncated: false,
                latency_ms: None,
                usage: None,
                model: None,
                judge_usage,
                judge_latency_ms: None,
                judge_model: None,
                at,
            };
        };
        Finished {
            verdict,
            body: Some(body),
            item_hash,
            truncated,
            latency_ms,
            usage,
            model,
            judge_usage,
            judge_latency_ms: None,
            judge_model: None,
            at,
        }
    }
}

impl State {
    /// Opens a sample that `attempt` holds for who has the next turn: its answer, or a part of it, is stored. `spent` are
    /// the tokens that this attempt's answer adds, which count from now on. Effort starts anew.
    pub async fn hand_over(
        &self,
        sample: &SampleRef,
        attempt: u32,
        to: Stage,
        answered: &Answered,
        spent: Usage,
        now: Timestamp,
    ) -> Result<HandedOver, StateError> {
        let mut set =
            "#stage = :stage, failures = :zero, waits = :zero, replies = :zero, truncated = :truncated"
                .to_owned();
        let mut remove = vec!["waiting_since", JOB];
        match to.is_turn() {
            true => set.push_str(", answered_by = :body"),
            false => remove.push("answered_by"),
        }
        let mut values: Values =
            vec![(":stage", text(to.as_str())), (":truncated", number(u8::from(answered.truncated)))];
        let usage = |part: fn(&Usage) -> u64| answered.usage.as_ref().map(|usage| number(part(usage)));
        let optional: [(&'static str, &'static str, Option<AttributeValue>); 6] = [
            ("item_hash", ":hash", answered.item_hash.as_ref().map(text)),
            ("latency_ms", ":latency", answered.latency_ms.map(number)),
            ("model", ":model", answered.model.as_ref().map(text)),
            ("input_tokens", ":input", usage(|usage| usage.input_tokens)),
            ("output_tokens", ":output", usage(|usage| usage.output_tokens)),
            ("reasoning_tokens", ":reasoning", usage(|usage| usage.reasoning_tokens)),
        ];
        for (name, placeholder, value) in optional {
            match value {
                Some(value) => {
                    set.push_str(&format!(", {name} = {placeholder}"));
                    values.push((placeholder, value));
                }
                None => remove.push(name),
            }
        }
        remove.extend(JUDGE_USAGE);
        let change = Change { set, remove, values };
        self.open_for_turn(sample, attempt, &answered.body, change, spent.into(), now).await
    }

    /// Opens a sample that `attempt` holds for who judges once more: the stored reply holds no verdict.
    pub async fn note_reply(
        &self,
        sample: &SampleRef,
        attempt: u32,
        replies: u32,
        reply: &Reply,
        now: Timestamp,
    ) -> Result<HandedOver, StateError> {
        let mut set = "replies = :replies".to_owned();
        let mut values: Values = vec![(":replies", number(replies))];
        if let Some(usage) = reply.usage {
            set.push_str(", judge_input = :input, judge_output = :output, judge_reasoning = :reasoning");
            values.push((":input", number(usage.input_tokens)));
            values.push((":output", number(usage.output_tokens)));
            values.push((":reasoning", number(usage.reasoning_tokens)));
        }
        let change = Change { set, remove: vec![], values };
        let spent = Spending::of_judge(reply.spent);
        self.open_for_turn(sample, attempt, &reply.body, change, spent, now).await
    }

    /// Both: the sample is open, and nothing that was stored up to this attempt is looked for again.
    async fn open_for_turn(
        &self,
        sample: &SampleRef,
        attempt: u32,
        body: &BodyRef,
        change: Change,
        spent: Spending,
        now: Timestamp,
    ) -> Result<HandedOver, StateError> {
        let damaged = |error| StateError::damaged("sample", error);
        let mut expression = format!(
            "SET #state = :open, due_at = :now, cleared = :attempt, resends = :zero, body_attempt = :body, \
             body_sha256 = :sha, counted = :body, opened_by = :attempt, unended = :zero, {}",
            change.set
        );
        if !change.remove.is_empty() {
            expression.push_str(" REMOVE ");
            expression.push_str(&change.remove.join(", "));
        }
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .condition_expression("#state = :claimed AND attempt = :attempt")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":open", text("open"))
            .expression_attribute_values(":claimed", text("claimed"))
            .expression_attribute_values(":attempt", number(attempt))
            .expression_attribute_values(":now", number(now.as_micros()))
            .expression_attribute_values(":zero", number(0))
            .expression_attribute_values(":body", number(body.attempt))
            .expression_attribute_values(":sha", text(&body.sha256))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        if expression.contains("#stage") {
            update = update.expression_attribute_names("#stage", STAGE);
        }
        for (name, value) in change.values {
            update = update.expression_attribute_values(name, value);
        }
        let update = update.update_expression(expression).build().map_err(damaged)?;
        let count = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(keys::sample_partition(sample), COUNT)))
            .update_expression(
                "ADD spent_input :input, spent_output :output, spent_estimated :estimated, \
                 judge_spent_input :judge_input, judge_spent_output :judge_output, \
                 judge_spent_estimated :judge_estimated",
            )
            // The counters of a run that was deleted meanwhile must not come back.
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_values(":input", number(spent.answers.input_tokens))
            .expression_attribute_values(":output", number(spent.answers.output_tokens))
            .expression_attribute_values(":judge_input", number(spent.judge.input_tokens))
            .expression_attribute_values(":judge_output", number(spent.judge.output_tokens))
            .expression_attribute_values(":estimated", number(spent.answers.estimated_tokens))
            .expression_attribute_values(":judge_estimated", number(spent.judge.estimated_tokens))
            .build()
            .map_err(damaged)?;
        let items = vec![
            TransactWriteItem::builder().update(update).build(),
            TransactWriteItem::builder().update(count).build(),
        ];
        let Err(canceled) = self.transact("hand the answer over", items).await? else {
            return Ok(HandedOver::Done);
        };
        // The answer to our own first try may have been lost.
        let mine = canceled.record(0).is_some_and(|record| {
            Reader::new(record).maybe_number("opened_by").ok().flatten() == Some(attempt)
        });
        Ok(if mine { HandedOver::Done } else { HandedOver::Lost })
    }
}

/// A part of an update expression.
struct Change {
    set: String,
    remove: Vec<&'static str>,
    values: Values,
}
