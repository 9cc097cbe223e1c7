//! Slots for requests to providers, for runs that limit their requests per minute. All processes share them.

use std::time::Duration;

use bench_domain::Timestamp;

use crate::attributes::{Reader, number, time};
use crate::client::{condition_held, expires_at};
use crate::keys::key;
use crate::{State, StateError};

/// Seconds that the record is kept after its last slot.
const FORGET_AFTER_S: i64 = 3_600;
/// Maximum number of retries of a conditional write that conflicts with other writers.
const RACES_MAX: u32 = 20;

/// Result of asking for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestSlot {
    /// The slot belongs to the caller, who sends one request at this time.
    Taken(Timestamp),
    /// The next slot begins at this time. It belongs to no caller yet.
    Busy(Timestamp),
}

impl State {
    /// Takes the next slot for a request to this model if it begins before `now + ahead`. The one after it begins
    /// `interval` later.
    ///
    /// `credential` is a name or a keyed hash, never a key.
    pub async fn take_request_slot(
        &self,
        (credential, model): (&str, &str),
        now: Timestamp,
        interval: Duration,
        ahead: Duration,
    ) -> Result<RequestSlot, StateError> {
        let place = key(format!("WAIT#{credential}#{model}"), "SLOT");
        let mut slot = now;
        for _ in 0..RACES_MAX {
            let got = self
                .client
                .get_item()
                .table_name(&self.table)
                .set_key(Some(place.clone()))
                .consistent_read(true)
                .send()
                .await
                .map_err(|error| StateError::sdk("read the next slot for a request", error))?;
            let free_at = got.item().map(|record| Reader::new(record).time("free_at")).transpose()?;
            slot = free_at.map_or(now, |free_at| free_at.max(now));
            if slot >= now.plus(ahead) {
                return Ok(RequestSlot::Busy(slot));
            }
            let next = slot.plus(interval);
            let put = self
                .client
                .update_item()
                .table_name(&self.table)
                .set_key(Some(place.clone()))
                .update_expression("SET free_at = :next, expires_at = :expires")
                .expression_attribute_values(":next", time(next))
                .expression_attribute_values(":expires", number(expires_at(next, FORGET_AFTER_S)));
            let put = match free_at {
                Some(free_at) => put
                    .condition_expression("free_at = :old")
                    .expression_attribute_values(":old", time(free_at)),
                None => put.condition_expression("attribute_not_exists(free_at)"),
            };
            if condition_held("take a slot for a request", put.send().await)? {
                return Ok(RequestSlot::Taken(slot));
            }
        }
        Ok(RequestSlot::Busy(slot.plus(interval)))
    }
}
