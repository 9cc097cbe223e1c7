//! Labels of runs: name, tags, notes and visibility.
//!
//! They are an attribute of the run's record. Runs with a name or a tag also have a record in one partition, where
//! lists find them: the indexes can't be extended. Hidden runs have another one (`State::runs_hidden_from`). All are written
//! in one transaction.
//!
//! Labels are not part of a run's course. A change neither raises the revision, so that it doesn't interfere with
//! transitions, nor writes an event.

use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, Put, TransactWriteItem, Update};
use bench_domain::{RunId, RunLabels, RunSpec};

use super::change::Transition;
use super::read::run_of_sort;
use super::record::{LABELS, RunRecord};
use crate::attributes::{Reader, json, text};
use crate::keys;
use crate::{State, StateError};

/// Attribute with the name in lower case.
const NAME_LOWER: &str = "name_lower";
/// Attribute with the set of tags.
const TAGS: &str = "tags";

/// Name and tags of a run, for searches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchedLabels {
    /// Name in lower case; empty for none.
    pub name_lower: String,
    /// Tags.
    pub tags: Vec<String>,
}

/// Returns the condition that a run has these labels, as `:old`.
fn are_unchanged(labels: &RunLabels) -> &'static str {
    if labels.is_empty() { "attribute_not_exists(#labels)" } else { "#labels = :old" }
}

