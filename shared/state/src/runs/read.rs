//! Reads and lists of runs.

use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::types::{AttributeValue, Select};
use bench_domain::run::Owner;
use bench_domain::{RunId, RunStatus};

use super::delete::DELETED;
use super::record::{BenchmarkRecord, RunRecord, RunWithBenchmarks};
use crate::attributes::{Reader, text};
use crate::keys::{self, BY_STATUS, BY_TIME, RUNS, run_partition, status_partition};
use crate::{State, StateError};

/// Filter of a list of runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only runs with this status.
    pub status: Option<RunStatus>,
    /// Only runs of this model.
    pub model_id: Option<String>,
    /// Only runs whose model's name contains this text, ignoring case.
    pub model_slug: Option<String>,
    /// Only runs with all of these tags.
    pub tags: Vec<String>,
    /// Only runs whose own name contains this text, ignoring case.
    pub name: Option<String>,
    /// Owners whose own hidden runs are listed, too; `None` lists those of all owners.
    pub viewer: Option<Vec<Owner>>,
}

/// Page of a list of runs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunPage {
    /// Runs of the page.
    pub runs: Vec<RunId>,
    /// Total number of matching runs.
    pub total: u64,
}

impl State {
    /// Returns a run; `None` if it doesn't exist or was deleted.
    pub async fn run(&self, run: RunId) -> Result<Option<RunRecord>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(keys::run(run)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the run", error))?;
        let run = got.item().map(RunRecord::read).transpose()?;
        Ok(run.filter(|run| !run.deleted))
    }

    /// Returns a run with its benchmarks; `None` if it doesn't exist or was deleted.
    pub async fn run_with_benchmarks(&self, run: RunId) -> Result<Option<RunWithBenchmarks>, StateError> {
        Ok(self.any_run_with_benchmarks(run).await?.filter(|found| !found.run.deleted))
    }

    /// Returns a run with its benchmarks, even if it was deleted.
    pub async fn any_run_with_benchmarks(&self, run: RunId) -> Result<Option<RunWithBenchmarks>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :run")
            .expression_attribute_values(":run", text(run_partition(run)))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let (mut found, mut benchmarks) = (None, Vec::new());
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("read the run", error))?;
            match Reader::new(&record).text("sk")? {
                "RUN" => found = Some(RunRecord::read(&record)?),
                sort if sort.starts_with("BENCH#") => benchmarks.push(BenchmarkRecord::read(&record)?),
                _ => {}
            }
        }
        Ok(found.map(|run| RunWithBenchmarks { run, benchmarks }))
    }

    /// Lists at most `limit` matching runs from `offset` on, newest first, and the total number of matches.
    pub async fn list_runs(
        &self,
        filter: &RunFilter,
        offset: u64,
        limit: u64,
    ) -> Result<RunPage, StateError> {
        let (index, partition, value) = match filter.status {
            Some(status) => (BY_STATUS, "index_status", status_partition(status.as_str())),
            None => (BY_TIME, "index_all", text(RUNS)),
        };
        self.list_index(index, partition, value, filter, offset, limit).await
    }

    /// Lists deleted runs that still have records.
    pub async fn list_deleted(&self, limit: u64) -> Result<Vec<RunId>, StateError> {
        let value = status_partition(DELETED);
        let everything = RunFilter::default();
        Ok(self.list_index(BY_STATUS, "index_status", value, &everything, 0, limit).await?.runs)
    }

    async fn list_index(
        &self,
        index: &str,
        partition: &str,
        value: AttributeValue,
        filter: &RunFilter,
        offset: u64,
        limit: u64,
    ) -> Result<RunPage, StateError> {
        // The indexes don't have names and tags, and DynamoDB can't add attributes to an existing index.
        let labeled: Option<HashSet<RunId>> = match (filter.tags.as_slice(), &filter.name) {
            ([], None) => None,
            (tags, name) => Some(self.labeled_runs(tags, name.as_deref()).await?),
        };
        if labeled.as_ref().is_some_and(HashSet::is_empty) {
            return Ok(RunPage::default());
        }
        let mut conditions = Vec::new();
        let mut values = HashMap::from([(":partition".to_owned(), value)]);
        if let Some(slug) = &filter.model_slug {
            conditions.push("contains(model_slug_lower, :slug)");
            values.insert(":slug".into(), text(slug.to_lowercase()));
        }
        if let Some(model) = &filter.model_id {
            conditions.push("model_id = :model");
            values.insert(":model".into(), text(model));
        }
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(index)
            .key_condition_expression(format!("{partition} = :partition"))
            .set_filter_expression((!conditions.is_empty()).then(|| conditions.join(" AND ")))
            .set_expression_attribute_values(Some(values))
            .select(Select::AllProjectedAttributes)
            .scan_index_forward(false)
            .into_paginator()
            .items()
            .send();
        let mut runs = Vec::new();
        let (mut newest, mut oldest) = (None, None);
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list runs", error))?;
            let sort = Reader::new(&record).text("index_sort")?;
            let run = run_of_sort(sort)?;
            if labeled.as_ref().is_none_or(|labeled| labeled.contains(&run)) {
                runs.push(run);
                newest.get_or_insert_with(|| sort.to_owned());
                oldest = Some(sort.to_owned());
            }
        }
        // After the index, so that a hidden run that was created in the meantime isn't listed. The records of hidden runs
        // have the same sort keys as the index, so those outside of the range are of other runs.
        if let (Some(owners), Some(newest), Some(oldest)) = (&filter.viewer, newest, oldest) {
            let hidden = self.runs_hidden_from(owners, &oldest, &newest).await?;
            runs.retain(|run| !hidden.contains(run));
        }
        let total = runs.len() as u64;
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let runs = runs.into_iter().skip(count(offset)).take(count(limit)).collect();
        Ok(RunPage { runs, total })
    }
}

/// Returns the run of a sort key by time.
pub(super) fn run_of_sort(sort: &str) -> Result<RunId, StateError> {
    let run = sort.rsplit('#').next().and_then(|run| run.parse().ok());
    run.ok_or_else(|| StateError::damaged(sort, "it names no run"))
}
