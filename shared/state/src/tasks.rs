//! Uploaded terminal tasks, the runs that were ordered of them, and references to their archives.
//!
//! A task's id and the ids of its episodes are counted numbers, which clients of the compatible system expect. The
//! archive of a task is stored once per content; a counter per content hash tells when no record refers to it.
//!
//! A retry of a task raises its round. Runs of earlier rounds stay, but no longer belong to the task.

mod archives;
mod orders;
mod write;

use std::time::Duration;

use bench_domain::run::Owner;
use bench_domain::{RunId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::attributes::{Reader, Record, text};
use crate::keys::{TASKS, key};
use crate::{State, StateError};

pub use archives::ArchiveRemoval;
pub use orders::{TaskOrder, TaskRun, TaskRunWrite};

/// Time after which an unfinished removal of an archive counts as given up.
const REMOVAL_TIME: Duration = Duration::from_secs(300);

/// Facts of a task that never change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTask {
    /// Name that the uploader gave.
    pub name: String,
    /// Name of the item in datasets: the task's own name, otherwise one made from the uploader's.
    pub task_name: String,
    /// File name that the client sent. It is metadata, and never part of a path or a key.
    pub file_name: String,
    /// Content hash, 64 hexadecimal digits.
    pub content_hash: String,
    /// Size of the archive in bytes.
    pub archive_bytes: u64,
    /// Model, as given.
    pub model: String,
    /// Agent, as given.
    pub agent: String,
    /// Harness, as given. It has no effect.
    pub harness: String,
    /// Number of episodes of an execution.
    pub num_runs: u32,
    /// True if lists leave the task out, because it was stored for a run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlisted: bool,
    /// Owner, who may see, order and remove the task.
    pub owner: Owner,
    /// Time of the upload.
    pub created_at: Timestamp,
}

/// Stored task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRecord {
    /// Id, counted from 1.
    pub id: u64,
    /// Facts that never change.
    pub facts: NewTask,
    /// Round, raised by every retry.
    pub round: u32,
    /// True if the task is being removed.
    pub deleted: bool,
}

impl TaskRecord {
    fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        let id = reader.text("sk")?.parse().map_err(|_| StateError::damaged(reader.key(), "it has no id"))?;
        Ok(Self {
            id,
            facts: reader.json("task")?,
            round: reader.number("round")?,
            deleted: reader.number_or::<u8>("deleted", 0)? == 1,
        })
    }
}

/// Returns the key of a task. Ids have a fixed width, so that text order is the order of uploads.
fn task_key(id: u64) -> Record {
    key(TASKS, format!("{id:020}"))
}

/// Returns the partition of the runs of a task.
fn runs_partition(id: u64) -> String {
    format!("TASK#{id}")
}

fn round_prefix(round: u32) -> String {
    format!("RUN#{round:08}#")
}

impl State {
    /// Returns a task, even one that is being removed; `None` if it doesn't exist.
    pub async fn task(&self, id: u64) -> Result<Option<TaskRecord>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(task_key(id)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the task", error))?;
        got.item().map(TaskRecord::read).transpose()
    }

    /// Lists all tasks that aren't being removed, newest first.
    pub async fn list_tasks(&self) -> Result<Vec<TaskRecord>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :tasks")
            .expression_attribute_values(":tasks", text(TASKS))
            .scan_index_forward(false)
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let mut tasks = Vec::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list the tasks", error))?;
            tasks.push(TaskRecord::read(&record)?);
        }
        tasks.retain(|task| !task.deleted);
        Ok(tasks)
    }

    /// Returns the runs of the current round of a task, in the order of their episodes.
    pub async fn task_runs(&self, task: &TaskRecord) -> Result<Vec<TaskRun>, StateError> {
        let found = self.task_partition(task.id, &round_prefix(task.round)).await?;
        found.iter().map(TaskRun::read).collect()
    }

    /// Returns all runs of a task, of every round.
    pub async fn all_task_runs(&self, task: u64) -> Result<Vec<RunId>, StateError> {
        let found = self.task_partition(task, "RUN#").await?;
        found.iter().map(|record| TaskRun::read(record).map(|entry| entry.run)).collect()
    }

    /// Returns all runs that have episodes of a task: those of the task alone, of every round, and those that were ordered
    /// with it by its name. The oldest of the former come first.
    ///
    /// # Errors
    /// If the table can't be read.
    pub async fn runs_with_task(&self, task: u64) -> Result<Vec<TaskOrder>, StateError> {
        let own = self.all_task_runs(task).await?;
        let mut runs: Vec<TaskOrder> = own.into_iter().map(|run| TaskOrder { run, tasks: 1 }).collect();
        runs.extend(self.task_orders(task).await?);
        Ok(runs)
    }

    async fn task_partition(&self, task: u64, prefix: &str) -> Result<Vec<Record>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :task AND begins_with(sk, :prefix)")
            .expression_attribute_values(":task", text(runs_partition(task)))
            .expression_attribute_values(":prefix", text(prefix))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        let mut found = Vec::new();
        while let Some(record) = pages.next().await {
            found.push(record.map_err(|error| StateError::sdk("read the runs of the task", error))?);
        }
        Ok(found)
    }
}
