//! Samples whose requests a provider rejected with the same message, over all processes that work on a run.
//!
//! These records are written only if a provider rejects requests. They are in the run's own partition and are removed
//! with it.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use bench_domain::{SampleRef, Stage, Timestamp};

use crate::attributes::{Reader, number, time};
use crate::client::expires_at;
use crate::keys::{key, run_partition};
use crate::{State, StateError};

/// Seconds that the record is kept after the last rejection. The record expires because a rejection may arrive after its
/// run was deleted, when no other process removes it.
const FORGET_AFTER_S: i64 = 30 * 86_400;

/// Samples that a provider rejected with one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusals {
    /// Number of distinct samples.
    pub samples: u64,
    /// Time of the first rejection.
    pub since: Timestamp,
}

impl State {
    /// Records that a request of a sample was rejected with the message of this digest. `since` is the time of the run's
    /// last requeue or resume, so that earlier rejections don't count. A sample that is recorded twice counts once.
    pub async fn note_refusal(
        &self,
        stage: Stage,
        sample: &SampleRef,
        since: Timestamp,
        digest: &str,
        now: Timestamp,
    ) -> Result<Refusals, StateError> {
        let place = format!("{}/{}", sample.benchmark, sample.position);
        let updated = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(
                run_partition(sample.run),
                format!("REFUSED#{:020}#{}#{digest}", since.as_micros(), stage.as_str()),
            )))
            .update_expression(
                "ADD #samples :sample SET #since = if_not_exists(#since, :now), expires_at = :expires",
            )
            .expression_attribute_names("#samples", "samples")
            .expression_attribute_names("#since", "since")
            .expression_attribute_values(":sample", AttributeValue::Ss(vec![place]))
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":expires", number(expires_at(now, FORGET_AFTER_S)))
            .return_values(ReturnValue::AllNew)
            .send()
            .await
            .map_err(|error| StateError::sdk("note the refusal", error))?;
        let record = updated.attributes.unwrap_or_default();
        let samples = record.get("samples").and_then(|value| value.as_ss().ok()).map_or(0, Vec::len);
        Ok(Refusals { samples: samples as u64, since: Reader::new(&record).time("since")? })
    }
}
