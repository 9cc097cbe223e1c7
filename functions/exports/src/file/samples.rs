//! The samples of a benchmark in the order of its plan, page by page, without gaps.

use bench_blobs::{BlobError, Blobs};
use bench_domain::{Position, RunId, SampleBody, SampleRef};
use bench_state::{BenchmarkRecord, SampleRecord, State, StateError};

/// Number of samples to read at once: three batches of 100.
pub(crate) const PAGE_SAMPLES: u64 = 300;

/// A planned sample. The record is missing only if the database table lost it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slot {
    pub(crate) position: Position,
    pub(crate) record: Option<SampleRecord>,
}

/// The stored prompt and answer of a sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    /// Read, with the digest that the record names.
    Stored(Box<SampleBody>),
    /// Never stored: the sample ended without an answer, or wasn't answered.
    None,
    /// Stored once, but now missing or damaged. Contains one sentence for people.
    Lost(&'static str),
}

/// Returns at most [`PAGE_SAMPLES`] planned samples from `offset` on; empty after the last one.
pub(crate) async fn page(
    state: &State,
    run: RunId,
    benchmark: &BenchmarkRecord,
    offset: u64,
) -> Result<Vec<Slot>, StateError> {
    let Some(plan) = &benchmark.plan else { return Ok(Vec::new()) };
    let records = state.samples_page(run, benchmark, offset, PAGE_SAMPLES).await?;
    let end = plan.samples().min(offset.saturating_add(PAGE_SAMPLES));
    Ok(fill(offset.min(end)..end, plan.samples_per_item, records))
}

/// Returns one slot per planned index, with its record if found. Both are in the order of the plan.
fn fill(indices: std::ops::Range<u64>, samples_per_item: u32, records: Vec<SampleRecord>) -> Vec<Slot> {
    let per_item = u64::from(samples_per_item.max(1));
    let mut records = records.into_iter().peekable();
    indices
        .map(|index| {
            let position = Position {
                item: u32::try_from(index / per_item).unwrap_or(u32::MAX),
                sample: u32::try_from(index % per_item).unwrap_or(0),
            };
            while records.next_if(|record| record.position < position).is_some() {}
            Slot { position, record: records.next_if(|record| record.position == position) }
        })
        .collect()
}

/// Returns the body of a sample.
///
/// A body that is temporarily unreadable is an error, so that no export permanently records a passing
/// failure. A missing or damaged body isn't an error, so that one lost object doesn't prevent the export.
pub(crate) async fn body(
    blobs: &Blobs,
    run: RunId,
    benchmark: &BenchmarkRecord,
    slot: &Slot,
) -> Result<Body, BlobError> {
    let stored = slot.record.as_ref().and_then(SampleRecord::stored_body);
    let (Some(stored), Some(plan)) = (stored, &benchmark.plan) else { return Ok(Body::None) };
    let sample = SampleRef {
        run,
        benchmark: benchmark.name.clone(),
        plan: plan.attempt,
        shards: plan.shards,
        position: slot.position,
    };
    match blobs.get_body(&sample, stored.attempt, Some(&stored.sha256)).await {
        Ok(Some((body, _))) => Ok(Body::Stored(Box::new(body))),
        Ok(None) => Ok(Body::Lost("The stored prompt and answer are missing")),
        Err(BlobError::Damaged { .. } | BlobError::TooLarge { .. }) => {
            Ok(Body::Lost("The stored prompt and answer are damaged"))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::Timestamp;
    use bench_domain::sample::{AttemptHistory, SampleState};

    use super::*;

    fn record(item: u32, sample: u32) -> SampleRecord {
        SampleRecord {
            position: Position { item, sample },
            item_id: format!("{item}"),
            source_id: None,
            group: None,
            offset: 0,
            length: 0,
            state: SampleState::Open { due_at: Timestamp::default() },
            history: AttemptHistory::default(),
            cleared: 0,
            resends: 0,
            due_at: Timestamp::default(),
            counted: None,
            turn: None,
            finished: None,
        }
    }

    #[test]
    fn a_record_that_is_missing_leaves_its_place() {
        let records = vec![record(1, 1), record(2, 1)];
        let slots = fill(2..6, 2, records);
        let positions: Vec<(u32, u32)> = slots.iter().map(|s| (s.position.item, s.position.sample)).collect();
        assert_eq!(positions, [(1, 0), (1, 1), (2, 0), (2, 1)]);
        let found: Vec<bool> = slots.iter().map(|slot| slot.record.is_some()).collect();
        assert_eq!(found, [false, true, false, true]);
    }
}
