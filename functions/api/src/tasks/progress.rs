//! Progress of a task: the states of its episodes, counted.

use bench_domain::{RunId, Timestamp};
use bench_runs::TERMINAL_TASKS;
use bench_state::{BenchmarkRecord, RunWithBenchmarks, TaskRecord, TaskRun};
use bench_web::views::benchmark_counts;
use bench_web::{ApiError, Caller};

use crate::Api;

/// Status of a task without episodes.
pub(crate) const PENDING: &str = "pending";
pub(crate) const RUNNING: &str = "running";
pub(crate) const COMPLETED: &str = "completed";

/// Counted episodes of a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Progress {
    /// Ordered episodes.
    pub(crate) total: u64,
    /// Episodes with the full reward.
    pub(crate) passed: u64,
    /// Other episodes that are over.
    pub(crate) failed: u64,
    /// Episodes that were graded below the full reward, among those that failed.
    pub(crate) graded_below: u64,
    /// Time of the first order.
    pub(crate) started_at: Option<Timestamp>,
    /// Runs with the episodes, without other callers' private ones.
    pub(crate) runs: Vec<RunId>,
    /// Number of all runs with the episodes.
    orders: usize,
    /// Number of those runs that aren't over.
    open: usize,
    last_end: Option<Timestamp>,
}

/// Run of a task, with its records; `None` if the run was deleted.
pub(crate) struct LoadedRun {
    pub(crate) entry: TaskRun,
    pub(crate) found: Option<RunWithBenchmarks>,
}

/// Returns true if no episode of a run can change any more. A canceled run is open until attempts in progress are over.
pub(crate) fn is_over(found: &RunWithBenchmarks) -> bool {
    let is_open = |benchmark: &BenchmarkRecord| benchmark.state.status().is_open();
    !found.run.state.status().is_open() && !found.benchmarks.iter().any(is_open)
}

impl LoadedRun {
    /// Reads the records of a run.
    pub(crate) async fn load(api: &Api, entry: TaskRun) -> Result<Self, ApiError> {
        let found = api.state.run_with_benchmarks(entry.run).await?;
        Ok(Self { entry, found })
    }

    /// Returns true if the caller may know that the run exists.
    pub(crate) fn is_visible_to(&self, caller: &Caller) -> bool {
        self.found.as_ref().is_none_or(|found| caller.sees_run(&found.run.spec))
    }

    /// Returns the benchmark with the episodes.
    pub(crate) fn benchmark(&self) -> Option<&BenchmarkRecord> {
        self.found.as_ref()?.benchmark(TERMINAL_TASKS)
    }

    /// Returns true if no episode can change any more.
    pub(crate) fn is_over(&self) -> bool {
        self.found.as_ref().is_none_or(is_over)
    }

    /// Returns the time at which the run was over.
    pub(crate) fn completed_at(&self) -> Option<Timestamp> {
        let found = self.found.as_ref()?;
        let benchmarks = found.benchmarks.iter().filter_map(|benchmark| benchmark.state.completed_at());
        benchmarks.chain(found.run.state.completed_at()).max()
    }
}

impl Progress {
    /// Counts the episodes of a task. The counts include other callers' private runs; the list of runs doesn't.
    pub(crate) async fn of(api: &Api, task: &TaskRecord, caller: &Caller) -> Result<Self, ApiError> {
        let mut progress = Self::default();
        for entry in api.state.task_runs(task).await? {
            let loaded = LoadedRun::load(api, entry).await?;
            let (passed, graded, done) = match (&loaded.found, loaded.benchmark()) {
                (Some(found), Some(benchmark)) => {
                    let counts = benchmark_counts(&api.state, found.run.spec.id, benchmark).await?;
                    (counts.correct, counts.graded, counts.done)
                }
                _ => (0, 0, 0),
            };
            progress.add(&loaded, caller, passed, graded, done);
        }
        Ok(progress)
    }

    /// Adds a run with `done` episodes that are over, `graded` of them with a grade and `passed` with the full reward.
    pub(crate) fn add(&mut self, loaded: &LoadedRun, caller: &Caller, passed: u64, graded: u64, done: u64) {
        let samples = u64::from(loaded.entry.samples);
        let passed = passed.min(samples);
        // What a run that is over left undone will never be done.
        let done = if loaded.is_over() { samples } else { done.min(samples) };
        self.total += samples;
        self.passed += passed;
        self.failed += done.saturating_sub(passed);
        self.graded_below += graded.min(done).saturating_sub(passed);
        self.orders += 1;
        if loaded.is_visible_to(caller) {
            self.runs.push(loaded.entry.run);
        }
        let ordered_at = loaded.entry.ordered_at;
        self.started_at = Some(self.started_at.map_or(ordered_at, |first| first.min(ordered_at)));
        if loaded.is_over() {
            self.last_end = self.last_end.max(loaded.completed_at().or(Some(ordered_at)));
        } else {
            self.open += 1;
        }
    }

    /// Returns the number of episodes that are over without a grade.
    pub(crate) const fn errors(&self) -> u64 {
        self.failed.saturating_sub(self.graded_below)
    }

    /// Returns the task's status.
    pub(crate) const fn status(&self) -> &'static str {
        match (self.orders, self.open) {
            (0, _) => PENDING,
            (_, 0) => COMPLETED,
            (_, _) => RUNNING,
        }
    }

    /// Returns the time at which the last episode was over; `None` for a task that isn't completed.
    pub(crate) fn completed_at(&self) -> Option<Timestamp> {
        self.last_end.filter(|_| self.status() == COMPLETED)
    }
}
