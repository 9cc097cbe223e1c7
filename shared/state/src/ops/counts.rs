//! Counts of runs by status.

use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
use bench_domain::{RunId, RunStatus};

use crate::attributes::{Reader, number, text};
use crate::keys::{OPS_RUNS, key};
use crate::{State, StateError};

/// Number of records that the counts are spread over, so that changes of different runs rarely conflict.
const SHARDS: u32 = 8;

/// Number of runs by status. Deleted runs aren't counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunCounts {
    /// Accepted, but not started.
    pub queued: u64,
    /// In progress.
    pub running: u64,
    /// Over; every benchmark has a score.
    pub succeeded: u64,
    /// Over; results are incomplete.
    pub failed: u64,
    /// Canceled by their owners.
    pub canceled: u64,
}

impl RunCounts {
    /// Returns the number of runs with this status.
    pub const fn get(&self, status: RunStatus) -> u64 {
        match status {
            RunStatus::Queued => self.queued,
            RunStatus::Running => self.running,
            RunStatus::Succeeded => self.succeeded,
            RunStatus::Failed => self.failed,
            RunStatus::Canceled => self.canceled,
        }
    }
}

/// Returns the shard that counts a run.
fn shard(run: RunId) -> u32 {
    run.to_string().chars().next_back().and_then(|digit| digit.to_digit(16)).unwrap_or(0) % SHARDS
}

impl State {
    /// Moves a run from one count to another, in the transaction that changes it, so that the count always agrees with
    /// the run.
    pub(crate) fn run_count_update(
        &self,
        run: RunId,
        from: Option<RunStatus>,
        to: Option<RunStatus>,
    ) -> Result<Option<TransactWriteItem>, StateError> {
        if from == to {
            return Ok(None);
        }
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(OPS_RUNS, format!("{:02}", shard(run)))));
        let mut added = Vec::new();
        if let Some(from) = from {
            added.push("#from :less");
            update = update
                .expression_attribute_names("#from", from.as_str())
                .expression_attribute_values(":less", number(-1));
        }
        if let Some(to) = to {
            added.push("#to :more");
            update = update
                .expression_attribute_names("#to", to.as_str())
                .expression_attribute_values(":more", number(1));
        }
        let update = update.update_expression(format!("ADD {}", added.join(", "))).build();
        let update = update.map_err(|error| StateError::damaged("counts of runs", error))?;
        Ok(Some(TransactWriteItem::builder().update(update).build()))
    }

    /// Returns the current number of runs by status.
    pub async fn run_counts(&self) -> Result<RunCounts, StateError> {
        let got = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :runs")
            .expression_attribute_values(":runs", text(OPS_RUNS))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the counts of runs", error))?;
        let mut sums = [0_i64; 5];
        let statuses = [
            RunStatus::Queued,
            RunStatus::Running,
            RunStatus::Succeeded,
            RunStatus::Failed,
            RunStatus::Canceled,
        ];
        for record in got.items() {
            let reader = Reader::new(record);
            for (sum, status) in sums.iter_mut().zip(statuses) {
                *sum += reader.number_or::<i64>(status.as_str(), 0)?;
            }
        }
        let [queued, running, succeeded, failed, canceled] = sums.map(|sum| u64::try_from(sum).unwrap_or(0));
        Ok(RunCounts { queued, running, succeeded, failed, canceled })
    }
}
