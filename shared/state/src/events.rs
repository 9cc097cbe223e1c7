//! What happened to a run, in order.
//!
//! Events are numbered without gaps: one is written under the number after the last, on condition
//! that nobody else did. Who reads from a number on misses none.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use bench_domain::{BenchmarkName, RunId, RunSpec, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::attributes::{Reader, Record, json, number, text};
use crate::client::condition_held;
use crate::conflict::pause;
use crate::keys::{event_sort, events_partition, key};
use crate::{State, StateError};

/// Tries to get a number while others write events of the same run.
pub(crate) const TRIES_MAX: u32 = 40;

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names are the documentation
pub enum EventKind {
    RunCreated,
    RunStarted,
    RunResumed,
    RunRequeued,
    RunCanceled,
    RunCompleted,
    RunFailed,
    BenchmarkStarted,
    BenchmarkResumed,
    BenchmarkProgress,
    BenchmarkCompleted,
    BenchmarkFailed,
}

/// Something that happened and is to be written down.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Its kind.
    pub kind: EventKind,
    /// The benchmark that it is about.
    pub benchmark: Option<BenchmarkName>,
    /// For people.
    pub message: String,
    /// For programs: an object, or nothing.
    pub data: Option<serde_json::Value>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its id.
    pub id: Uuid,
    /// Its number in the run, from 1.
    pub sequence: u64,
    /// Its kind.
    pub event_type: EventKind,
    /// The benchmark that it is about.
    pub benchmark_name: Option<BenchmarkName>,
    /// For people.
    pub message: String,
    /// For programs.
    pub data: Option<serde_json::Value>,
    /// When it was written.
    pub created_at: Timestamp,
}

impl NewEvent {
    /// An event of a run.
    pub fn new(kind: EventKind, message: impl Into<String>) -> Self {
        Self { kind, benchmark: None, message: message.into(), data: None }
    }

    /// That a run was ordered. `ignored` are names in the order that are no benchmarks.
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
        Self::new(EventKind::RunCreated, message).with(data)
    }

    /// The same event, about one benchmark.
    #[must_use]
    pub fn of(mut self, benchmark: &BenchmarkName) -> Self {
        self.benchmark = Some(benchmark.clone());
        self
    }

    /// The same event, with data.
    #[must_use]
    pub fn with(mut self, data: serde_json::Value) -> Self {
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
    /// The put of an event under the number after `last`, for a transaction with what it tells of.
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

    /// The number of a run's latest event, 0 without any.
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

    /// Writes an event that tells of nothing else that must be true with it, such as progress.
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
                        taken,
                    ),
                ) => {
                    let mine = taken.item().is_some_and(|record| {
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
        Err(StateError::Service { verb: "write an event", problem: "others were always faster".into() })
    }

    /// Up to `limit` events with numbers above `after`, in order.
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

    /// Writes at most one progress event a second for a benchmark: tells whether the caller is the one to do it.
    ///
    /// `sort` is the benchmark's place in the run.
    pub async fn may_tell_progress(
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
