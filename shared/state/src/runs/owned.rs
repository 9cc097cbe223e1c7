//! Runs of an owner, and hidden runs: records that lists read, written in the transactions that create, change and delete
//! the run.

use std::collections::HashSet;

use aws_sdk_dynamodb::types::{Delete, Put, TransactWriteItem, Update};
use bench_domain::run::Owner;
use bench_domain::{RunId, RunLabels, RunSpec};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::read::run_of_sort;
use crate::attributes::{Reader, Record, number, text};
use crate::keys::{self, HIDDEN, OWNERS, key, time_sort};
use crate::{RunFilter, State, StateError};

/// Attribute of a hidden run with the name of its owner in keys.
const OWNER: &str = "owner";
/// Number of runs to read at once while lists are completed.
const COMPLETED_AT_ONCE: usize = 100;
const WRITES_AT_ONCE: usize = 16;

/// Returns the key of the record that exists once all runs are in their owners' lists.
fn complete_key() -> Record {
    key(OWNERS, "COMPLETE")
}

fn owner_partition(owner: &Owner) -> String {
    format!("OWNER#{}", owner.key_name())
}

fn owned_key(spec: &RunSpec) -> Record {
    key(owner_partition(&spec.owner), time_sort(spec.created_at, spec.id))
}

fn hidden_key(spec: &RunSpec) -> Record {
    key(HIDDEN, time_sort(spec.created_at, spec.id))
}

impl State {
    /// Lists the runs of these owners, newest first.
    ///
    /// Runs that were created by versions without these lists are missing until they are
    /// [complete](Self::complete_owner_lists).
    pub async fn runs_of(&self, owners: &[Owner]) -> Result<Vec<RunId>, StateError> {
        let mut sorts = Vec::new();
        for owner in owners {
            let mut pages = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("pk = :owner")
                .projection_expression("sk")
                .expression_attribute_values(":owner", text(owner_partition(owner)))
                .consistent_read(true)
                .into_paginator()
                .items()
                .send();
            while let Some(record) = pages.next().await {
                let record = record.map_err(|error| StateError::sdk("list the owner's runs", error))?;
                sorts.push(Reader::new(&record).text("sk")?.to_owned());
            }
        }
        sorts.sort_unstable_by(|a, b| b.cmp(a));
        sorts.iter().map(|sort| run_of_sort(sort)).collect()
    }

    /// Returns true if the owners' lists have all runs, also those that versions without these lists created.
    pub async fn are_owner_lists_complete(&self) -> Result<bool, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(complete_key()))
            .consistent_read(true)
            .send()
            .await;
        Ok(got.map_err(|error| StateError::sdk("read the owners' lists", error))?.item.is_some())
    }

    /// Adds runs that versions without these lists created to their owners' lists, and returns the number of all runs that
    /// were looked at. Does nothing once the lists are complete. Safe to repeat.
    pub async fn complete_owner_lists(&self) -> Result<u64, StateError> {
        if self.are_owner_lists_complete().await? {
            return Ok(0);
        }
        let all = self.list_runs(&RunFilter::default(), 0, u64::MAX).await?.runs;
        let mut listed = 0;
        for batch in all.chunks(COMPLETED_AT_ONCE) {
            let records = self.runs(batch).await?;
            let writes: Vec<_> = records.iter().map(|run| self.add_to_owner(&run.spec)).collect();
            let written: Vec<()> =
                stream::iter(writes).buffer_unordered(WRITES_AT_ONCE).try_collect().await?;
            listed += written.len() as u64;
        }
        let put = self.client.put_item().table_name(&self.table).set_item(Some(complete_key())).send().await;
        put.map_err(|error| StateError::sdk("complete the owners' lists", error))?;
        Ok(listed)
    }

    /// Adds a run to its owner's list, unless it is deleted at the same time.
    async fn add_to_owner(&self, spec: &RunSpec) -> Result<(), StateError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(keys::run(spec.id)))
            .update_expression("SET owner_listed = :yes")
            .condition_expression("attribute_exists(pk) AND attribute_not_exists(deleted)")
            .expression_attribute_values(":yes", number(1))
            .build()
            .map_err(|error| StateError::damaged("run", error))?;
        let items = vec![TransactWriteItem::builder().update(update).build(), self.owned_put(spec)?];
        match self.transact("add the run to its owner's list", items).await? {
            Ok(()) => Ok(()),
            Err(_) if self.run(spec.id).await?.is_none() => Ok(()),
            Err(_) => Err(StateError::damaged("run", "it can't be added to its owner's list")),
        }
    }

    /// Returns the hidden runs that belong to none of these owners, from the one with the sort key by time `oldest` to the one
    /// with `newest`.
    pub(super) async fn runs_hidden_from(
        &self,
        owners: &[Owner],
        oldest: &str,
        newest: &str,
    ) -> Result<HashSet<RunId>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :hidden AND sk BETWEEN :oldest AND :newest")
            .expression_attribute_values(":hidden", text(HIDDEN))
            .expression_attribute_values(":oldest", text(oldest))
            .expression_attribute_values(":newest", text(newest))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let own: Vec<String> = owners.iter().map(Owner::key_name).collect();
        let mut found = HashSet::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list hidden runs", error))?;
            let reader = Reader::new(&record);
            let owner = reader.text(OWNER)?;
            if !own.iter().any(|own| own == owner) {
                found.insert(run_of_sort(reader.text("sk")?)?);
            }
        }
        Ok(found)
    }

    /// Adds a new run to its owner's list.
    pub(super) fn owned_put(&self, spec: &RunSpec) -> Result<TransactWriteItem, StateError> {
        self.index_put(owned_key(spec))
    }

    /// Writes or removes the record of a hidden run, so that it fits these labels.
    pub(super) fn hidden_change(
        &self,
        spec: &RunSpec,
        labels: &RunLabels,
    ) -> Result<TransactWriteItem, StateError> {
        if labels.visibility.is_public() {
            return self.index_delete(hidden_key(spec));
        }
        let mut record = hidden_key(spec);
        record.insert(OWNER.into(), text(spec.owner.key_name()));
        self.index_put(record)
    }

    /// Removes the run's records of both kinds.
    pub(super) fn owned_deletes(&self, spec: &RunSpec) -> Result<[TransactWriteItem; 2], StateError> {
        Ok([self.index_delete(owned_key(spec))?, self.index_delete(hidden_key(spec))?])
    }

    fn index_put(&self, record: Record) -> Result<TransactWriteItem, StateError> {
        let put = Put::builder().table_name(&self.table).set_item(Some(record)).build();
        let put = put.map_err(|error| StateError::damaged("run", error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    fn index_delete(&self, key: Record) -> Result<TransactWriteItem, StateError> {
        let delete = Delete::builder().table_name(&self.table).set_key(Some(key)).build();
        let delete = delete.map_err(|error| StateError::damaged("run", error))?;
        Ok(TransactWriteItem::builder().delete(delete).build())
    }
}
