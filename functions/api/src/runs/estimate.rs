//! Estimated start and end times of queued runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_domain::RunStatus;
use bench_state::{RunFilter, RunWithBenchmarks};
use bench_web::ApiError;
use bench_web::views::RunView;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::Api;
use crate::cache::places::Places;
use crate::context::held;
use crate::runs::view::unplaced_view;

/// Time for which an estimate is cached.
const GOOD_FOR: Duration = Duration::from_secs(2);
/// Maximum number of open runs per status to read.
const OPEN_RUNS_MAX: u64 = 300;
/// Number of finished runs that the estimate of the time per item uses.
const PAST_RUNS: u64 = 20;
const READS_AT_ONCE: usize = 16;

/// Returns the view of a run, with its position in the queue.
///
/// # Errors
/// When the run's counters can't be read.
pub async fn run_view(api: &Api, found: &RunWithBenchmarks) -> Result<RunView, ApiError> {
    let view = unplaced_view(api, found).await?;
    if view.status != RunStatus::Queued {
        return Ok(view);
    }
    let place = api.places().await?.place(view.id);
    Ok(view.placed(place))
}

impl Api {
    /// Returns the estimate, recomputed if it is older than two seconds.
    pub(crate) async fn places(&self) -> Result<Arc<Places>, ApiError> {
        let kept = held(&self.places).clone();
        if let Some((at, schedule)) = kept
            && at.elapsed() < GOOD_FOR
        {
            return Ok(schedule);
        }
        let mut views = Vec::new();
        for (status, limit) in [
            (RunStatus::Queued, OPEN_RUNS_MAX),
            (RunStatus::Running, OPEN_RUNS_MAX),
            (RunStatus::Succeeded, PAST_RUNS),
        ] {
            // Interrupted runs neither wait for a slot nor occupy one.
            views.extend(self.views_of(status, limit).await?.into_iter().filter(|view| !view.interrupted));
        }
        let schedule = Arc::new(Places::new(&views, self.config.queue_slots, bench_clock::now()));
        *held(&self.places) = Some((Instant::now(), Arc::clone(&schedule)));
        Ok(schedule)
    }

    async fn views_of(&self, status: RunStatus, limit: u64) -> Result<Vec<RunView>, ApiError> {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        let mut listing = self.state.list_runs(&filter, 0, limit).await?;
        if status == RunStatus::Queued && listing.total > limit {
            // The oldest runs start next, and the listing begins with the newest.
            listing = self.state.list_runs(&filter, listing.total - limit, limit).await?;
        }
        let read = |run| async move {
            match self.state.run_with_benchmarks(run).await? {
                Some(found) => unplaced_view(self, &found).await.map(Some),
                None => Ok(None),
            }
        };
        let views: Vec<Option<RunView>> =
            stream::iter(listing.runs.into_iter().map(read)).buffered(READS_AT_ONCE).try_collect().await?;
        Ok(views.into_iter().flatten().collect())
    }
}
