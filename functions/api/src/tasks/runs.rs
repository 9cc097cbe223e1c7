//! Single episodes of a task.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Request, State};
use bench_domain::Code;
use bench_state::{SampleRecord, TaskRecord};
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Identity, Path};
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::episode::{self, PENDING, RUNNING};
use super::logs::all_logs;
use super::params::Params;
use super::progress::LoadedRun;
use super::views::{EpisodeResultView, EpisodeView};
use crate::Api;
use crate::runs::tasks::{uploader, visible_task};

/// Interval at which a waiting request looks at its episode.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Maximum time that a request waits where responses have 29 seconds.
const SHORT_WAIT: Duration = Duration::from_secs(20);

/// Confirmation of an episode that is queued.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EpisodeQueued)]
pub(crate) struct QueuedView {
    message: &'static str,
    task_id: u64,
    run_id: u64,
    /// Always `queued`.
    status: &'static str,
    /// Path of the episode.
    poll_url: String,
}

/// An episode with its records.
pub(crate) struct FoundEpisode {
    pub(crate) task: TaskRecord,
    pub(crate) loaded: LoadedRun,
    pub(crate) index: u32,
    pub(crate) view: EpisodeView,
    pub(crate) sample: Option<SampleRecord>,
}

fn run_not_found() -> ApiError {
    ApiError::new(Code::RunNotFound, "Run not found").hint(
        "check both ids: `GET /api/tasks` lists tasks, and `GET /api/tasks/TASK/runs` the episodes of one",
    )
}

/// Finds an episode by the ids in a path.
///
/// # Errors
/// 404 `Run not found`, also for an unknown task and for another caller's private run.
pub(crate) async fn find_episode(
    api: &Api,
    identity: &Identity,
    task: u64,
    id: u64,
) -> Result<FoundEpisode, ApiError> {
    let task = visible_task(api, identity, task).await.map_err(|error| match error.code() {
        Code::TaskNotFound => run_not_found(),
        _ => error,
    })?;
    let runs = api.state.task_runs(&task).await?;
    let entry = runs
        .into_iter()
        .find(|entry| (entry.first_id..entry.first_id.saturating_add(entry.samples.into())).contains(&id));
    let entry = entry.ok_or_else(run_not_found)?;
    let index = u32::try_from(id - entry.first_id).map_err(ApiError::internal)?;
    let loaded = LoadedRun::load(api, entry).await?;
    if !loaded.is_visible_to(identity.reader()) {
        return Err(run_not_found());
    }
    let (view, sample) = episode::one_episode(api, &task, &loaded, index).await?;
    Ok(FoundEpisode { task, loaded, index, view, sample })
}

/// Waits until an episode is over, at most for this time, and returns it as it is then.
pub(crate) async fn wait_for_episode(
    api: &Api,
    mut found: FoundEpisode,
    timeout_seconds: u64,
) -> Result<EpisodeView, ApiError> {
    let wait = Duration::from_secs(timeout_seconds);
    let wait = if api.config.streaming { wait } else { wait.min(SHORT_WAIT) };
    let start = Instant::now();
    while [PENDING, RUNNING].contains(&found.view.status) && start.elapsed() < wait {
        tokio::time::sleep(LOOK_EVERY).await;
        found.loaded = LoadedRun::load(api, found.loaded.entry).await?;
        found.view = episode::one_episode(api, &found.task, &found.loaded, found.index).await?.0;
    }
    Ok(found.view)
}

