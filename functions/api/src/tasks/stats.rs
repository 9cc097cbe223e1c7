//! Counts over all tasks of a caller.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use bench_state::TaskRecord;
use bench_web::{ApiError, Caller, Identity};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::progress::Progress;
use super::results::results;
use crate::Api;
use crate::cache::tasks::{AllOrdersView, EpisodeCounts, StatsView, TaskCounts};
use crate::context::lock;
use crate::runs::tasks::visible_tasks;

/// Time for which the counts of a caller are cached.
const CACHED_FOR: Duration = Duration::from_secs(2);
const TASKS_AT_ONCE: usize = 16;

/// Counts the tasks that lists show to the caller, and their episodes, by status.
#[utoipa::path(
    get, path = "/api/stats", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    responses((status = 200, body = StatsView)),
)]
pub(crate) async fn get_stats(
    State(api): State<Arc<Api>>,
    identity: Identity,
) -> Result<Json<StatsView>, ApiError> {
    let caller = identity.reader().clone();
    let cached = lock(&api.task_stats).clone();
    if let Some((at, of, stats)) = cached
        && at.elapsed() < CACHED_FOR
        && of == caller
    {
        return Ok(Json(stats));
    }
    let mut tasks = visible_tasks(&api, &caller).await?;
    tasks.retain(|task| !task.facts.unlisted);
    let reads: Vec<_> = tasks.into_iter().map(|task| counts(&api, task, &caller)).collect();
    let all: Vec<StatsView> = stream::iter(reads).buffered(TASKS_AT_ONCE).try_collect().await?;
    let stats = all.into_iter().fold(StatsView::default(), StatsView::plus);
    *lock(&api.task_stats) = Some((Instant::now(), caller, stats));
    Ok(Json(stats))
}

async fn counts(api: &Api, task: TaskRecord, caller: &Caller) -> Result<StatsView, ApiError> {
    let (progress, results) = (Progress::of(api, &task, caller).await?, results(api, &task).await?);
    Ok(StatsView {
        tasks: TaskCounts::one(progress.status()),
        runs: EpisodeCounts {
            total: progress.total,
            passed: progress.passed,
            failed: progress.graded_below,
            error: progress.errors(),
        },
        results: AllOrdersView {
            tasks: TaskCounts::one(results.status),
            episodes: EpisodeCounts {
                total: results.episodes,
                passed: results.passed,
                failed: results.failed,
                error: results.errors,
            },
        },
    })
}
