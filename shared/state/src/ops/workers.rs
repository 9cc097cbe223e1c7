//! Active workers: one small record per worker and minute.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use bench_domain::Timestamp;

use super::{HOUR_US, MINUTE_US};
use crate::attributes::{Reader, Record, number, text, time};
use crate::client::expires_at;
use crate::keys::{key, ops_hour};
use crate::{State, StateError};

/// Seconds that a record is kept. Queries look back at most one day.
const FORGET_AFTER_S: i64 = 25 * 3_600;
/// Maximum length of ids and host names in characters; longer ones are cut.
pub const WORKER_ID_CHARS_MAX: usize = 128;
/// Maximum number of records that are read per hour: 1,600 workers for an hour.
const ROWS_PER_HOUR_MAX: usize = 100_000;
/// Maximum duration of writing a heartbeat.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Heartbeat of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// Id of the process.
    pub worker_id: String,
    /// Host name of the machine, if known.
    pub hostname: Option<String>,
    /// Number of different runs whose samples it worked on since its last heartbeat.
    pub running_runs: u64,
    /// Maximum number of runs that it works on.
    pub max_concurrent_runs: u64,
    /// Number of samples that it works on in parallel.
    pub item_concurrency: u64,
    /// Time of the heartbeat.
    pub at: Timestamp,
}

/// Heartbeat with the counts of runs at that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatRecord {
    /// The worker's heartbeat.
    pub heartbeat: Heartbeat,
    /// Number of queued runs.
    pub queued_runs: u64,
    /// Number of running runs, of all workers.
    pub running_runs: u64,
    /// Start count of the worker's host; 0 in deployments and in records of older versions.
    pub epoch: u64,
}

/// Load in one minute with active workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinuteLoad {
    /// Start of the minute.
    pub timestamp: Timestamp,
    /// Number of workers that sent a heartbeat.
    pub worker_count: u64,
    /// Number of running runs.
    pub running_runs: u64,
    /// Number of queued runs.
    pub queued_runs: u64,
}

/// Returns the load of each minute, in order. Minutes without active workers are left out.
pub fn minute_loads(seen: &[HeartbeatRecord]) -> Vec<MinuteLoad> {
    let mut minutes: BTreeMap<i64, (HashSet<&str>, Timestamp, MinuteLoad)> = BTreeMap::new();
    for row in seen {
        let (at, worker) = (row.heartbeat.at, row.heartbeat.worker_id.as_str());
        let minute = at.as_micros().div_euclid(MINUTE_US);
        let timestamp = Timestamp::from_micros(minute * MINUTE_US);
        let none = MinuteLoad { timestamp, worker_count: 0, running_runs: 0, queued_runs: 0 };
        let (workers, latest, load) = minutes.entry(minute).or_insert((HashSet::new(), at, none));
        workers.insert(worker);
        load.worker_count = workers.len() as u64;
        // The latest heartbeat has the best count of queued runs. A run can be over when its worker's heartbeat counts
        // it.
        if at >= *latest {
            (*latest, load.queued_runs) = (at, row.queued_runs);
        }
        load.running_runs = load.running_runs.max(row.running_runs).max(row.heartbeat.running_runs);
    }
    minutes.into_values().map(|(_, _, load)| load).collect()
}

/// Returns the last heartbeat at `since` or later of each worker, sorted by worker. Workers of an earlier start than
/// `epoch` have ended with their process.
pub fn latest_heartbeats(seen: &[HeartbeatRecord], since: Timestamp, epoch: u64) -> Vec<Heartbeat> {
    let mut latest: HashMap<&str, &Heartbeat> = HashMap::new();
    let of_this_start = seen.iter().filter(|row| row.epoch == epoch);
    for heartbeat in of_this_start.map(|row| &row.heartbeat).filter(|heartbeat| heartbeat.at >= since) {
        let known = latest.entry(&heartbeat.worker_id).or_insert(heartbeat);
        if heartbeat.at > known.at {
            *known = heartbeat;
        }
    }
    let mut latest: Vec<Heartbeat> = latest.into_values().cloned().collect();
    latest.sort_by(|a, b| a.worker_id.cmp(&b.worker_id));
    latest
}

fn truncate_name(text: &str) -> String {
    text.chars().take(WORKER_ID_CHARS_MAX).collect()
}

impl HeartbeatRecord {
    fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        let sort = reader.text("sk")?;
        let worker = sort.split_once('#').map(|(_, worker)| worker.to_owned());
        Ok(Self {
            heartbeat: Heartbeat {
                worker_id: worker.ok_or_else(|| StateError::damaged(reader.key(), "it names no worker"))?,
                hostname: reader.maybe_text("hostname").map(str::to_owned),
                running_runs: reader.number("runs")?,
                max_concurrent_runs: reader.number("runs_max")?,
                item_concurrency: reader.number("item_concurrency")?,
                at: reader.time("at")?,
            },
            queued_runs: reader.number_or("all_queued", 0)?,
            running_runs: reader.number_or("all_running", 0)?,
            epoch: reader.number_or("epoch", 0)?,
        })
    }
}

