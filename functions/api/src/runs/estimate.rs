//! Estimated start and end times of queued runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_domain::RunStatus;
use bench_state::{RunFilter, RunWithBenchmarks};
use bench_web::ApiError;
use bench_web::views::RunView;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::Api;
use crate::cache::queue_positions::QueuePositions;
use crate::context::lock;
use crate::runs::view::view_without_position;
use crate::runs::viewer::Viewer;

/// Time for which an estimate is cached.
const CACHED_FOR: Duration = Duration::from_secs(2);
/// Maximum number of open runs per status to read.
const OPEN_RUNS_MAX: u64 = 300;
/// Number of finished runs that the estimate of the time per item uses.
const PAST_RUNS: u64 = 20;
const CONCURRENT_READS: usize = 16;

/// Returns the view of a run for a caller, with its position in the queue.
///
/// # Errors
/// When the run's counters can't be read.
pub async fn run_view(api: &Api, found: &RunWithBenchmarks, viewer: &Viewer) -> Result<RunView, ApiError> {
    let is_mine = viewer.caller.is_own(&found.run.spec.owner);
    let view = view_without_position(api, found).await?.with_can(viewer.can(api, found), is_mine);
    if view.status != RunStatus::Queued {
        return Ok(view);
    }
    let position = api.queue_positions().await?.position(view.id);
    Ok(view.with_queue_position(position))
}

impl Api {
    /// Returns the estimate, recomputed if it is older than two seconds.
    pub(crate) async fn queue_positions(&self) -> Result<Arc<QueuePositions>, ApiError> {
        let cached = lock(&self.queue_positions).clone();
        if let Some((at, positions)) = cached
            && at.elapsed() < CACHED_FOR
        {
            return Ok(positions);
        }
        let mut views = Vec::new();
        for (status, limit) in [
            (RunStatus::Queued, OPEN_RUNS_MAX),
            (RunStatus::Running, OPEN_RUNS_MAX),
            (RunStatus::Succeeded, PAST_RUNS),
        ] {
            // Interrupted runs neither wait for a slot nor occupy one.
            views.extend(
                self.views_with_status(status, limit).await?.into_iter().filter(|view| !view.interrupted),
            );
        }
        let positions = Arc::new(QueuePositions::new(&views, self.config.queue_slots, bench_clock::now()));
        *lock(&self.queue_positions) = Some((Instant::now(), Arc::clone(&positions)));
        Ok(positions)
    }

    async fn views_with_status(&self, status: RunStatus, limit: u64) -> Result<Vec<RunView>, ApiError> {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        let mut listing = self.state.list_runs(&filter, 0, limit).await?;
        if status == RunStatus::Queued && listing.total > limit {
            // The oldest runs start next, and the listing begins with the newest.
            listing = self.state.list_runs(&filter, listing.total - limit, limit).await?;
        }
        let read = |run| async move {
            match self.state.run_with_benchmarks(run).await? {
                Some(found) => view_without_position(self, &found).await.map(Some),
                None => Ok(None),
            }
        };
        let views: Vec<Option<RunView>> =
            stream::iter(listing.runs.into_iter().map(read)).buffered(CONCURRENT_READS).try_collect().await?;
        Ok(views.into_iter().flatten().collect())
    }
}
