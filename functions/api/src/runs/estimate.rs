//! When queued runs are expected to start and to end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_domain::eta::{EtaRun, queue_schedule};
use bench_domain::{RunId, RunStatus, Timestamp};
use bench_state::RunFilter;
use bench_web::ApiError;
use bench_web::views::{Place, RunView};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::Api;
use crate::context::held;
use crate::runs::unplaced_view;

/// How long an estimate stays good.
const GOOD_FOR: Duration = Duration::from_secs(2);
/// Open runs that are looked at, by status.
const OPEN_RUNS_MAX: u64 = 300;
/// Runs that are over and tell how long items take.
const PAST_RUNS: u64 = 20;
const READS_AT_ONCE: usize = 16;

/// The places of queued runs.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    places: HashMap<RunId, Place>,
}

impl Schedule {
    pub(crate) fn place(&self, run: RunId) -> Option<Place> {
        self.places.get(&run).copied()
    }

    fn new(views: &[RunView], slots: usize, now: Timestamp) -> Self {
        let ids: Vec<String> = views.iter().map(|view| view.id.to_string()).collect();
        let runs: Vec<EtaRun<'_>> =
            views.iter().zip(&ids).map(|(view, id)| EtaRun { id, ..view.eta() }).collect();
        let entries = queue_schedule(&runs, slots, now.as_micros());
        let places = entries.into_iter().filter_map(|entry| {
            let place = Place {
                queue_position: entry.queue_position,
                start_delay_seconds: entry.start_delay_seconds,
                eta_seconds: entry.eta_seconds,
            };
            Some((entry.run_id.parse().ok()?, place))
        });
        Self { places: places.collect() }
    }
}

impl Api {
    /// The estimate, made anew when it is older than two seconds.
    pub(crate) async fn schedule(&self) -> Result<Arc<Schedule>, ApiError> {
        let kept = held(&self.schedule).clone();
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
            // Interrupted runs neither wait for a turn nor take one.
            views.extend(self.views_of(status, limit).await?.into_iter().filter(|view| !view.interrupted));
        }
        let schedule = Arc::new(Schedule::new(&views, self.config.queue_slots, Timestamp::now()));
        *held(&self.schedule) = Some((Instant::now(), Arc::clone(&schedule)));
        Ok(schedule)
    }

    async fn views_of(&self, status: RunStatus, limit: u64) -> Result<Vec<RunView>, ApiError> {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        let mut listing = self.state.list_runs(&filter, 0, limit).await?;
        if status == RunStatus::Queued && listing.total > limit {
            // The oldest are the next ones, and the list begins with the newest.
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