impl State {
    /// Writes a worker's heartbeat with the current counts of runs. A second heartbeat in the same minute replaces the
    /// first.
    ///
    /// # Errors
    /// If the write fails or takes longer than two seconds. Nothing depends on it.
    pub async fn note_heartbeat(&self, heartbeat: &Heartbeat) -> Result<(), StateError> {
        let late = || StateError::Service { verb: "note the heartbeat", problem: "no answer in time".into() };
        tokio::time::timeout(WRITE_TIMEOUT, self.put_heartbeat(heartbeat)).await.map_err(|_| late())?
    }

    async fn put_heartbeat(&self, heartbeat: &Heartbeat) -> Result<(), StateError> {
        let counts = self.run_counts().await?;
        let micros = heartbeat.at.as_micros();
        let minute = micros.div_euclid(MINUTE_US).rem_euclid(60);
        let sort = format!("{minute:02}#{}", truncate_name(&heartbeat.worker_id));
        let mut record = key(ops_hour(micros.div_euclid(HOUR_US)), sort);
        if let Some(hostname) = &heartbeat.hostname {
            record.insert("hostname".into(), text(truncate_name(hostname)));
        }
        record.insert("runs".into(), number(heartbeat.running_runs));
        record.insert("runs_max".into(), number(heartbeat.max_concurrent_runs));
        record.insert("item_concurrency".into(), number(heartbeat.item_concurrency));
        record.insert("at".into(), time(heartbeat.at));
        record.insert("all_queued".into(), number(counts.queued));
        record.insert("all_running".into(), number(counts.running));
        record.insert("epoch".into(), number(self.epoch));
        record.insert("expires_at".into(), number(expires_at(heartbeat.at, FORGET_AFTER_S)));
        let put = self.client.put_item().table_name(&self.table).set_item(Some(record)).send().await;
        put.map(drop).map_err(|error| StateError::sdk("note the heartbeat", error))
    }

    /// Returns all heartbeats from the minute of `at` to the end of its hour.
    pub async fn heartbeats_from(&self, at: Timestamp) -> Result<Vec<HeartbeatRecord>, StateError> {
        let micros = at.as_micros();
        let minute = micros.div_euclid(MINUTE_US).rem_euclid(60);
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :hour AND sk >= :minute")
            .expression_attribute_values(":hour", text(ops_hour(micros.div_euclid(HOUR_US))))
            .expression_attribute_values(":minute", text(format!("{minute:02}#")))
            .into_paginator()
            .items()
            .send();
        let mut seen = Vec::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("read heartbeats", error))?;
            seen.push(HeartbeatRecord::read(&record)?);
            if seen.len() == ROWS_PER_HOUR_MAX {
                break;
            }
        }
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(worker: &str, at_s: i64, runs: u64, all: (u64, u64)) -> HeartbeatRecord {
        HeartbeatRecord {
            heartbeat: Heartbeat {
                worker_id: worker.to_owned(),
                hostname: None,
                running_runs: runs,
                max_concurrent_runs: 3,
                item_concurrency: 10,
                at: Timestamp::from_micros(at_s * 1_000_000),
            },
            queued_runs: all.0,
            running_runs: all.1,
            epoch: 7,
        }
    }

    #[test]
    fn a_minute_counts_each_worker_once_and_no_run_twice() {
        let seen = [
            row("b", 130, 1, (4, 2)),
            row("a", 121, 2, (5, 2)),
            row("a", 179, 1, (3, 1)),
            row("a", 300, 1, (0, 0)),
        ];
        let minute = |s: i64, worker_count, running_runs, queued_runs| MinuteLoad {
            timestamp: Timestamp::from_micros(s * 1_000_000),
            worker_count,
            running_runs,
            queued_runs,
        };
        // The run that was over when its worker counted it still ran in that minute.
        assert_eq!(minute_loads(&seen), [minute(120, 2, 2, 3), minute(300, 1, 1, 0)]);
        assert_eq!(minute_loads(&[]), []);
    }

    #[test]
    fn the_last_heartbeat_of_a_worker_counts_if_it_is_fresh() {
        let seen = [row("b", 130, 1, (0, 0)), row("a", 121, 2, (0, 0)), row("a", 179, 1, (0, 0))];
        let since = |s: i64| latest_heartbeats(&seen, Timestamp::from_micros(s * 1_000_000), 7);
        let names = |found: Vec<Heartbeat>| {
            found.into_iter().map(|h| (h.worker_id, h.running_runs)).collect::<Vec<_>>()
        };
        assert_eq!(names(since(0)), [("a".to_owned(), 1), ("b".to_owned(), 1)]);
        assert_eq!(names(since(131)), [("a".to_owned(), 1)]);
        assert_eq!(names(since(180)), []);
        assert_eq!(latest_heartbeats(&seen, Timestamp::default(), 8), [], "their process has ended");
    }
}
