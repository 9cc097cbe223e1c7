//! Writes of tasks.

use aws_sdk_dynamodb::types::{Delete, ReturnValue, TransactWriteItem};

use super::{NewTask, TaskRecord, runs_partition, task_key};
use crate::attributes::{Reader, json, number};
use crate::client::condition_held;
use crate::keys::{COUNTERS, key};
use crate::{State, StateError};

/// Counter of the ids of tasks.
const TASK_IDS: &str = "TASK";
/// Counter of the ids of episodes.
const EPISODE_IDS: &str = "EPISODE";

impl State {
    /// Writes a new task and its reference to the archive. `None` means that the archive is being removed at this
    /// moment; the caller tries again.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn add_task(&self, facts: &NewTask) -> Result<Option<TaskRecord>, StateError> {
        let id = self.take_numbers(TASK_IDS, 1).await?;
        let mut record = task_key(id);
        record.insert("task".into(), json("task", facts)?);
        record.insert("round".into(), number(1));
        let items = vec![self.put_new(record)?, self.archive_reference(&facts.content_hash)?];
        let added = || Some(TaskRecord { id, facts: facts.clone(), round: 1, deleted: false });
        match self.transact("store the task", items).await? {
            Ok(()) => Ok(added()),
            // The id is new, so its record can only exist because the first try succeeded.
            Err(canceled) if canceled.condition_failed(0) => Ok(added()),
            Err(_) => Ok(None),
        }
    }

    /// Takes the next `count` ids of episodes and returns the first one.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn take_episode_ids(&self, count: u32) -> Result<u64, StateError> {
        self.take_numbers(EPISODE_IDS, count).await
    }

    /// Takes `count` numbers of a counter, from 1, and returns the first one. A lost response leaves a gap.
    async fn take_numbers(&self, counter: &str, count: u32) -> Result<u64, StateError> {
        let taken = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(COUNTERS, counter)))
            .update_expression("ADD taken :count")
            .expression_attribute_values(":count", number(count))
            .return_values(ReturnValue::UpdatedNew)
            .send()
            .await
            .map_err(|error| StateError::sdk("count", error))?;
        let last: u64 = Reader::new(&taken.attributes.unwrap_or_default()).number("taken")?;
        Ok(last.saturating_sub(u64::from(count)) + 1)
    }

    /// Starts a new round of a task, without runs. Returns false if the round isn't the current one.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn next_task_round(&self, task: &TaskRecord) -> Result<bool, StateError> {
        let updated = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(task_key(task.id)))
            .update_expression("SET round = :next")
            .condition_expression("round = :round AND attribute_not_exists(deleted)")
            .expression_attribute_values(":round", number(task.round))
            .expression_attribute_values(":next", number(task.round + 1))
            .send()
            .await;
        condition_held("reset the task", updated)
    }

    /// Hides a task. No run can be added to it afterwards. Safe to repeat.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn hide_task(&self, task: u64) -> Result<(), StateError> {
        let updated = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(task_key(task)))
            .update_expression("SET deleted = :yes")
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_values(":yes", number(1))
            .send()
            .await;
        condition_held("hide the task", updated).map(drop)
    }

    /// Removes the records of a hidden task, and its reference to the archive. Safe to repeat.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn purge_task(&self, task: &TaskRecord) -> Result<(), StateError> {
        self.purge_partition(runs_partition(task.id)).await?;
        let delete = Delete::builder()
            .table_name(&self.table)
            .set_key(Some(task_key(task.id)))
            .condition_expression("attribute_exists(pk)")
            .build()
            .map_err(|error| StateError::damaged("task", error))?;
        let delete = TransactWriteItem::builder().delete(delete).build();
        let items = vec![delete, self.archive_release(&task.facts.content_hash)?];
        // If the record is gone, an earlier try succeeded.
        self.transact("remove the task", items).await.map(drop)
    }
}
