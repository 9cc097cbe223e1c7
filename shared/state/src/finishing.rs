//! Claims on closing a run. Only one worker closes a run at a time, since it reads every sample.

use bench_domain::{RunId, Timestamp};

use crate::attributes::{Record, number};
use crate::client::{claim_token, condition_held, expires_at};
use crate::keys::key;
use crate::{State, StateError};

/// Seconds that a claim is kept after its end.
const FORGET_AFTER_S: i64 = 3_600;

fn record_key(run: RunId, generation: u32) -> Record {
    key(format!("FINISHING#{run}"), format!("{generation:010}"))
}

impl State {
    /// Claims the closing of a run until `lease_until`. Returns `false` if another worker holds the claim. The caller
    /// may then drop its message: the other worker's message stays in its queue until the run is closed.
    pub async fn claim_finish(
        &self,
        run: RunId,
        generation: u32,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<bool, StateError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(record_key(run, generation)))
            .update_expression(
                "SET due_at = :until, epoch = :epoch, claim_token = :token, expires_at = :expires",
            )
            // A retry after a lost response finds its own claim and keeps it; otherwise no worker would close the run.
            .condition_expression(
                "attribute_not_exists(pk) OR due_at <= :now OR epoch <> :epoch OR claim_token = :token",
            )
            .expression_attribute_values(":token", number(claim_token()))
            .expression_attribute_values(":until", number(lease_until.as_micros()))
            .expression_attribute_values(":epoch", number(self.epoch))
            .expression_attribute_values(":expires", number(expires_at(lease_until, FORGET_AFTER_S)))
            .expression_attribute_values(":now", number(now.as_micros()))
            .send()
            .await;
        condition_held("claim the closing of the run", update)
    }

    /// Releases the claim, so that the next worker can close the run.
    pub async fn release_finish(&self, run: RunId, generation: u32) -> Result<(), StateError> {
        self.client
            .delete_item()
            .table_name(&self.table)
            .set_key(Some(record_key(run, generation)))
            .send()
            .await
            .map_err(|error| StateError::sdk("give the closing of the run back", error))?;
        Ok(())
    }
}
