//! Events of a run, in order.
//!
//! Events are numbered without gaps: each is written with the number after the last, on condition that no other process
//! has written that number. Readers that start at a number miss no event.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use bench_domain::{BenchmarkName, RunId, RunSpec, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::attributes::{Reader, Record, json, number, text};
use crate::client::condition_held;
use crate::conflict::pause;
use crate::keys::{event_sort, events_partition, key};
use crate::{State, StateError};

/// Maximum number of tries to get a number while others write events of the same run.
pub(crate) const TRIES_MAX: u32 = 40;

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names are the documentation
pub enum EventKind {
    RunCreated,
    RunStarted,
    RunResumed,
    RunInterrupted,
    RunRequeued,
    RunCanceled,
    RunCompleted,
    RunFailed,
    ProviderWaitStarted,
    ProviderWaitEnded,
    BenchmarkStarted,
    BenchmarkResumed,
    BenchmarkProgress,
    BenchmarkCompleted,
    BenchmarkFailed,
}

/// Event to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Kind of the event.
    pub kind: EventKind,
    /// Benchmark that the event is about.
    pub benchmark: Option<BenchmarkName>,
    /// Message for people.
    pub message: String,
    /// Data for programs: an object, if any.
    pub data: Option<serde_json::Value>,
}

/// Stored event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Id of the event.
    pub id: Uuid,
    /// Number of the event in its run, from 1.
    pub sequence: u64,
    /// Kind of the event.
    pub event_type: EventKind,
    /// Benchmark that the event is about.
    pub benchmark_name: Option<BenchmarkName>,
    /// Message for people.
    pub message: String,
    /// Data for programs.
    pub data: Option<serde_json::Value>,
    /// Time at which it was written.
    pub created_at: Timestamp,
}

impl NewEvent {
    /// Creates an event of a run.
    pub fn new(kind: EventKind, message: impl Into<String>) -> Self {
        Self { kind, benchmark: None, message: message.into(), data: None }
    }

    /// Creates the event of an ordered run. `ignored` are names in the order that aren't benchmarks.
    pub fn run_created(spec: &RunSpec, ignored: &[String]) -> Self {
        let subset = &spec.subset;
        let part = match (spec.items.len(), subset.count) {
            (0, Some(count)) => format!("{count} items"),
            (0, None) => format!("{}% subset", subset.pct),
            (named, _) => format!("{named} named items"),
        };
        let mut message = format!("Run created for model {} with {part}", spec.model.slug);
        if !ignored.is_empty() {
            message.push_str(&format!("; left out as unknown: {}", ignored.join(", ")));
        }
        let mut data = serde_json::json!({
            "model_slug": spec.model.slug,
            "provider": spec.model.provider,
            "subset_pct": subset.pct,
            "subset_count": subset.count,
            "subset_seed": subset.seed,
            "benchmark_count": spec.benchmarks.len(),
        });
        if !ignored.is_empty() {
            data["ignored_benchmarks"] = ignored.into();
        }
        if spec.budget.is_set() {
            data["budget"] = serde_json::json!(spec.budget);
        }
        if let Some(schedule) = spec.schedule {
            data["schedule_id"] = schedule.to_string().into();
        }
        if !spec.protocols.is_empty() {
            data["protocols"] = serde_json::json!(spec.protocols);
        }
        if !spec.options.is_empty() {
            data["benchmark_options"] = serde_json::json!(spec.options);
        }
        if let Some(judge) = &spec.judge {
            data["judge"] = judge.model.qualified().into();
        }
        if let Some(rejudges) = spec.rejudges {
            message = format!(
                "Run created: answers of run {} judged again, version {}",
                rejudges.run, rejudges.version
            );
            data["rejudges"] = serde_json::json!(rejudges);
        }
        Self::new(EventKind::RunCreated, message).with_data(data)
    }

    /// Sets the benchmark that the event is about.
    #[must_use]
    pub fn for_benchmark(mut self, benchmark: &BenchmarkName) -> Self {
        self.benchmark = Some(benchmark.clone());
        self
    }

    /// Sets the data of the event.
    #[must_use]
    pub fn with_data(mut self, data: serde_json::Value) -> Self {
        self.data = Some(data);
        self
    }

