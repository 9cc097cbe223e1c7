//! Deletion of runs.

use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
use bench_domain::RunId;

use super::change::Transition;
use super::record::RunRecord;
use crate::attributes::{number, text};
use crate::keys::{self, run_partition, status_partition};
use crate::{State, StateError};

/// Status in the `by-status` index of a deleted run that still has records.
pub(super) const DELETED: &str = "deleted";

impl State {
    /// Hides a run that is over; [`State::purge_run`] removes its records afterwards.
    pub async fn mark_deleted(&self, run: &RunRecord) -> Result<Transition, StateError> {
        let id = run.spec.id;
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(keys::run(id)))
            .update_expression(
                "SET deleted = :yes, index_status = :deleted, revision = :next REMOVE index_all",
            )
            .condition_expression("revision = :revision")
            .expression_attribute_values(":yes", number(1))
            .expression_attribute_values(":deleted", status_partition(DELETED))
            .expression_attribute_values(":revision", number(run.revision))
            .expression_attribute_values(":next", number(run.revision + 1))
            .build()
            .map_err(|error| StateError::damaged("run", error))?;
        let mut items = vec![TransactWriteItem::builder().update(update).build()];
        items.extend(self.run_count_update(id, run.counted_as(), None)?);
        // Even if the run had no labels when it was read: changes of labels don't raise its revision.
        items.push(self.labels_delete(&run.spec)?);
        items.extend(self.owned_deletes(&run.spec)?);
        match self.transact("delete the run", items).await? {
            Ok(()) => Ok(Transition::Done),
            Err(_) => {
                let gone = self.run(id).await?.is_none();
                Ok(if gone { Transition::Done } else { Transition::Raced })
            }
        }
    }

    /// Removes all records of a deleted run. Safe to repeat. Does nothing if the run wasn't deleted.
    pub async fn purge_run(&self, run: RunId) -> Result<(), StateError> {
        let Some(found) = self.any_run_with_benchmarks(run).await? else { return Ok(()) };
        if !found.run.deleted {
            return Ok(());
        }
        for benchmark in &found.benchmarks {
            for plan in 1..=found.run.plan_attempts {
                // A planner's attempt that wasn't completed may have chosen another number of shards.
                let shards = benchmark.plan.as_ref().map_or(0, |plan| plan.shards).max(64);
                for shard in 0..shards {
                    self.purge_partition(keys::shard_partition(run, &benchmark.name, plan, shard)).await?;
                }
            }
        }
        self.purge_partition(keys::events_partition(run)).await?;
        self.forget_unsettled(run).await?;
        // The run's own partition is last, so that an interrupted purge is found again.
        self.purge_partition(run_partition(run)).await
    }

    pub(crate) async fn purge_partition(&self, partition: String) -> Result<(), StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :partition")
            .projection_expression("pk, sk")
            .expression_attribute_values(":partition", text(partition))
            .into_paginator()
            .send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| StateError::sdk("read what is to be removed", error))?;
            self.delete_batch(page.items.unwrap_or_default()).await?;
        }
        Ok(())
    }
}
