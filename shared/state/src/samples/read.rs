//! Reads single samples, pages of a plan, and samples of a shard.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemInput;
use aws_sdk_dynamodb::types::KeysAndAttributes;
use bench_domain::{BenchmarkName, Position, RunId, SampleRef};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::excerpt::{EXCERPT, SampleExcerpt};
use super::record::SampleRecord;
use crate::attributes::{Reader, Record, number, text};
use crate::client::condition_held;
use crate::conflict::pause;
use crate::keys::{self, key, sample_sort, shard_partition};
use crate::{BenchmarkRecord, State, StateError};

/// Maximum number of records in a batch read, by DynamoDB's limit.
pub(crate) const READ_BATCH_MAX: usize = 100;
/// Maximum number of times that the unprocessed rest of a batch is read again.
const REREADS_MAX: u32 = 20;
/// Number of batches in flight.
const BATCHES_IN_FLIGHT: usize = 8;

/// Attributes to read instead of whole records, by their placeholders in expressions.
pub(super) struct Projection(pub(super) &'static [(&'static str, &'static str)]);

impl State {
    /// Reads one sample.
    pub async fn sample(&self, sample: &SampleRef) -> Result<Option<SampleRecord>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the sample", error))?;
        got.item().map(SampleRecord::read).transpose()
    }

    /// Reads at most `limit` samples of a plan from `offset` on, in the order of the plan: by item, then by sample.
    pub async fn samples_page(
        &self,
        run: RunId,
        benchmark: &BenchmarkRecord,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<SampleRecord>, StateError> {
        let wanted = page_keys(run, benchmark, offset, limit);
        let mut samples = self.read_batches(wanted, None, SampleRecord::read).await?;
        samples.sort_by_key(|sample| sample.position);
        Ok(samples)
    }

    /// Reads excerpts of the same samples as [`samples_page`](Self::samples_page). The read units are the same, but only the
    /// attributes of excerpts are sent and parsed.
    ///
    /// # Errors
    /// If the table can't be read.
    pub async fn sample_excerpts_page(
        &self,
        run: RunId,
        benchmark: &BenchmarkRecord,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<SampleExcerpt>, StateError> {
        let wanted = page_keys(run, benchmark, offset, limit);
        let mut excerpts = self.read_batches(wanted, Some(&EXCERPT), SampleExcerpt::read).await?;
        excerpts.sort_by_key(|excerpt| excerpt.position);
        Ok(excerpts)
    }

    /// Reads the first sample of each of the first `limit` items of a plan, in the order of the plan.
    ///
    /// # Errors
    /// If the table can't be read.
    pub async fn first_samples(
        &self,
        run: RunId,
        benchmark: &BenchmarkRecord,
        limit: u64,
    ) -> Result<Vec<SampleRecord>, StateError> {
        let Some(plan) = &benchmark.plan else { return Ok(Vec::new()) };
        let wanted = (0..plan.items.min(limit)).filter_map(|item| {
            let position = Position { item: u32::try_from(item).ok()?, sample: 0 };
            let partition =
                shard_partition(run, &benchmark.name, plan.attempt, position.item % plan.shards.max(1));
            Some(key(partition, sample_sort(position)))
        });
        let mut samples = self.read_batches(wanted.collect(), None, SampleRecord::read).await?;
        samples.sort_by_key(|sample| sample.position);
        Ok(samples)
    }

    async fn read_batches<T>(
        &self,
        wanted: Vec<Record>,
        projection: Option<&'static Projection>,
        parse: fn(&Record) -> Result<T, StateError>,
    ) -> Result<Vec<T>, StateError> {
        // The futures are collected first: a borrowing closure would make this future not `Send`.
        let reads: Vec<_> = wanted
            .chunks(READ_BATCH_MAX)
            .map(|batch| self.read_parsed_batch(batch.to_vec(), projection, parse))
            .collect();
        let read: Vec<Vec<T>> = stream::iter(reads).buffer_unordered(BATCHES_IN_FLIGHT).try_collect().await?;
        Ok(read.into_iter().flatten().collect())
    }

    /// Reads a batch and parses it at once: unparsed records take several times as much memory.
    async fn read_parsed_batch<T>(
        &self,
        wanted: Vec<Record>,
        projection: Option<&'static Projection>,
        parse: fn(&Record) -> Result<T, StateError>,
    ) -> Result<Vec<T>, StateError> {
        self.read_parts_of_batch(wanted, projection).await?.iter().map(parse).collect()
    }

    pub(crate) async fn read_batch(&self, wanted: Vec<Record>) -> Result<Vec<Record>, StateError> {
        self.read_parts_of_batch(wanted, None).await
    }

    /// Reads a batch of records; with a projection, only the attributes that it names.
    async fn read_parts_of_batch(
        &self,
        wanted: Vec<Record>,
        projection: Option<&'static Projection>,
    ) -> Result<Vec<Record>, StateError> {
        let mut found = Vec::with_capacity(wanted.len());
        let mut request = KeysAndAttributes::builder().set_keys(Some(wanted)).consistent_read(true);
        if let Some(Projection(attributes)) = projection {
            let placeholders: Vec<&str> = attributes.iter().map(|(placeholder, _)| *placeholder).collect();
            request = request.projection_expression(placeholders.join(", "));
            for (placeholder, attribute) in *attributes {
                request = request.expression_attribute_names(*placeholder, *attribute);
            }
        }
        let request = request.build();
        let request = request.map_err(|error| StateError::damaged("batch", error))?;
        let mut left = HashMap::from([(self.table.clone(), request)]);
        for attempt in 0..=REREADS_MAX {
            if attempt > 0 {
                pause(attempt).await;
            }
            let input = BatchGetItemInput::builder().set_request_items(Some(left));
            let read = self.read_part(input).await;
            let read = read.map_err(|error| StateError::sdk("read a batch", error))?;
            found.extend(read.responses.unwrap_or_default().into_values().flatten());
            left = read.unprocessed_keys.unwrap_or_default();
            left.retain(|_, request| !request.keys().is_empty());
            if left.is_empty() {
                return Ok(found);
            }
        }
        Err(StateError::Service {
            verb: "read a batch",
            problem: "the table did not return all records".into(),
        })
    }

    /// Reads a page of the samples of one shard: those that aren't over or, with `all`, every sample.
    ///
    /// The page starts after the position `from`. The second value is where the next page starts.
    pub async fn shard_page(
        &self,
        run: RunId,
        benchmark: &BenchmarkName,
        plan: u32,
        shard: u32,
        all: bool,
        from: Option<Position>,
    ) -> Result<(Vec<SampleRecord>, Option<Position>), StateError> {
        let mut query = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :shard AND sk > :from")
            .expression_attribute_values(":shard", text(shard_partition(run, benchmark, plan, shard)))
            .expression_attribute_values(":from", text(from.map_or_else(|| "S#".to_owned(), sample_sort)))
            .consistent_read(true);
        if !all {
            query = query
                .filter_expression("#state <> :done")
                .expression_attribute_names("#state", "state")
                .expression_attribute_values(":done", text("done"));
        }
        let page = query.send().await.map_err(|error| StateError::sdk("read samples", error))?;
        let samples: Vec<_> = page.items().iter().map(SampleRecord::read).collect::<Result<_, _>>()?;
        let next = page.last_evaluated_key().map(|record| Reader::new(record).text_or_empty("sk").to_owned());
        let next = next.as_deref().and_then(|sort| sort.strip_prefix("S#")).and_then(|digits| {
            let (item, sample) = digits.split_once('.')?;
            Some(Position { item: item.parse().ok()?, sample: sample.parse().ok()? })
        });
        Ok((samples, next))
    }

    /// Records that a sample's message was sent again, if the sample hasn't changed meanwhile.
    pub async fn note_resent(&self, sample: &SampleRef, record: &SampleRecord) -> Result<bool, StateError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::sample(sample)))
            .update_expression("SET resends = :resends")
            .condition_expression("#state <> :done AND due_at = :due")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":resends", number(record.resends + 1))
            .expression_attribute_values(":done", text("done"))
            .expression_attribute_values(":due", number(record.due_at.as_micros()))
            .send()
            .await;
        condition_held("note the resent message", update)
    }
}

/// Returns the keys of at most `limit` samples of a plan from `offset` on, in the order of the plan.
fn page_keys(run: RunId, benchmark: &BenchmarkRecord, offset: u64, limit: u64) -> Vec<Record> {
    let Some(plan) = &benchmark.plan else { return Vec::new() };
    let per_item = u64::from(plan.samples_per_item.max(1));
    let end = plan.samples().min(offset.saturating_add(limit));
    let keys = (offset.min(end)..end).map(|index| {
        let position = Position {
            item: u32::try_from(index / per_item).unwrap_or(u32::MAX),
            sample: u32::try_from(index % per_item).unwrap_or(0),
        };
        let partition =
            shard_partition(run, &benchmark.name, plan.attempt, position.item % plan.shards.max(1));
        key(partition, sample_sort(position))
    });
    keys.collect()
}
