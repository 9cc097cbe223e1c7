//! Claims and releases of samples.

use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemInput};
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use bench_domain::sample::{AttemptHistory, SampleState};
use bench_domain::{SampleRef, Stage, Timestamp};

use super::record::SampleRecord;
use super::turn::STAGE;
use crate::attributes::{Reader, number, text};
use crate::client::{claim_token, condition_held};
use crate::{State, StateError, keys};

/// Result of claiming a sample.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// The caller holds the sample until the lease ends.
    Claimed(Box<ClaimedRecord>),
    /// The sample isn't due until this time.
    NotDue(Timestamp),
    /// Another worker holds the sample.
    Busy,
    /// The sample is open in this other stage, and needs that stage's message.
    Elsewhere(Stage),
    /// The sample is over.
    Over,
    /// The sample doesn't exist.
    Gone,
}

/// Record of a sample that the caller holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedRecord {
    /// Record after the claim.
    pub record: SampleRecord,
    /// Number of the attempt: the fencing token of the commit.
    pub attempt: u32,
}

impl State {
    /// Claims a sample until `lease_until`, if it is in this stage or, if this stage is a turn, in any stage that is a
    /// turn. The sample must be due, or its lease must have expired.
    ///
    /// The claim contains a random token: a retry after a lost response finds its own claim and keeps it.
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
        let update = UpdateItemInput::builder()
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .update_expression(
                "SET #state = :claimed, due_at = :until, epoch = :epoch, claim_token = :token, resends = :zero, \
                 claimed_at = :now ADD attempt :one, unended :one",
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
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let error = match self.update(update).await {
            Ok(updated) => {
                let record = SampleRecord::read(&updated.attributes.unwrap_or_default())?;
                let attempt = record.history.attempts;
                return Ok(Claim::Claimed(Box::new(ClaimedRecord { record, attempt })));
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
                let attempt = record.history.attempts;
                Claim::Claimed(Box::new(ClaimedRecord { record, attempt }))
            }
            SampleState::Claimed(_) => Claim::Busy,
        })
    }

    /// Makes a sample due that an attempt put off until `due_at`, if that attempt began before `resumed_at`: a run that is
    /// resumed doesn't wait for what it waited for before. Returns false if the sample has to wait.
    pub async fn end_put_off(
        &self,
        sample: &SampleRef,
        due_at: Timestamp,
        resumed_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StateError> {
        let ended = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .update_expression("SET due_at = :now")
            .condition_expression("#state = :open AND due_at = :due AND claimed_at < :resumed")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":open", text("open"))
            .expression_attribute_values(":due", number(due_at.as_micros()))
            .expression_attribute_values(":resumed", number(resumed_at.as_micros()))
            .expression_attribute_values(":now", number(now.as_micros()))
            .send()
            .await;
        condition_held("end a sample's wait", ended)
    }

    /// Releases a claimed sample until `due_at`: for a planned wait, after a failed attempt, or after interrupted work.
    /// Returns `false` if the attempt no longer holds the sample.
    ///
    /// All attempts up to `cleared` left no answer behind; the next attempt looks for stored answers only after it.
    pub async fn release(
        &self,
        sample: &SampleRef,
        attempt: u32,
        cleared: u32,
        due_at: Timestamp,
        history: AttemptHistory,
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
            .expression_attribute_values(":failures", number(history.failures))
            .expression_attribute_values(":waits", number(history.waits))
            .expression_attribute_values(":lost", number(history.lost));
        match history.waiting_since {
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
                // The response to this call's first try may have been lost.
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
}
