//! Handovers of a claimed sample to a later stage or question, and checkpoints of stages.

use aws_sdk_dynamodb::operation::update_item::UpdateItemInput;
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use bench_domain::{SampleRef, Spending, Stage, Timestamp, Usage};
use serde::Serialize;

use super::Values;
use super::turn::{AnswerRecord, STAGE};
use crate::attributes::{Reader, json, number, text};
use crate::client::condition_held;
use crate::keys::{self, COUNT, key};
use crate::usage::JUDGE_USAGE;
use crate::{BodyRef, State, StateError};

/// Judge's reply without a verdict, after which the judge is asked again.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplyWithoutVerdict {
    /// Reference to answer and reply.
    pub body: BodyRef,
    /// Tokens of all replies so far, this one included.
    pub usage: Option<Usage>,
    /// Tokens of this reply that count toward a budget.
    pub spent: Usage,
}

/// Result of handing over an answer, or of recording a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handover {
    /// The sample is open for the next turn.
    Done,
    /// Another attempt holds or ended the sample; nothing was changed.
    Lost,
}

impl State {
    /// Opens a sample that `attempt` holds for its next turn, after its answer, or a part of it, was stored. `spent`
    /// are the tokens that this attempt's answer adds, which count from now on. The counts of failures and waits start at zero again.
    pub async fn hand_over(
        &self,
        sample: &SampleRef,
        attempt: u32,
        to: Stage,
        answered: &AnswerRecord,
        spent: Usage,
        now: Timestamp,
    ) -> Result<Handover, StateError> {
        let mut set =
            "#stage = :stage, failures = :zero, waits = :zero, replies = :zero, truncated = :truncated"
                .to_owned();
        let mut remove = vec!["waiting_since"];
        remove.extend(Stage::ALL.into_iter().filter_map(Stage::checkpoint_attribute));
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
        let change = UpdateParts { set, remove, values };
        self.open_for_turn(sample, attempt, &answered.body, change, spent.into(), now).await
    }

    /// Opens a sample that `attempt` holds for another try of the judge, because the stored reply has no verdict.
    pub async fn note_reply(
        &self,
        sample: &SampleRef,
        attempt: u32,
        replies: u32,
        reply: &ReplyWithoutVerdict,
        now: Timestamp,
    ) -> Result<Handover, StateError> {
        let mut set = "replies = :replies".to_owned();
        let mut values: Values = vec![(":replies", number(replies))];
        if let Some(usage) = reply.usage {
            set.push_str(", judge_input = :input, judge_output = :output, judge_reasoning = :reasoning");
            values.push((":input", number(usage.input_tokens)));
            values.push((":output", number(usage.output_tokens)));
            values.push((":reasoning", number(usage.reasoning_tokens)));
        }
        let change = UpdateParts { set, remove: vec![], values };
        let spent = Spending::judge_only(reply.spent);
        self.open_for_turn(sample, attempt, &reply.body, change, spent, now).await
    }

    /// Saves the checkpoint of the stage of a sample that `attempt` holds. With `is_progress`, earlier attempts no longer
    /// count as lost: work that goes on isn't what ends processes. Returns `false` if another attempt holds the
    /// sample now: then nothing was changed, and the caller must not carry out the following side effect.
    ///
    /// # Errors
    /// If the stage has no checkpoints, or the table fails.
    pub async fn save_checkpoint<T: Serialize + Sync>(
        &self,
        sample: &SampleRef,
        attempt: u32,
        stage: Stage,
        checkpoint: &T,
        is_progress: bool,
    ) -> Result<bool, StateError> {
        let Some(attribute) = stage.checkpoint_attribute() else {
            return Err(StateError::damaged(
                "sample",
                format!("stage `{}` keeps no checkpoints", stage.as_str()),
            ));
        };
        let mut update = UpdateItemInput::builder();
        let mut expression = "SET #checkpoint = :checkpoint".to_owned();
        if is_progress {
            expression += ", unended = :this";
            update = update.expression_attribute_values(":this", number(1));
        }
        let update = update
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .update_expression(expression)
            .condition_expression("#state = :claimed AND attempt = :attempt")
            .expression_attribute_names("#state", "state")
            .expression_attribute_names("#checkpoint", attribute)
            .expression_attribute_values(":claimed", text("claimed"))
            .expression_attribute_values(":attempt", number(attempt))
            .expression_attribute_values(":checkpoint", json(attribute, checkpoint)?);
        condition_held("save a sample's checkpoint", self.update(update).await)
    }

    /// Opens the sample for its next turn, and sets `cleared` to this attempt: later attempts don't look for answers that
    /// were stored by this attempt or an earlier one.
    async fn open_for_turn(
        &self,
        sample: &SampleRef,
        attempt: u32,
        body: &BodyRef,
        change: UpdateParts,
        spent: Spending,
        now: Timestamp,
    ) -> Result<Handover, StateError> {
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
            // Must not recreate the counters of a run that was deleted meanwhile.
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
            return Ok(Handover::Done);
        };
        // The response to this call's first try may have been lost.
        let mine = canceled.record(0).is_some_and(|record| {
            Reader::new(record).maybe_number("opened_by").ok().flatten() == Some(attempt)
        });
        Ok(if mine { Handover::Done } else { Handover::Lost })
    }
}

/// Part of an update expression.
struct UpdateParts {
    set: String,
    remove: Vec<&'static str>,
    values: Values,
}
