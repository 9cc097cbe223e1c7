//! Shared backpressure: times at which providers may be called again.

use std::time::Duration;

use bench_domain::Timestamp;

use crate::attributes::{Reader, number, time};
use crate::client::{condition_held, expires_at};
use crate::keys::key;
use crate::{State, StateError};

/// Seconds that a wait is kept after its end.
const FORGET_AFTER_S: i64 = 3_600;

impl State {
    /// Returns the earliest time at which the credential may call this model again; `None` if it may do so now.
    ///
    /// `credential` is a name or a keyed hash, never a key.
    pub async fn not_before(&self, credential: &str, model: &str) -> Result<Option<Timestamp>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key(format!("WAIT#{credential}#{model}"), "WAIT")))
            .send()
            .await
            .map_err(|error| StateError::sdk("read the provider's wait", error))?;
        got.item().map(|record| Reader::new(record).time("not_before")).transpose()
    }

    /// Makes all workers wait until `now + wait`, unless they already wait longer.
    pub async fn extend_wait(
        &self,
        credential: &str,
        model: &str,
        now: Timestamp,
        wait: Duration,
    ) -> Result<(), StateError> {
        let until = now.plus(wait);
        let put = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(format!("WAIT#{credential}#{model}"), "WAIT")))
            .update_expression("SET not_before = :until, expires_at = :expires")
            .condition_expression("attribute_not_exists(not_before) OR not_before < :until")
            .expression_attribute_values(":until", time(until))
            .expression_attribute_values(":expires", number(expires_at(until, FORGET_AFTER_S)))
            .send()
            .await;
        condition_held("note the provider's wait", put).map(drop)
    }
}
