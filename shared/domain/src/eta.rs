//! Progress of a run, estimates of when it will be done, and formatting of such numbers.
//!
//! Other clients compute the same values from the same fields. The test vectors in `tests/data/vectors/eta.json` keep
//! the rules equal everywhere.

mod text;

use serde::Serialize;

pub use self::text::{format_duration_ms, format_duration_seconds, format_percent};
use crate::sampling::percent_of;

/// Fields of a run that the estimate needs. Times are microseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct EtaRun<'a> {
    /// Id of the run. Callers use it to find the run's queue entry.
    pub id: &'a str,
    /// Status of the run as clients see it; only `running` and `queued` matter.
    pub status: &'a str,
    /// Time of creation.
    pub created_at_us: i64,
    /// Share of the items in percent.
    pub subset_pct: u32,
    /// Number of items; takes precedence over the share.
    pub subset_count: Option<u64>,
    /// The run's benchmarks.
    pub benchmarks: Vec<EtaBenchmark<'a>>,
}

/// Fields of a run's benchmark that the estimate needs. Times are microseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct EtaBenchmark<'a> {
    /// Status as clients see it. Benchmarks that are `succeeded`, `failed`, `skipped` or `needs_setup` have no work
    /// left.
    pub status: &'a str,
    /// Items of the dataset; 0 if not yet known.
    pub total_items: u64,
    /// Items selected; 0 if not yet known.
    pub sampled_items: u64,
    /// Items done.
    pub completed_items: u64,
    /// Time at which the first item was started.
    pub started_at_us: Option<i64>,
    /// Time at which the last item was done.
    pub completed_at_us: Option<i64>,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// Items done.
    pub completed: u64,
    /// Total number of items expected.
    pub total: u64,
    /// Share done in percent, 0 to 100; 0 if no items are expected.
    pub percent: f64,
}

/// Position and estimated times of a queued run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueueEntry<'a> {
    /// Id of the run.
    pub run_id: &'a str,
    /// Position in the queue, from 1.
    pub queue_position: u64,
    /// Seconds until the run is expected to start; `None` if its duration can't be estimated.
    pub start_delay_seconds: Option<f64>,
    /// Seconds until the run is expected to be done; `None` if its duration can't be estimated.
    pub eta_seconds: Option<f64>,
}

impl EtaBenchmark<'_> {
    fn is_over(&self) -> bool {
        matches!(self.status, "succeeded" | "failed" | "skipped" | "needs_setup")
    }

    /// Returns the seconds from the start to the end or, while open, to now; `None` before the first item is done.
    fn seconds(&self, now_us: i64) -> Option<f64> {
        let end_us = self.completed_at_us.unwrap_or(now_us);
        let elapsed_us = end_us.saturating_sub(self.started_at_us?);
        (self.completed_items > 0 && elapsed_us > 0).then(|| elapsed_us as f64 / 1e6)
    }

    fn seconds_per_item(&self, now_us: i64) -> Option<f64> {
        Some(self.seconds(now_us)? / self.completed_items as f64)
    }
}

impl EtaRun<'_> {
    /// Returns the number of items that a benchmark of this run is expected to evaluate: the number of selected items
    /// if known, otherwise the number that the subset selects from the dataset, otherwise 0.
    #[must_use]
    pub fn expected_items(&self, benchmark: &EtaBenchmark<'_>) -> u64 {
        let total = benchmark.total_items;
        match self.subset_count.filter(|&count| count > 0) {
            _ if benchmark.sampled_items > 0 => benchmark.sampled_items,
            Some(count) if total > 0 => count.min(total),
            Some(count) => count,
            None => percent_of(total, self.subset_pct),
        }
    }

    fn expected_total(&self) -> u64 {
        self.benchmarks.iter().fold(0, |sum, each| sum.saturating_add(self.expected_items(each)))
    }

    /// Returns the progress of the run.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let total = self.expected_total();
        let completed =
            self.benchmarks.iter().fold(0u64, |sum, each| sum.saturating_add(each.completed_items));
        let percent = if total == 0 { 0.0 } else { completed as f64 / total as f64 * 100.0 };
        Progress { completed, total, percent: percent.clamp(0.0, 100.0) }
    }

    /// Returns the seconds until the run is done. Each benchmark counts at its own pace or, without one, at the run's.
    /// `None` if no benchmark has a pace yet.
    #[must_use]
    pub fn remaining_seconds(&self, now_us: i64) -> Option<f64> {
        let average = average_seconds_per_item(std::slice::from_ref(self), now_us)?;
        let open = self.benchmarks.iter().filter(|each| !each.is_over());
        Some(
            open.map(|each| {
                let items = self.expected_items(each).saturating_sub(each.completed_items);
                items as f64 * each.seconds_per_item(now_us).unwrap_or(average)
            })
            .sum(),
        )
    }

    /// Returns the seconds that the whole run takes at the given pace; `None` without a pace or expected items.
    #[must_use]
    pub fn total_seconds(&self, average_seconds_per_item: Option<f64>) -> Option<f64> {
        let items = self.expected_total();
        average_seconds_per_item.filter(|_| items > 0).map(|average| items as f64 * average)
    }
}