/// Lists the episodes of a task by number, without those of other callers' private runs.
#[utoipa::path(
    get, path = "/api/tasks/{task_id}/runs", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("task_id" = u64, Path, description = "Id of the task")),
    responses(
        (status = 200, body = Vec<EpisodeView>),
        (status = 404, body = ErrorBody, description = "There is no such task, or it belongs to another caller"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn get_runs(
    State(api): State<Arc<Api>>,
    Path(task): Path<String>,
    uri: Uri,
    identity: Identity,
) -> Result<Json<Vec<EpisodeView>>, ApiError> {
    let mut params = Params::new(&[("task_id", &task)], &uri);
    let task = params.id("task_id");
    params.finish()?;
    let task = visible_task(&api, &identity, task).await?;
    Ok(Json(episode::task_episodes(&api, &task, identity.reader()).await?.1))
}

/// Returns an episode of a task.
#[utoipa::path(
    get, path = "/api/tasks/{task_id}/runs/{run_id}", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("task_id" = u64, Path, description = "Id of the task"), ("run_id" = u64, Path, description = "Id of the episode")),
    responses(
        (status = 200, body = EpisodeView),
        (status = 404, body = ErrorBody, description = "There is no such episode, or it belongs to another caller"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn get_run(
    State(api): State<Arc<Api>>,
    Path((task, run)): Path<(String, String)>,
    uri: Uri,
    identity: Identity,
) -> Result<Json<EpisodeView>, ApiError> {
    let mut params = Params::new(&[("task_id", &task), ("run_id", &run)], &uri);
    let (task, run) = (params.id("task_id"), params.id("run_id"));
    params.finish()?;
    let mut found = find_episode(&api, &identity, task, run).await?;
    found.view.logs = all_logs(&api, &found).await?.map(|(text, _)| text);
    Ok(Json(found.view))
}

/// Waits for a pending episode and returns its result.
///
/// Episodes are queued when they are ordered, so nothing is executed twice. If the time is over first, the response has
/// the status `pending` or `running`.
#[utoipa::path(
    post, path = "/api/tasks/{task_id}/runs/{run_id}/execute", tag = "tasks",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("task_id" = u64, Path, description = "Id of the task"),
        ("run_id" = u64, Path, description = "Id of the episode"),
        ("timeout_seconds" = Option<u64>, Query, description = "Maximum time to wait, 1 to 86400, default 1200; deployed, at most 20 seconds"),
    ),
    responses(
        (status = 200, body = EpisodeResultView),
        (status = 400, body = ErrorBody, description = "The episode was started already"),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn post_execute(
    State(api): State<Arc<Api>>,
    Path((task, run)): Path<(String, String)>,
    request: Request,
) -> Result<Json<EpisodeResultView>, ApiError> {
    let (found, timeout) = pending_episode(&api, &task, &run, request).await?;
    let view = wait_for_episode(&api, found, timeout).await?;
    Ok(Json(EpisodeResultView::new(&view)))
}

/// Confirms that a pending episode is queued.
#[utoipa::path(
    post, path = "/api/tasks/{task_id}/runs/{run_id}/execute-async", tag = "tasks",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("task_id" = u64, Path, description = "Id of the task"),
        ("run_id" = u64, Path, description = "Id of the episode"),
        ("timeout_seconds" = Option<u64>, Query, description = "Has no effect: the task's own limits apply"),
    ),
    responses(
        (status = 200, body = QueuedView),
        (status = 400, body = ErrorBody, description = "The episode was started already"),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn post_execute_async(
    State(api): State<Arc<Api>>,
    Path((task, run)): Path<(String, String)>,
    request: Request,
) -> Result<Json<QueuedView>, ApiError> {
    let (found, _) = pending_episode(&api, &task, &run, request).await?;
    let (task_id, run_id) = (found.task.id, found.view.id);
    let poll_url = format!("/api/tasks/{task_id}/runs/{run_id}");
    Ok(Json(QueuedView { message: "Run queued", task_id, run_id, status: "queued", poll_url }))
}

async fn pending_episode(
    api: &Api,
    task: &str,
    run: &str,
    request: Request,
) -> Result<(FoundEpisode, u64), ApiError> {
    let (parts, _) = request.into_parts();
    let mut params = Params::new(&[("task_id", task), ("run_id", run)], &parts.uri);
    let (task, run, timeout) = (params.id("task_id"), params.id("run_id"), params.timeout_seconds());
    params.finish()?;
    uploader(api, &parts).await?;
    // Here, an unknown task has its own message.
    visible_task(api, &Identity::of(&parts), task).await?;
    let found = find_episode(api, &Identity::of(&parts), task, run).await?;
    match found.view.status {
        PENDING => Ok((found, timeout)),
        status => {
            let (task, run) = (found.task.id, found.view.id);
            let hint = match status {
                RUNNING => format!("wait for it: `GET /api/tasks/{task}/runs/{run}` shows its state"),
                _ => format!(
                    "`GET /api/tasks/{task}/runs/{run}` has its result; `POST /api/tasks/{task}/execute-one` orders \
                     one more episode"
                ),
            };
            Err(ApiError::new(Code::TaskStarted, format!("Run is already {status}")).hint(hint))
        }
    }
}