    fn numbered(&self, sequence: u64, now: Timestamp) -> Event {
        Event {
            id: Uuid::new_v4(),
            sequence,
            event_type: self.kind,
            benchmark_name: self.benchmark.clone(),
            message: self.message.clone(),
            data: self.data.clone(),
            created_at: now,
        }
    }
}

fn record(run: RunId, event: &Event) -> Result<Record, StateError> {
    let mut record = key(events_partition(run), event_sort(event.sequence));
    record.insert("id".to_owned(), text(event.id.to_string()));
    record.insert("event".to_owned(), json("event", event)?);
    Ok(record)
}

impl State {
    /// Returns the put of an event under the number after `last`, for the transaction with the change that it reports.
    pub(crate) fn event_put(
        &self,
        run: RunId,
        event: &NewEvent,
        last: u64,
        now: Timestamp,
    ) -> Result<TransactWriteItem, StateError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(record(run, &event.numbered(last + 1, now))?))
            .condition_expression("attribute_not_exists(pk)")
            .build()
            .map_err(|error| StateError::damaged("event", error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// Returns the number of a run's latest event, or 0 if there are none.
    pub async fn last_event(&self, run: RunId) -> Result<u64, StateError> {
        let page = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :events")
            .expression_attribute_values(":events", text(events_partition(run)))
            .consistent_read(true)
            .scan_index_forward(false)
            .limit(1)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the latest event", error))?;
        let latest = page.items().first().map(|record| Reader::new(record).text_or_empty("sk").to_owned());
        Ok(latest.and_then(|sort| sort.parse().ok()).unwrap_or(0))
    }

    /// Writes an event that isn't part of a transaction, such as progress.
    pub async fn add_event(&self, run: RunId, event: &NewEvent, now: Timestamp) -> Result<Event, StateError> {
        let mut last = self.last_event(run).await?;
        for attempt in 1..=TRIES_MAX {
            let numbered = event.numbered(last + 1, now);
            let put = self
                .client
                .put_item()
                .table_name(&self.table)
                .set_item(Some(record(run, &numbered)?))
                .condition_expression("attribute_not_exists(pk)")
                .return_values_on_condition_check_failure(
                    aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld,
                )
                .send()
                .await;
            let error = match put {
                Ok(_) => return Ok(numbered),
                Err(error) => error,
            };
            match error.as_service_error() {
                Some(
                    aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException(
                        existing,
                    ),
                ) => {
                    let mine = existing.item().is_some_and(|record| {
                        Reader::new(record).maybe_text("id") == Some(numbered.id.to_string().as_str())
                    });
                    if mine {
                        return Ok(numbered);
                    }
                    pause(attempt.min(4)).await;
                    last = self.last_event(run).await?;
                }
                _ => return Err(StateError::sdk("write an event", error)),
            }
        }
        Err(StateError::Service { verb: "write an event", problem: "other writers took every number".into() })
    }

    /// Returns up to `limit` events with numbers above `after`, in order.
    pub async fn events(&self, run: RunId, after: u64, limit: u32) -> Result<Vec<Event>, StateError> {
        let limit = i32::try_from(limit.clamp(1, 1_000)).unwrap_or(1_000);
        let page = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :events AND sk > :after")
            .expression_attribute_values(":events", text(events_partition(run)))
            .expression_attribute_values(":after", text(event_sort(after)))
            .consistent_read(true)
            .limit(limit)
            .send()
            .await
            .map_err(|error| StateError::sdk("read events", error))?;
        page.items().iter().map(|record| Reader::new(record).json("event")).collect()
    }

    /// Returns true if the caller should write a progress event of a benchmark: at most one caller per interval `every`
    /// gets `true`.
    ///
    /// `sort` is the benchmark's sort key in the run's partition.
    pub async fn claim_progress_event(
        &self,
        run: RunId,
        benchmark_sort: &str,
        now: Timestamp,
        every: std::time::Duration,
    ) -> Result<bool, StateError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(crate::keys::run_partition(run), benchmark_sort)))
            .update_expression("SET progress_at = :now")
            .condition_expression(
                "attribute_exists(pk) AND (attribute_not_exists(progress_at) OR progress_at <= :before)",
            )
            .expression_attribute_values(":now", number(now.as_micros()))
            .expression_attribute_values(
                ":before",
                number(now.as_micros().saturating_sub(i64::try_from(every.as_micros()).unwrap_or(0))),
            )
            .send()
            .await;
        condition_held("note progress", update)
    }
}
