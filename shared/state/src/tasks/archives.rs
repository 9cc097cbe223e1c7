//! References of tasks to archives.
//!
//! An archive may only be deleted while no task refers to it, also by an upload that is in progress: the remover marks
//! the counter first, on condition that it is zero, and no reference can be added until the mark is gone.

use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
use bench_domain::Timestamp;

use super::REMOVAL_TIME;
use crate::attributes::{Record, number, time};
use crate::client::condition_held;
use crate::keys::{TASK_ARCHIVES, key};
use crate::{State, StateError};

/// Permission to delete an archive that no task refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct ArchiveRemoval {
    hash: String,
    since: Timestamp,
}

fn archive_key(hash: &str) -> Record {
    key(TASK_ARCHIVES, hash)
}

impl State {
    /// Adds a reference, unless the archive is being removed.
    pub(super) fn archive_reference(&self, hash: &str) -> Result<TransactWriteItem, StateError> {
        let given_up = Timestamp::from_micros(
            bench_clock::now().as_micros() - i64::try_from(REMOVAL_TIME.as_micros()).unwrap_or(i64::MAX),
        );
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(archive_key(hash)))
            .update_expression("ADD tasks :one REMOVE removing_since")
            .condition_expression("attribute_not_exists(removing_since) OR removing_since < :given_up")
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":given_up", time(given_up))
            .build()
            .map_err(|error| StateError::damaged("archive of a task", error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    pub(super) fn archive_release(&self, hash: &str) -> Result<TransactWriteItem, StateError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(archive_key(hash)))
            .update_expression("ADD tasks :less")
            .expression_attribute_values(":less", number(-1))
            .build()
            .map_err(|error| StateError::damaged("archive of a task", error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    /// Begins the removal of an archive; `None` if a task refers to it. [`State::end_archive_removal`] ends it.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn begin_archive_removal(&self, hash: &str) -> Result<Option<ArchiveRemoval>, StateError> {
        let since = bench_clock::now();
        let marked = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(archive_key(hash)))
            .update_expression("SET removing_since = :now")
            .condition_expression("tasks <= :none")
            .expression_attribute_values(":now", time(since))
            .expression_attribute_values(":none", number(0))
            .send()
            .await;
        let is_free = condition_held("begin to remove the archive", marked)?;
        Ok(is_free.then(|| ArchiveRemoval { hash: hash.to_owned(), since }))
    }

    /// Removes the counter of an archive that was deleted. Does nothing if the archive is in use again.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn end_archive_removal(&self, removal: ArchiveRemoval) -> Result<(), StateError> {
        let deleted = self
            .client
            .delete_item()
            .table_name(&self.table)
            .set_key(Some(archive_key(&removal.hash)))
            .condition_expression("removing_since = :since")
            .expression_attribute_values(":since", time(removal.since))
            .send()
            .await;
        condition_held("end the removal of the archive", deleted).map(drop)
    }
}
