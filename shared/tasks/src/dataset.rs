//! Datasets made of tasks: one row per content, sorted by id, so that equal tasks have equal revisions.

use std::collections::BTreeMap;
use std::io::Write;

use bench_blobs::task_key;
use bench_datasets::NoProgress;
use bench_domain::run::DatasetChoice;
use bench_items::Layout;
use bench_state::TaskRecord;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;

use crate::check::CheckedTask;
use crate::error::TaskError;
use crate::reference::item_id;
use crate::store::{TaskStore, facts_key};

/// Name of the file that is imported. It is part of the dataset's record.
const FILE_NAME: &str = "terminal_tasks.jsonl";
/// Number of objects to read at once.
const READS_AT_ONCE: usize = 16;

/// Row of the dataset.
#[derive(Debug, Serialize)]
struct Row {
    task: String,
    name: String,
    content_hash: String,
    instruction: String,
    format: String,
    archive_bytes: u64,
}

impl TaskStore {
    /// Imports the dataset of these tasks and returns it as the choice of a run. Several uploads of the same content are
    /// one row.
    ///
    /// # Errors
    /// If an archive is missing, or the dataset can't be imported.
    pub async fn dataset(
        &self,
        tasks: &[TaskRecord],
        layout: &dyn Layout,
    ) -> Result<DatasetChoice, TaskError> {
        let mut by_item: BTreeMap<String, &TaskRecord> = BTreeMap::new();
        for task in tasks {
            let is_known = by_item.values().any(|other| other.facts.content_hash == task.facts.content_hash);
            if !is_known {
                by_item.insert(item_id(task), task);
            }
        }
        // The futures are collected first: a borrowing closure would make this future not `Send`.
        let reads: Vec<_> = by_item.into_iter().map(|(item, task)| self.row(item, task)).collect();
        let rows: Vec<Row> = stream::iter(reads).buffered(READS_AT_ONCE).try_collect().await?;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join(FILE_NAME);
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path)?);
        for row in &rows {
            serde_json::to_writer(&mut file, row).map_err(std::io::Error::from)?;
            file.write_all(b"\n")?;
        }
        file.flush()?;
        let prepared = self.library.import_local(layout, &path, &NoProgress).await?;
        Ok(DatasetChoice::Local { revision: prepared.used.revision })
    }

    async fn row(&self, item: String, task: &TaskRecord) -> Result<Row, TaskError> {
        let hash = &task.facts.content_hash;
        let missing = || TaskError::ArchiveMissing(item.clone());
        let facts: CheckedTask = self.blobs.get_json(&facts_key(hash)).await?.ok_or_else(missing)?;
        let archive = self.blobs.head(&task_key(hash)).await?.ok_or_else(missing)?;
        Ok(Row {
            task: item,
            name: task.facts.task_name.clone(),
            content_hash: hash.clone(),
            instruction: facts.instruction,
            format: facts.format,
            archive_bytes: archive.length,
        })
    }
}
