//! Runs that were ordered of tasks.

use aws_sdk_dynamodb::types::{ConditionCheck, TransactWriteItem};
use bench_domain::{RunId, Timestamp};

use super::{TaskRecord, round_prefix, runs_partition, task_key};
use crate::attributes::{Reader, Record, number, text, time};
use crate::keys::key;
use crate::{State, StateError};

/// Prefix of the sort keys of runs that were ordered with several tasks.
const ORDER: &str = "ORDER#";

/// Run of a task alone: each of its samples is an episode of the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRun {
    /// The run.
    pub run: RunId,
    /// Id of the first episode; the others follow.
    pub first_id: u64,
    /// Number of the first episode within the task, from 1.
    pub first_number: u32,
    /// Number of episodes.
    pub samples: u32,
    /// Time of the order.
    pub ordered_at: Timestamp,
    /// Idempotency key that the client sent with the order.
    pub request_key: Option<String>,
}

/// Run of tasks by their names, which the task doesn't list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskOrder {
    /// The run.
    pub run: RunId,
    /// Number of its tasks.
    pub tasks: u64,
}

/// Result of adding a run to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskRunWrite {
    /// The run belongs to the task.
    Done,
    /// Another run has this number already.
    Taken,
    /// The task is gone or has a new round.
    Gone,
}

impl TaskRun {
    pub(super) fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        Ok(Self {
            run: reader.text("run")?.parse().map_err(|error| StateError::damaged(reader.key(), error))?,
            first_id: reader.number("first_id")?,
            first_number: reader.number("first_number")?,
            samples: reader.number("samples")?,
            ordered_at: reader.time("ordered_at")?,
            request_key: reader.maybe_text("request_key").map(str::to_owned),
        })
    }

    /// Returns the number of the next episode after this run's.
    pub const fn next_number(&self) -> u32 {
        self.first_number.saturating_add(self.samples)
    }

    fn key(&self, task: &TaskRecord) -> Record {
        let sort = format!("{}{:010}", round_prefix(task.round), self.first_number);
        key(runs_partition(task.id), sort)
    }
}

impl State {
    /// Adds a run to a task, if the task is in this round and no run has the number.
    ///
    /// # Errors
    /// If the table can't be read or written.
    pub async fn add_task_run(&self, task: &TaskRecord, run: &TaskRun) -> Result<TaskRunWrite, StateError> {
        let mut record = run.key(task);
        record.insert("run".into(), text(run.run.to_string()));
        record.insert("first_id".into(), number(run.first_id));
        record.insert("first_number".into(), number(run.first_number));
        record.insert("samples".into(), number(run.samples));
        record.insert("ordered_at".into(), time(run.ordered_at));
        if let Some(key) = &run.request_key {
            record.insert("request_key".into(), text(key));
        }
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(task_key(task.id)))
            .condition_expression("round = :round AND attribute_not_exists(deleted)")
            .expression_attribute_values(":round", number(task.round))
            .build()
            .map_err(|error| StateError::damaged("task", error))?;
        let check = TransactWriteItem::builder().condition_check(check).build();
        match self.transact("add the run to the task", vec![check, self.put_new(record)?]).await? {
            Ok(()) => Ok(TaskRunWrite::Done),
            Err(canceled) if canceled.condition_failed(0) => Ok(TaskRunWrite::Gone),
            Err(_) => {
                // The response to this call's first try may have been lost.
                let runs = self.task_runs(task).await?;
                let is_ours = runs.contains(run);
                Ok(if is_ours { TaskRunWrite::Done } else { TaskRunWrite::Taken })
            }
        }
    }

    /// Records that a run of these tasks was ordered, so that none of them is removed while the run is open.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn note_task_order(&self, tasks: &[u64], run: RunId) -> Result<(), StateError> {
        let records = tasks.iter().map(|task| {
            let mut record = key(runs_partition(*task), format!("{ORDER}{run}"));
            record.insert("run".into(), text(run.to_string()));
            record.insert("tasks".into(), number(tasks.len()));
            record
        });
        self.put_batch(records.collect()).await
    }

    /// Returns the runs that were ordered with this task by its name.
    ///
    /// # Errors
    /// If the table can't be read.
    pub async fn task_orders(&self, task: u64) -> Result<Vec<TaskOrder>, StateError> {
        let found = self.task_partition(task, ORDER).await?;
        let read = |record: &Record| {
            let reader = Reader::new(record);
            let run = reader.text("run")?.parse();
            let run = run.map_err(|error| StateError::damaged(reader.key(), error))?;
            Ok(TaskOrder { run, tasks: reader.number("tasks")? })
        };
        found.iter().map(read).collect()
    }
}
