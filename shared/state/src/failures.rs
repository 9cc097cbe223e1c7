//! Number of samples of a run that ended as infrastructure-error, for runs that limit it.
//!
//! These records are in the run's own partition and are removed with it.

use aws_sdk_dynamodb::types::ReturnValue;
use bench_domain::{RunId, Timestamp};

use crate::attributes::{Reader, number, time};
use crate::client::expires_at;
use crate::keys::{key, run_partition};
use crate::{State, StateError};

/// Seconds that the record is kept after the last failure, in case one is counted after the run was deleted.
const FORGET_AFTER_S: i64 = 30 * 86_400;

impl State {
    /// Counts a failure of a run and returns the number of failures since `since`, the time of its last requeue or resume.
    pub async fn count_failure(
        &self,
        run: RunId,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<u64, StateError> {
        let updated = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(run_partition(run), format!("FAILURES#{:020}", since.as_micros()))))
            .update_expression("ADD failures :one SET counted_at = :now, expires_at = :expires")
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":expires", number(expires_at(now, FORGET_AFTER_S)))
            .return_values(ReturnValue::AllNew)
            .send()
            .await
            .map_err(|error| StateError::sdk("count a failure", error))?;
        Reader::new(&updated.attributes.unwrap_or_default()).number_or("failures", 0)
    }
}
