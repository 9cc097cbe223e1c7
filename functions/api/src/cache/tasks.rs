//! Facts about episodes, and counts of tasks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bench_domain::{Position, RunId, TestCounts};
use bench_web::Caller;
use serde::Serialize;
use utoipa::ToSchema;

/// Maximum number of archives that are received or checked at once; further requests wait.
pub(crate) const ARCHIVES_AT_ONCE: usize = 16;

/// Facts of episodes that are over, by run, position and attempt. Stored bodies never change.
pub(crate) type EpisodeCache = HashMap<(RunId, Position, u32), EpisodeFacts>;

/// Facts about an episode from its body.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EpisodeFacts {
    pub(crate) tests: TestCounts,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) exception: Option<String>,
    /// Tokens that the provider read from its cache, over all steps; `None` without a report of the agent.
    pub(crate) cached_tokens: Option<u64>,
    /// Cost over all steps in US dollars; `None` if it is unknown.
    pub(crate) cost_usd: Option<f64>,
}

/// Results of tasks in runs that are over, by task and run, each with the run's generation.
pub(crate) type CachedResults = HashMap<(u64, RunId), (u32, TaskResultsView)>;

/// Names of the first tasks of runs, by run and attempt of its planner.
pub(crate) type CachedRunTasks = HashMap<(RunId, u32), Arc<[String]>>;

/// Episodes of a task over all of its orders: those of the task's own routes, and those of runs that name it, as the page,
/// `bench run --task` and schedules order them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = TaskResults)]
pub(crate) struct TaskResultsView {
    /// `pending` without a run, `running` while a run is open, otherwise `completed`.
    pub(crate) status: &'static str,
    /// Number of runs with episodes of the task; deleted ones aren't counted.
    pub(crate) runs: u64,
    /// Number of those that aren't over.
    pub(crate) open_runs: u64,
    /// Number of episodes in them.
    pub(crate) episodes: u64,
    /// Episodes with the full reward. Their share of `passed` and `failed` together is the pass rate.
    pub(crate) passed: u64,
    /// Episodes that were graded below the full reward.
    pub(crate) failed: u64,
    /// Episodes among those that failed with a reward above 0; null while they aren't counted, because a run is open.
    pub(crate) partial: Option<u64>,
    /// Episodes that are over without a grade, or whose run ended first.
    pub(crate) errors: u64,
}

impl Default for TaskResultsView {
    fn default() -> Self {
        Self {
            status: "pending",
            runs: 0,
            open_runs: 0,
            episodes: 0,
            passed: 0,
            failed: 0,
            partial: Some(0),
            errors: 0,
        }
    }
}

impl TaskResultsView {
    /// Returns the sums of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            open_runs: self.open_runs + other.open_runs,
            episodes: self.episodes + other.episodes,
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            partial: self.partial.zip(other.partial).map(|(one, two)| one + two),
            errors: self.errors + other.errors,
            status: self.status,
        }
        .with_status()
    }

    /// Sets the status from the counts of runs.
    pub(crate) const fn with_status(mut self) -> Self {
        self.status = match (self.runs, self.open_runs) {
            (0, _) => "pending",
            (_, 0) => "completed",
            _ => "running",
        };
        self
    }
}

/// Counts of one caller, with their time.
pub(crate) type CachedStats = Option<(Instant, Caller, StatsView)>;

/// Counts over all tasks.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
#[schema(as = TaskStats)]
pub(crate) struct StatsView {
    pub(crate) tasks: TaskCounts,
    pub(crate) runs: EpisodeCounts,
    /// The same over all orders, as `results` of each task.
    pub(crate) results: AllOrdersView,
}

/// Counts over all orders of all tasks.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
#[schema(as = TaskStatsOfAllOrders)]
pub(crate) struct AllOrdersView {
    pub(crate) tasks: TaskCounts,
    pub(crate) episodes: EpisodeCounts,
}

/// Tasks by status.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
#[schema(as = TaskCounts)]
pub(crate) struct TaskCounts {
    pub(crate) total: u64,
    pub(crate) pending: u64,
    pub(crate) running: u64,
    pub(crate) completed: u64,
    /// Always 0: a task whose episodes failed is completed.
    pub(crate) failed: u64,
}

/// Episodes by status.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
#[schema(as = EpisodeCounts)]
pub(crate) struct EpisodeCounts {
    pub(crate) total: u64,
    /// Episodes with the full reward.
    pub(crate) passed: u64,
    /// Episodes that were graded below the full reward.
    pub(crate) failed: u64,
    /// Episodes that are over without a grade.
    pub(crate) error: u64,
}

impl StatsView {
    /// Returns the sums of both.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            tasks: self.tasks.plus(other.tasks),
            runs: self.runs.plus(other.runs),
            results: AllOrdersView {
                tasks: self.results.tasks.plus(other.results.tasks),
                episodes: self.results.episodes.plus(other.results.episodes),
            },
        }
    }
}

impl TaskCounts {
    /// Counts one task with this status.
    pub(crate) fn one(status: &str) -> Self {
        let is = |other: &str| u64::from(status == other);
        Self {
            total: 1,
            pending: is("pending"),
            running: is("running"),
            completed: is("completed"),
            failed: 0,
        }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            pending: self.pending + other.pending,
            running: self.running + other.running,
            completed: self.completed + other.completed,
            failed: self.failed + other.failed,
        }
    }
}

impl EpisodeCounts {
    const fn plus(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            error: self.error + other.error,
        }
    }
}
