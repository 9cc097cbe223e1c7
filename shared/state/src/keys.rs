//! Constructors for the keys of the table, which the crate's documentation lists.

use aws_sdk_dynamodb::types::AttributeValue;
use bench_domain::{BenchmarkName, Position, RunId, SampleRef, ScheduleId, Timestamp};

use crate::attributes::{Record, text};

pub(crate) const BY_TIME: &str = "by-time";
pub(crate) const BY_STATUS: &str = "by-status";
/// Partition of the `by-time` index.
pub(crate) const RUNS: &str = "RUNS";
pub(crate) const MODELS: &str = "MODELS";
/// Partition of the runs that are over and still have work to do.
pub(crate) const UNSETTLED: &str = "UNSETTLED";
/// Partition of the counts of runs by status.
pub(crate) const OPS_RUNS: &str = "OPS#RUNS";
/// Partition of the hourly token counts.
pub(crate) const OPS_TOKENS: &str = "OPS#TOKENS";
/// Partition of all schedules.
pub(crate) const SCHEDULES: &str = "SCHEDULES";
/// Partition of the names of schedules.
pub(crate) const SCHEDULE_NAMES: &str = "SCHEDULE#NAMES";
/// Partition of the planned times that still have work to do.
pub(crate) const FIRINGS: &str = "FIRINGS";
/// Prefix of the sort keys of judgings.
pub(crate) const JUDGING: &str = "JUDGING#";
/// Partition of the callers that the operator has listed.
pub(crate) const ACCESS: &str = "ACCESS";
/// Partition of the names and tags of runs.
pub(crate) const LABELS: &str = "LABELS";
/// Partition of the record that exists once all runs are in their owners' lists.
pub(crate) const OWNERS: &str = "OWNERS";
/// Partition of the runs that lists don't show to all callers.
pub(crate) const HIDDEN: &str = "HIDDEN";
/// Partition of the counts of open runs.
pub(crate) const OPEN: &str = "OPEN";
/// Partition of the hourly counts of wrong admin secrets.
pub(crate) const OPS_SECRETS: &str = "OPS#SECRETS";
/// Partition of the uploaded custom agents.
pub(crate) const AGENTS: &str = "AGENTS";
/// Partition of the uploaded terminal tasks.
pub(crate) const TASKS: &str = "TASKS";
/// Partition of the counts of tasks by the content of their archives.
pub(crate) const TASK_ARCHIVES: &str = "TASK#ARCHIVES";
/// Partition of the counters that ids are taken from.
pub(crate) const COUNTERS: &str = "COUNTERS";
/// Sort key of a shard's counters; sorts before its samples.
pub(crate) const COUNT: &str = "COUNT";

pub(crate) fn key(pk: impl Into<String>, sk: impl Into<String>) -> Record {
    Record::from([("pk".to_owned(), text(pk)), ("sk".to_owned(), text(sk))])
}

pub(crate) fn run_partition(run: RunId) -> String {
    format!("RUN#{run}")
}

/// Returns the key of the record by which a run is found by its name and tags.
pub(crate) fn labels(created_at: Timestamp, run: RunId) -> Record {
    key(LABELS, time_sort(created_at, run))
}

pub(crate) fn schedule_partition(schedule: ScheduleId) -> String {
    format!("SCHEDULE#{schedule}")
}

pub(crate) fn run(run: RunId) -> Record {
    key(run_partition(run), "RUN")
}

pub(crate) fn benchmark_sort(position: usize, name: &BenchmarkName) -> String {
    format!("BENCH#{position:03}#{name}")
}

/// Returns the sort key of a judging, in the run's own partition so that it's removed with the run.
pub(crate) fn judging_sort(version: u32) -> String {
    format!("{JUDGING}{version:010}")
}

pub(crate) fn shard_partition(run: RunId, benchmark: &BenchmarkName, plan: u32, shard: u32) -> String {
    format!("RUN#{run}#{benchmark}#{plan}#{shard}")
}

pub(crate) fn sample_partition(sample: &SampleRef) -> String {
    shard_partition(sample.run, &sample.benchmark, sample.plan, sample.shard())
}

pub(crate) fn sample_sort(position: Position) -> String {
    format!("S#{:08}.{:04}", position.item, position.sample)
}

pub(crate) fn sample(sample: &SampleRef) -> Record {
    key(sample_partition(sample), sample_sort(sample.position))
}

pub(crate) fn events_partition(run: RunId) -> String {
    format!("RUN#{run}#EVENTS")
}

pub(crate) fn event_sort(sequence: u64) -> String {
    format!("{sequence:010}")
}

pub(crate) fn status_partition(status: &str) -> AttributeValue {
    text(format!("STATUS#{status}"))
}

/// Returns a sort key by time; the id makes it unique. The number has a fixed width, so that text order is time order.
pub(crate) fn time_sort(created_at: Timestamp, run: RunId) -> String {
    format!("{:020}#{run}", created_at.as_micros())
}

/// Returns the partition of the workers of an hour, counted from 1970.
pub(crate) fn ops_hour(hour: i64) -> String {
    format!("OPS#HOUR#{hour:010}")
}
