//! Removes keys that should have been deleted.
//!
//! By design, no keys are left over: a run and its key are written together, the write that ends a run lists it as
//! unsettled, and it stays listed until the finisher has removed the key; a schedule and its key are deleted
//! together. This task double-checks: it removes and reports any key that it finds nevertheless. DynamoDB deletes
//! expired records with a delay; readers ignore them until then.

use std::collections::HashSet;
use std::time::Duration;

use bench_domain::{RunId, Timestamp};
use bench_state::{RunFilter, StateError};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::scheduler::Scheduler;

/// Number of latest runs to check.
const RUNS_CHECKED: u64 = 500;
const CONCURRENT_READS: usize = 16;
/// Maximum number of unsettled runs to read. More would mean that no run gets settled at all.
const UNSETTLED_MAX: usize = 10_000;
/// Minimum time since the end of a run. The finisher may still be settling later ones.
const SETTLED_FOR: Duration = Duration::from_secs(600);

/// Results of a check for left-over keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reaped {
    /// Runs with a key that were checked.
    pub checked: u64,
    /// Keys removed.
    pub removed: u64,
}

impl Scheduler {
    /// Removes the keys of recent runs that are over and settled.
    ///
    /// # Errors
    /// Fails if the state fails. The next call checks again.
    pub async fn reap(&self, now: Timestamp) -> Result<Reaped, StateError> {
        let recent = self.state.list_runs(&RunFilter::default(), 0, RUNS_CHECKED).await?.runs;
        // Read after the runs: a run that ends in between is then either unsettled or too recent.
        let unsettled = self.state.list_unsettled(UNSETTLED_MAX).await?;
        let unsettled: HashSet<RunId> = unsettled.into_iter().map(|left| left.run).collect();
        let settled = recent.into_iter().filter(|run| !unsettled.contains(run));
        let visits: Vec<_> = settled.map(|run| self.reap_run(run, now)).collect();
        let found: Vec<Option<bool>> =
            stream::iter(visits).buffer_unordered(CONCURRENT_READS).try_collect().await?;
        let found: Vec<bool> = found.into_iter().flatten().collect();
        let removed = found.iter().filter(|removed| **removed).count() as u64;
        Ok(Reaped { checked: found.len() as u64, removed })
    }

    /// Returns true if a key was removed. `None` if the order has no caller's key, or if the run is open or ended
    /// less than [`SETTLED_FOR`] ago.
    async fn reap_run(&self, run: RunId, now: Timestamp) -> Result<Option<bool>, StateError> {
        let Some(record) = self.state.run(run).await? else { return Ok(None) };
        let since = record.state.completed_at();
        if !record.spec.uses_callers_keys() || since.is_none_or(|since| now < since.plus(SETTLED_FOR)) {
            return Ok(None);
        }
        if !self.credentials.has(run).await? {
            return Ok(Some(false));
        }
        // Deletes only the key of this generation: a run requeued at this moment has a new one.
        self.credentials.delete_up_to_generation(run, record.generation).await?;
        tracing::error!(run.id = %run, "The key of run {run} was left over and is removed now");
        Ok(Some(true))
    }
}
