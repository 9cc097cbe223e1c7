//! Samples whose requests a provider refused with the same sentence, over all processes that work on a run.
//!
//! Written only when a provider refuses; a run whose requests are answered never has such a record. The records are in
//! the run's own partition and go with it.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use bench_domain::{SampleRef, Stage, Timestamp};

use crate::attributes::{Reader, number, time};
use crate::client::expires_at;
use crate::keys::{key, run_partition};
use crate::{State, StateError};

/// How long the record outlives the last refusal, for one that comes after its run was deleted.
const FORGET_AFTER_S: i64 = 30 * 86_400;

/// Samples that a provider refused with one sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusals {
    /// Number of distinct samples.
    pub samples: u64,
    /// When the first of them was refused.
    pub since: Timestamp,
}

impl State {
    /// Notes that a sample was refused with the sentence that has this digest, since its run was taken up at `since`. A
    /// sample that is noted twice counts once.
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