impl State {
    /// Returns the names and tags of all runs that have some.
    pub async fn searched_labels(&self) -> Result<HashMap<RunId, SearchedLabels>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :labels")
            .expression_attribute_values(":labels", text(keys::LABELS))
            .into_paginator()
            .items()
            .send();
        let mut found = HashMap::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list labeled runs", error))?;
            let reader = Reader::new(&record);
            let tags = record.get(TAGS).and_then(|tags| tags.as_ss().ok()).cloned().unwrap_or_default();
            let name_lower = reader.text_or_empty(NAME_LOWER).to_owned();
            found.insert(run_of_sort(reader.text("sk")?)?, SearchedLabels { name_lower, tags });
        }
        Ok(found)
    }

    /// Changes the labels of a run in any state, if they are still those of `run`.
    pub async fn change_labels(&self, run: &RunRecord, labels: &RunLabels) -> Result<Transition, StateError> {
        self.change_labels_if(run, labels, None).await
    }

    /// Changes the labels of a run that judges the answers of `original` again, like [`State::change_labels`], if those of
    /// `original` are unchanged, too.
    pub async fn change_rejudge_labels(
        &self,
        run: &RunRecord,
        labels: &RunLabels,
        original: &RunRecord,
    ) -> Result<Transition, StateError> {
        let check = self.unchanged_labels_check(original.spec.id, &original.spec.labels)?;
        self.change_labels_if(run, labels, Some(check)).await
    }

    /// Returns a check that a run exists and has these labels.
    pub(crate) fn unchanged_labels_check(
        &self,
        run: RunId,
        labels: &RunLabels,
    ) -> Result<TransactWriteItem, StateError> {
        let mut check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(keys::run(run)))
            .condition_expression(format!(
                "attribute_exists(pk) AND attribute_not_exists(deleted) AND {}",
                are_unchanged(labels)
            ))
            .expression_attribute_names("#labels", LABELS);
        if !labels.is_empty() {
            check = check.expression_attribute_values(":old", json("run", labels)?);
        }
        let check = check.build().map_err(|error| StateError::damaged("run", error))?;
        Ok(TransactWriteItem::builder().condition_check(check).build())
    }

    async fn change_labels_if(
        &self,
        run: &RunRecord,
        labels: &RunLabels,
        check: Option<TransactWriteItem>,
    ) -> Result<Transition, StateError> {
        let (spec, old) = (&run.spec, &run.spec.labels);
        let change = if labels.is_empty() { "REMOVE #labels" } else { "SET #labels = :new" };
        let is_unchanged = are_unchanged(old);
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(keys::run(spec.id)))
            .update_expression(change)
            .condition_expression(format!(
                "attribute_exists(pk) AND attribute_not_exists(deleted) AND {is_unchanged}"
            ))
            .expression_attribute_names("#labels", LABELS);
        if !labels.is_empty() {
            update = update.expression_attribute_values(":new", json("run", labels)?);
        }
        if !old.is_empty() {
            update = update.expression_attribute_values(":old", json("run", old)?);
        }
        let update = update.build().map_err(|error| StateError::damaged("run", error))?;
        let record = match self.labels_put(spec, labels)? {
            Some(put) => put,
            None => self.labels_delete(spec)?,
        };
        let mut items = vec![TransactWriteItem::builder().update(update).build(), record];
        items.extend(check);
        if labels.visibility != old.visibility {
            items.push(self.hidden_change(spec, labels)?);
        }
        // If the response to the first try was lost, the caller reads the new labels and writes them again.
        let written = self.transact("change the labels of the run", items).await?;
        Ok(if written.is_ok() { Transition::Done } else { Transition::Raced })
    }

    /// Writes the record for searches of the run by name and tags. `None` if it has neither.
    pub(super) fn labels_put(
        &self,
        spec: &RunSpec,
        labels: &RunLabels,
    ) -> Result<Option<TransactWriteItem>, StateError> {
        let RunLabels { name, tags, notes: _, visibility: _ } = labels;
        if name.is_none() && tags.is_empty() {
            return Ok(None);
        }
        let mut record = keys::labels(spec.created_at, spec.id);
        record.extend(name.as_ref().map(|name| (NAME_LOWER.to_owned(), text(name.to_lowercase()))));
        // DynamoDB has no empty sets.
        if !tags.is_empty() {
            record.insert(TAGS.into(), AttributeValue::Ss(tags.clone()));
        }
        let put = Put::builder().table_name(&self.table).set_item(Some(record)).build();
        let put = put.map_err(|error| StateError::damaged("run", error))?;
        Ok(Some(TransactWriteItem::builder().put(put).build()))
    }

    /// Removes the record for searches by name and tags, if there is one.
    pub(super) fn labels_delete(&self, spec: &RunSpec) -> Result<TransactWriteItem, StateError> {
        let delete = Delete::builder()
            .table_name(&self.table)
            .set_key(Some(keys::labels(spec.created_at, spec.id)))
            .build()
            .map_err(|error| StateError::damaged("run", error))?;
        Ok(TransactWriteItem::builder().delete(delete).build())
    }

    /// Returns all runs with all of these tags and with this text in their name, ignoring case.
    pub(super) async fn labeled_runs(
        &self,
        tags: &[String],
        name: Option<&str>,
    ) -> Result<HashSet<RunId>, StateError> {
        let mut conditions: Vec<String> = Vec::new();
        let mut query = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :labels")
            .expression_attribute_values(":labels", text(keys::LABELS))
            .projection_expression("sk")
            .consistent_read(true);
        if !tags.is_empty() {
            query = query.expression_attribute_names("#tags", TAGS);
        }
        for (index, tag) in tags.iter().enumerate() {
            conditions.push(format!("contains(#tags, :tag{index})"));
            query = query.expression_attribute_values(format!(":tag{index}"), text(tag));
        }
        if let Some(name) = name {
            conditions.push("contains(#name, :name)".to_owned());
            query = query
                .expression_attribute_names("#name", NAME_LOWER)
                .expression_attribute_values(":name", text(name.to_lowercase()));
        }
        let condition = (!conditions.is_empty()).then(|| conditions.join(" AND "));
        let mut pages = query.set_filter_expression(condition).into_paginator().items().send();
        let mut found = HashSet::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list labeled runs", error))?;
            found.insert(run_of_sort(Reader::new(&record).text("sk")?)?);
        }
        Ok(found)
    }
}
