//! Runs of an owner, and hidden runs: records that lists read, written in the transactions that create, change and delete
//! the run.

use std::collections::HashSet;

use aws_sdk_dynamodb::types::{Delete, Put, TransactWriteItem};
use bench_domain::run::Owner;
use bench_domain::{RunId, RunLabels, RunSpec};

use super::read::run_of_sort;
use crate::attributes::{Reader, Record, text};
use crate::keys::{HIDDEN, key, time_sort};
use crate::{State, StateError};

/// Attribute of a hidden run with the name of its owner in keys.
const OWNER: &str = "owner";

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
    /// Runs that were created by versions without this index are missing.
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

    /// Returns the hidden runs that belong to none of these owners.
    pub async fn runs_hidden_from(&self, owners: &[Owner]) -> Result<HashSet<RunId>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :hidden")
            .expression_attribute_values(":hidden", text(HIDDEN))
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