/// Returns the average seconds per item over all benchmarks that have a pace, weighted by their items; `None` if none
/// has a pace.
#[must_use]
pub fn average_seconds_per_item(runs: &[EtaRun<'_>], now_us: i64) -> Option<f64> {
    let (mut seconds, mut items) = (0.0, 0.0);
    for benchmark in runs.iter().flat_map(|run| &run.benchmarks) {
        if let Some(elapsed) = benchmark.seconds(now_us) {
            seconds += elapsed;
            items += benchmark.completed_items as f64;
        }
    }
    (items > 0.0).then(|| seconds / items)
}

/// Returns when each queued run is expected to start and end, in queue order.
///
/// `runs` are all visible runs. Queued runs are scheduled, running ones occupy slots for their remaining time, and all
/// runs with a pace contribute to the average. `slots` is the number of runs that are evaluated in parallel, at least
/// 1. A run whose duration can't be estimated occupies no slot.
#[must_use]
pub fn queue_schedule<'a>(runs: &[EtaRun<'a>], slots: usize, now_us: i64) -> Vec<QueueEntry<'a>> {
    let average = average_seconds_per_item(runs, now_us);
    let mut queued: Vec<&EtaRun<'a>> = runs.iter().filter(|run| run.status == "queued").collect();
    queued.sort_by_key(|run| run.created_at_us);

    let mut free_at: Vec<f64> = runs
        .iter()
        .filter(|run| run.status == "running")
        .map(|run| run.remaining_seconds(now_us).or_else(|| run.total_seconds(average)).unwrap_or(0.0))
        .collect();
    free_at.sort_unstable_by(f64::total_cmp);
    // Each queued run takes at most one slot, so additional free slots change nothing.
    free_at.resize(slots.clamp(1, free_at.len() + queued.len().max(1)), 0.0);

    let mut place = |run: &EtaRun<'a>| {
        let total = run.total_seconds(average)?;
        let slot = free_at.iter_mut().min_by(|a, b| a.total_cmp(b))?;
        let start = *slot;
        *slot = start + total;
        Some((start, *slot))
    };
    (1..)
        .zip(queued)
        .map(|(queue_position, run)| {
            let (start_delay_seconds, eta_seconds) = place(run).unzip();
            QueueEntry { run_id: run.id, queue_position, start_delay_seconds, eta_seconds }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Returns the vectors, which the tests of this module share.
    pub(super) fn vectors() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/eta.json");
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn micros(time: &Value) -> Option<i64> {
        Some(time.as_str()?.parse::<jiff::Timestamp>().unwrap().as_microsecond())
    }

    fn run<'a>(all: &'a Value, id: &str) -> EtaRun<'a> {
        let run = &all["runs"][id];
        let benchmark = |value: &'a Value| EtaBenchmark {
            status: value["status"].as_str().unwrap(),
            total_items: value["total_items"].as_u64().unwrap(),
            sampled_items: value["sampled_items"].as_u64().unwrap(),
            completed_items: value["completed_items"].as_u64().unwrap(),
            started_at_us: micros(&value["started_at"]),
            completed_at_us: micros(&value["completed_at"]),
        };
        EtaRun {
            id: run["id"].as_str().unwrap(),
            status: run["status"].as_str().unwrap(),
            created_at_us: micros(&run["created_at"]).unwrap(),
            subset_pct: run["subset_pct"].as_u64().unwrap() as u32,
            subset_count: run["subset_count"].as_u64(),
            benchmarks: run["benchmarks"].as_array().unwrap().iter().map(benchmark).collect(),
        }
    }

    fn entries<'a>(all: &'a Value, group: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
        all[group].as_object().unwrap().iter()
    }

    /// Rounding may differ with the order of operations; no display shows that many digits.
    fn assert_seconds(actual: Option<f64>, expected: &Value, what: &str) {
        match (actual, expected.as_f64()) {
            (None, None) => assert!(expected.is_null(), "{what}"),
            (Some(actual), Some(expected)) => {
                assert!((actual - expected).abs() <= 1e-12 * expected, "{what}: {actual} is not {expected}");
            }
            _ => panic!("{what}: {actual:?} is not {expected}"),
        }
    }

    #[test]
    fn progress_matches_the_vectors() {
        let all = vectors();
        assert_eq!(entries(&all, "progress").count(), 7);
        for (id, expected) in entries(&all, "progress") {
            let progress = run(&all, id).progress();
            assert_eq!(progress.completed, expected["completed"].as_u64().unwrap(), "{id}");
            assert_eq!(progress.total, expected["total"].as_u64().unwrap(), "{id}");
            assert_eq!(progress.percent, expected["percent"].as_f64().unwrap(), "{id}");
        }
    }

    #[test]
    fn remaining_and_total_match_the_vectors() {
        let all = vectors();
        let now_us = micros(&all["now"]).unwrap();
        assert_eq!(entries(&all, "remaining_seconds").count(), 7);
        assert_eq!(entries(&all, "total_seconds_at_2s_per_item").count(), 7);
        for (id, expected) in entries(&all, "remaining_seconds") {
            assert_seconds(run(&all, id).remaining_seconds(now_us), expected, id);
        }
        for (id, expected) in entries(&all, "total_seconds_at_2s_per_item") {
            assert_seconds(run(&all, id).total_seconds(Some(2.0)), expected, id);
            assert_eq!(run(&all, id).total_seconds(None), None);
        }
    }

    #[test]
    fn schedules_match_the_vectors() {
        let all = vectors();
        let now_us = micros(&all["now"]).unwrap();
        let cases = all["schedules"].as_array().unwrap();
        assert_eq!(cases.len(), 16);
        for case in cases {
            let ids = case["runs"].as_array().unwrap();
            let runs: Vec<_> = ids.iter().map(|id| run(&all, id.as_str().unwrap())).collect();
            let slots = case["slots"].as_u64().unwrap() as usize;
            let schedule = queue_schedule(&runs, slots, now_us);
            let expected = case["schedule"].as_object().unwrap();
            assert_eq!(schedule.len(), expected.len());
            for entry in schedule {
                let what = format!("{} of {ids:?} with {slots} slots", entry.run_id);
                let expected = &expected[entry.run_id];
                assert_eq!(entry.queue_position, expected["queuePosition"].as_u64().unwrap(), "{what}");
                assert_seconds(entry.start_delay_seconds, &expected["startDelaySeconds"], &what);
                assert_seconds(entry.eta_seconds, &expected["etaSeconds"], &what);
            }
        }
    }

    fn any_run() -> impl Strategy<Value = EtaRun<'static>> {
        let benchmark = (
            prop::sample::select(vec!["pending", "running", "succeeded", "failed", "canceled"]),
            (any::<u64>(), 0u64..1000, 0u64..2000),
            (any::<Option<i64>>(), any::<Option<i64>>()),
        )
            .prop_map(|(status, (total_items, sampled_items, completed_items), (start, end))| EtaBenchmark {
                status,
                total_items,
                sampled_items,
                completed_items,
                started_at_us: start,
                completed_at_us: end,
            });
        let status = prop::sample::select(vec!["queued", "running", "succeeded"]);
        let subset = (any::<u32>(), any::<Option<u64>>());
        (status, any::<i64>(), subset, prop::collection::vec(benchmark, 0..4)).prop_map(
            |(status, created_at_us, (subset_pct, subset_count), benchmarks)| EtaRun {
                id: "run",
                status,
                created_at_us,
                subset_pct,
                subset_count,
                benchmarks,
            },
        )
    }

    proptest! {
        #[test]
        fn any_input_gives_sensible_numbers(
            runs in prop::collection::vec(any_run(), 0..6), slots in any::<usize>(), now_us in any::<i64>(),
        ) {
            for run in &runs {
                prop_assert!((0.0..=100.0).contains(&run.progress().percent));
                prop_assert!(run.remaining_seconds(now_us).is_none_or(|seconds| seconds >= 0.0));
            }
            let schedule = queue_schedule(&runs, slots, now_us);
            prop_assert_eq!(schedule.len(), runs.iter().filter(|run| run.status == "queued").count());
            for (position, entry) in (1..).zip(&schedule) {
                prop_assert_eq!(entry.queue_position, position);
                prop_assert!(entry.eta_seconds >= entry.start_delay_seconds);
            }
        }

        #[test]
        fn slots_beyond_the_queue_change_nothing(runs in prop::collection::vec(any_run(), 0..6), now_us in any::<i64>()) {
            prop_assert_eq!(queue_schedule(&runs, usize::MAX, now_us), queue_schedule(&runs, 64, now_us));
        }
    }
}
