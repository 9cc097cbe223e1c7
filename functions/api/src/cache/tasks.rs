//! Facts about episodes, and counts of tasks.

use std::collections::HashMap;
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

/// Counts of one caller, with their time.
pub(crate) type CachedStats = Option<(Instant, Caller, StatsView)>;

/// Counts over all tasks.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
#[schema(as = TaskStats)]
pub(crate) struct StatsView {
    pub(crate) tasks: TaskCounts,
    pub(crate) runs: EpisodeCounts,
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
    pub(crate) const fn plus(mut self, other: Self) -> Self {
        self.tasks.total += other.tasks.total;
        self.tasks.pending += other.tasks.pending;
        self.tasks.running += other.tasks.running;
        self.tasks.completed += other.tasks.completed;
        self.runs.total += other.runs.total;
        self.runs.passed += other.runs.passed;
        self.runs.failed += other.runs.failed;
        self.runs.error += other.runs.error;
        self
    }
}
