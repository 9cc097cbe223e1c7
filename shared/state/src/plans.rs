//! Planning of runs: claims on planning, and writing plans with their samples.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::batch_write_item::BatchWriteItemInput;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    DeleteRequest, PutRequest, ReturnValue, ReturnValuesOnConditionCheckFailure, WriteRequest,
};
use bench_domain::run::Plan;
use bench_domain::sample::items_in_shard;
use bench_domain::{BenchmarkName, Position, RunId, Timestamp};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::attributes::{Reader, Record, number, text};
use crate::client::claim_token;
use crate::client::condition_held;
use crate::conflict::pause;
use crate::keys::{self, COUNT, key, sample_sort, shard_partition};
use crate::{RunRecord, State, StateError};

/// Maximum number of records in a batch, by DynamoDB's limit.
const BATCH_MAX: usize = 25;
/// Maximum number of times that the unprocessed rest of a batch is sent again.
const RESENDS_MAX: u32 = 20;
/// Number of batches whose records are kept in memory.
const BATCHES_AT_ONCE: usize = 16;
/// Number of batches in flight.
const BATCHES_IN_FLIGHT: usize = 8;

/// Result of claiming the planning of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanClaim {
    /// The caller may plan the run, as this attempt of the planner.
    Claimed {
        /// Number of the attempt: the fencing token.
        attempt: u32,
    },
    /// Another planner holds the claim.
    Busy,
    /// There is nothing to plan: the run is planned, over, of another generation or gone.
    Nothing,
}

/// Fields of a planned item that its sample records contain from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedSample {
    /// Id of the item.
    pub item_id: String,
    /// The dataset's own id of the item, if it has one.
    pub source_id: Option<String>,
    /// Group of the item within its benchmark.
    pub group: Option<String>,
    /// Start of the item's frame in the dataset's object, in bytes.
    pub offset: u64,
    /// Length of the frame in bytes.
    pub length: u64,
}

impl State {
    /// Claims the planning of a run until `lease_until`.
    pub async fn claim_plan(
        &self,
        run: RunId,
        generation: u32,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<PlanClaim, StateError> {
        let token = claim_token();
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::run(run)))
            .update_expression(
                "SET plan_lease_until = :until, plan_lease_epoch = :epoch, due_at = :until, plan_token = :token, \
                 revision = revision + :one ADD plan_attempts :one",
            )
            .condition_expression(
                "generation = :generation AND attribute_not_exists(deleted) \
                 AND index_status IN (:queued, :running) \
                 AND (attribute_not_exists(planned_generation) OR planned_generation < :generation) \
                 AND (attribute_not_exists(plan_lease_until) OR plan_lease_until <= :now \
                      OR plan_lease_epoch <> :epoch)",
            )
            .expression_attribute_values(":until", number(lease_until.as_micros()))
            .expression_attribute_values(":epoch", number(self.epoch))
            .expression_attribute_values(":token", number(token))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":generation", number(generation))
            .expression_attribute_values(":queued", keys::status_partition("queued"))
            .expression_attribute_values(":running", keys::status_partition("running"))
            .expression_attribute_values(":now", number(now.as_micros()))
            .return_values(ReturnValue::UpdatedNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let error = match update {
            Ok(updated) => {
                let record = updated.attributes.unwrap_or_default();
                return Ok(PlanClaim::Claimed { attempt: Reader::new(&record).number("plan_attempts")? });
            }
            Err(error) => error,
        };
        let Some(UpdateItemError::ConditionalCheckFailedException(failed)) = error.as_service_error() else {
            return Err(StateError::sdk("claim the plan", error));
        };
        if let Some(old) = failed.item() {
            let reader = Reader::new(old);
            // The response to this call's first try was lost.
            if reader.maybe_number("plan_token")? == Some(token) {
                return Ok(PlanClaim::Claimed { attempt: reader.number("plan_attempts")? });
            }
        }
        let found = self.run(run).await?;
        Ok(match found {
            Some(found)
                if found.generation == generation
                    && found.state.status().is_open()
                    && found.planned_generation < generation =>
            {
                PlanClaim::Busy
            }
            _ => PlanClaim::Nothing,
        })
    }

    /// Releases the claim on planning, so that a later message can claim it immediately.
    pub async fn release_plan(&self, run: RunId, attempt: u32, due_at: Timestamp) -> Result<(), StateError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::run(run)))
            .update_expression("SET due_at = :due REMOVE plan_lease_until")
            .condition_expression("plan_attempts = :attempt")
            .expression_attribute_values(":due", number(due_at.as_micros()))
            .expression_attribute_values(":attempt", number(attempt))
            .send()
            .await;
        condition_held("give the plan back", update).map(drop)
    }

    /// Records that a run is planned and all its messages are sent, so the run can be closed from now on.
    pub async fn note_planned(&self, run: RunId, generation: u32) -> Result<(), StateError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::run(run)))
            .update_expression("SET planned_generation = :generation, due_at = :now, resends = :zero REMOVE plan_lease_until")
            .condition_expression("generation = :generation")
            .expression_attribute_values(":zero", number(0))
            .expression_attribute_values(":generation", number(generation))
            .expression_attribute_values(":now", number(bench_clock::now().as_micros()))
            .send()
            .await;
        condition_held("note that the run is planned", update).map(drop)
    }

    /// Writes the counters and samples of a plan. They are invisible until the benchmark names the plan. A repetition
    /// of the same attempt writes the same records.
    pub async fn write_plan(
        &self,
        run: RunId,
        benchmark: &BenchmarkName,
        plan: &Plan,
        items: &[PlannedSample],
        now: Timestamp,
    ) -> Result<(), StateError> {
        // Writes one slice at a time, so that memory use doesn't depend on the size of the plan.
        let total = u64::from(plan.shards) + plan.samples();
        let slice = (BATCH_MAX * BATCHES_AT_ONCE) as u64;
        let mut start = 0;
        while start < total {
            let end = total.min(start + slice);
            let records =
                (start..end).filter_map(|index| planned_record(run, benchmark, plan, items, now, index));
            self.put_batch(records.collect()).await?;
            start = end;
        }
        Ok(())
    }

    /// Writes any number of requests, in any order.
    async fn write_requests(
        &self,
        mut requests: impl ExactSizeIterator<Item = Result<WriteRequest, StateError>>,
    ) -> Result<(), StateError> {
        // The futures are collected first: a borrowing closure would make this future not `Send`.
        let mut writes = Vec::with_capacity(requests.len().div_ceil(BATCH_MAX));
        while requests.len() > 0 {
            let batch = requests.by_ref().take(BATCH_MAX).collect::<Result<_, _>>()?;
            writes.push(self.write_batch(batch));
        }
        stream::iter(writes).buffer_unordered(BATCHES_IN_FLIGHT).try_collect().await
    }

    async fn write_batch(&self, batch: Vec<WriteRequest>) -> Result<(), StateError> {
        let mut left = HashMap::from([(self.table.clone(), batch)]);
        for attempt in 0..=RESENDS_MAX {
            if attempt > 0 {
                pause(attempt).await;
            }
            let input = BatchWriteItemInput::builder().set_request_items(Some(left));
            let written = self.write_part(input).await;
            let written = written.map_err(|error| StateError::sdk("write a batch", error))?;
            left = written.unprocessed_items.unwrap_or_default();
            left.retain(|_, requests| !requests.is_empty());
            if left.is_empty() {
                return Ok(());
            }
        }
        Err(StateError::Service { verb: "write a batch", problem: "the table did not take all of it".into() })
    }

    /// Writes records, in any order. Replaces records with the same keys.
    pub(crate) async fn put_batch(&self, records: Vec<Record>) -> Result<(), StateError> {
        let requests = records.into_iter().map(|record| {
            let put = PutRequest::builder().set_item(Some(record)).build();
            let put = put.map_err(|error| StateError::damaged("record", error))?;
            Ok(WriteRequest::builder().put_request(put).build())
        });
        self.write_requests(requests).await
    }

    pub(crate) async fn delete_batch(&self, records: Vec<Record>) -> Result<(), StateError> {
        let requests = records.into_iter().map(|record| {
            let delete = DeleteRequest::builder().set_key(Some(record)).build();
            let delete = delete.map_err(|error| StateError::damaged("record", error))?;
            Ok(WriteRequest::builder().delete_request(delete).build())
        });
        self.write_requests(requests).await
    }

    /// Records that a run's message was sent again, and the time at which it's due next.
    pub async fn note_run_resent(&self, run: &RunRecord, due_at: Timestamp) -> Result<(), StateError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::run(run.spec.id)))
            .update_expression("SET due_at = :due ADD resends :one")
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_values(":due", number(due_at.as_micros()))
            .expression_attribute_values(":one", number(1))
            .send()
            .await;
        condition_held("note the resent message", update).map(drop)
    }
}

