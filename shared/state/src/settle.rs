//! Settling of runs that are over: closing their benchmarks and removing the caller's keys.
//!
//! A run that is over is no longer in any list of open runs. The transition that ends it therefore also writes a record
//! of the unsettled run, which the finisher removes, so that reconciliation finds the run if a message is lost.

use aws_sdk_dynamodb::types::{Delete, Put, ReturnValue, TransactWriteItem};
use bench_domain::{RunId, Timestamp};

use crate::attributes::{Reader, Record, number, text};
use crate::client::condition_held;
use crate::keys::{UNSETTLED, key};
use crate::{State, StateError};

/// Run that is over and not settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsettledRun {
    /// Id of the run.
    pub run: RunId,
    /// Generation that ended.
    pub generation: u32,
    /// Time at which it ended.
    pub since: Timestamp,
}

fn record_key(run: RunId) -> Record {
    key(UNSETTLED, run.to_string())
}

impl State {
    /// Writes the record of an unsettled run, in the transaction that ends the run.
    pub(crate) fn unsettled_put(
        &self,
        run: RunId,
        generation: u32,
        now: Timestamp,
    ) -> Result<TransactWriteItem, StateError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(record_key(run)))
            .item("generation", number(generation))
            .item("since", number(now.as_micros()))
            .build()
            .map_err(|error| StateError::damaged("run", error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// Removes the record of an unsettled run, in the transaction that opens the run again.
    pub(crate) fn unsettled_delete(&self, run: RunId) -> Result<TransactWriteItem, StateError> {
        let delete = Delete::builder()
            .table_name(&self.table)
            .set_key(Some(record_key(run)))
            .build()
            .map_err(|error| StateError::damaged("run", error))?;
        Ok(TransactWriteItem::builder().delete(delete).build())
    }

    /// Lists at most `limit` runs that are over and not settled.
    pub async fn list_unsettled(&self, limit: usize) -> Result<Vec<UnsettledRun>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :unsettled")
            .expression_attribute_values(":unsettled", text(UNSETTLED))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let mut found = Vec::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list unsettled runs", error))?;
            let reader = Reader::new(&record);
            let run = reader.text("sk")?.parse().map_err(|error| StateError::damaged(reader.key(), error))?;
            found.push(UnsettledRun {
                run,
                generation: reader.number("generation")?,
                since: reader.time("since")?,
            });
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }

    /// Records that this generation of a run is settled. Safe to repeat. Returns true if it wasn't settled before.
    pub async fn note_settled(&self, run: RunId, generation: u32) -> Result<bool, StateError> {
        let deleted = self
            .client
            .delete_item()
            .table_name(&self.table)
            .set_key(Some(record_key(run)))
            .condition_expression("attribute_not_exists(pk) OR generation = :generation")
            .expression_attribute_values(":generation", number(generation))
            .return_values(ReturnValue::AllOld)
            .send()
            .await;
        let was_there =
            deleted.as_ref().is_ok_and(|deleted| deleted.attributes().is_some_and(|old| !old.is_empty()));
        Ok(condition_held("note that the run is settled", deleted)? && was_there)
    }

    /// Removes the record of a run that is gone, whatever its generation.
    pub(crate) async fn forget_unsettled(&self, run: RunId) -> Result<(), StateError> {
        let deleted =
            self.client.delete_item().table_name(&self.table).set_key(Some(record_key(run))).send().await;
        deleted.map(drop).map_err(|error| StateError::sdk("note that the run is settled", error))
    }
}
