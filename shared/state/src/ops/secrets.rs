//! Wrong admin secrets per hour.

use std::time::Duration;

use bench_domain::Timestamp;

use super::HOUR_US;
use crate::attributes::{Reader, number, text};
use crate::client::expires_at;
use crate::keys::{OPS_SECRETS, key};
use crate::{State, StateError};

/// Seconds that an hour's count is kept.
const FORGET_AFTER_S: i64 = 8 * 24 * 3_600;
/// Maximum duration of a write. The count is only for people, so requests don't wait longer for it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

impl State {
    /// Counts wrong admin secrets in the hour of `at`.
    ///
    /// # Errors
    /// If the write fails or takes longer than two seconds.
    pub async fn note_wrong_secret(&self, at: Timestamp, count: u64) -> Result<(), StateError> {
        let write = self
            .once
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(OPS_SECRETS, format!("{:010}", at.as_micros().div_euclid(HOUR_US)))))
            .update_expression("ADD wrong :count SET expires_at = :expires")
            .expression_attribute_values(":count", number(count))
            .expression_attribute_values(":expires", number(expires_at(at, FORGET_AFTER_S)))
            .send();
        let late = || StateError::Service { verb: "count the secret", problem: "no answer in time".into() };
        let written = tokio::time::timeout(WRITE_TIMEOUT, write).await.map_err(|_| late())?;
        written.map(drop).map_err(|error| StateError::sdk("count the secret", error))
    }

    /// Returns the number of wrong admin secrets in the last `hours` hours, including the hour of `now`.
    pub async fn wrong_secrets(&self, now: Timestamp, hours: u32) -> Result<u64, StateError> {
        let this_hour = now.as_micros().div_euclid(HOUR_US);
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :secrets AND sk > :before")
            .expression_attribute_values(":secrets", text(OPS_SECRETS))
            .expression_attribute_values(":before", text(format!("{:010}", this_hour - i64::from(hours))))
            .into_paginator()
            .items()
            .send();
        let mut sum = 0_u64;
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("read the count of wrong secrets", error))?;
            sum = sum.saturating_add(Reader::new(&record).number_or("wrong", 0)?);
        }
        Ok(sum)
    }
}