/// Returns the number of samples that a plan has in a shard.
pub fn planned_samples(plan: &Plan, shard: u32) -> u64 {
    items_in_shard(plan.items, shard, plan.shards) * u64::from(plan.samples_per_item)
}

/// Builds the record with this index in a plan: first the shards' counters, then the samples by item and sample.
fn planned_record(
    run: RunId,
    benchmark: &BenchmarkName,
    plan: &Plan,
    items: &[PlannedSample],
    now: Timestamp,
    index: u64,
) -> Option<Record> {
    let partition = |shard| shard_partition(run, benchmark, plan.attempt, shard);
    if let Some(shard) = u32::try_from(index).ok().filter(|shard| *shard < plan.shards) {
        let expected = planned_samples(plan, shard);
        let mut record = key(partition(shard), COUNT);
        record.insert("expected".into(), number(expected));
        // A condition can compare attributes but not calculate, so the number of samples minus one is stored.
        record.insert("last".into(), number(i128::from(expected) - 1));
        record.insert("done".into(), number(0));
        return Some(record);
    }
    let index = index - u64::from(plan.shards);
    let per_item = u64::from(plan.samples_per_item.max(1));
    let position = Position {
        item: u32::try_from(index / per_item).ok()?,
        sample: u32::try_from(index % per_item).ok()?,
    };
    let item = items.get(position.item as usize)?;
    let mut record = key(partition(position.item % plan.shards.max(1)), sample_sort(position));
    record.insert("state".into(), text("open"));
    record.insert("due_at".into(), number(now.as_micros()));
    record.insert("item_id".into(), text(&item.item_id));
    if let Some(source_id) = &item.source_id {
        record.insert("source_id".into(), text(source_id));
    }
    if let Some(group) = &item.group {
        record.insert("group".into(), text(group));
    }
    record.insert("offset".into(), number(item.offset));
    record.insert("length".into(), number(item.length));
    Some(record)
}
