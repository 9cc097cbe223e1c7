//! Execution of tasks: orders of their episodes, and resets.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use bench_domain::Code;
use bench_runs::{CreatedRun, Orderer};
use bench_state::{TaskRecord, TaskRun, TaskRunWrite};
use bench_web::auth::provider_key;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Caller, Identity, Path};
use http::request::Parts;
use serde::Serialize;
use utoipa::ToSchema;

use super::order::order_episodes;
use super::params::Params;
use super::progress::{COMPLETED, Progress, RUNNING};
use super::remove::cancel_if_open;
use super::runs::{find_episode, wait_for_episode};
use super::views::{EpisodeResultView, TaskDoneView};
use crate::Api;
use crate::runs::order::idempotency_key;
use crate::runs::tasks::{task_not_found, uploader, visible_task};

/// Maximum number of episodes of a task between two resets.
const EPISODES_MAX: u32 = 1_000;
/// Maximum number of tries to give a new episode a number that others take, too.
const TRIES_MAX: u32 = 50;

/// Confirmation of an execution.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskQueued)]
pub(crate) struct QueuedView {
    message: String,
    task_id: u64,
    /// Number of episodes.
    runs_queued: u32,
    status: &'static str,
    /// Path of the task.
    poll_url: String,
}

/// Orders the episodes of a pending task.
#[utoipa::path(
    post, path = "/api/tasks/{task_id}/start", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("task_id" = u64, Path, description = "Id of the task"),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeating a request with the same key returns the same response"),
    ),
    responses(
        (status = 200, body = TaskDoneView),
        (status = 400, body = ErrorBody, description = "The task isn't pending, or the agent is unknown"),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 429, body = ErrorBody), (status = 501, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn post_start(
    State(api): State<Arc<Api>>,
    Path(task): Path<String>,
    request: Request,
) -> Result<Json<TaskDoneView>, ApiError> {
    let (parts, _) = request.into_parts();
    let mut params = Params::new(&[("task_id", &task)], &parts.uri);
    let task = params.id("task_id");
    params.finish()?;
    let task = execute(&api, &parts, task).await?;
    let message = format!("Task started with {} runs", task.facts.num_runs);
    Ok(Json(TaskDoneView { message, task_id: task.id }))
}

/// Orders the episodes of a pending task, and returns at once.
///
/// The episodes are one run. A key goes into `Authorization: Bearer`; agents that ask no model need none.
#[utoipa::path(
    post, path = "/api/tasks/{task_id}/execute-async", tag = "tasks",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("task_id" = u64, Path, description = "Id of the task"),
        ("timeout_seconds" = Option<u64>, Query, description = "Has no effect: the task's own limits apply. 1 to 86400"),
        ("openrouter_api_key" = Option<String>, Query, description = "Key of old clients, where the operator allows it. Send the header instead"),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeating a request with the same key returns the same response"),
    ),
    responses(
        (status = 200, body = QueuedView),
        (status = 400, body = ErrorBody, description = "The task isn't pending, the agent is unknown, or the key is in the address where the server takes none"),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 429, body = ErrorBody), (status = 501, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn post_execute_async(
    State(api): State<Arc<Api>>,
    Path(task): Path<String>,
    request: Request,
) -> Result<Json<QueuedView>, ApiError> {
    let (parts, _) = request.into_parts();
    let mut params = Params::new(&[("task_id", &task)], &parts.uri);
    let task = params.id("task_id");
    params.timeout_seconds();
    params.finish()?;
    let task = execute(&api, &parts, task).await?;
    let runs_queued = task.facts.num_runs;
    Ok(Json(QueuedView {
        message: format!("Task queued with {runs_queued} runs"),
        task_id: task.id,
        runs_queued,
        status: RUNNING,
        poll_url: format!("/api/tasks/{}", task.id),
    }))
}

/// Orders one more episode and waits for its result.
///
/// If the time is over first, the response has the status `pending` or `running`, and the episode continues.
#[utoipa::path(
    post, path = "/api/tasks/{task_id}/execute-one", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("task_id" = u64, Path, description = "Id of the task"),
        ("timeout_seconds" = Option<u64>, Query, description = "Maximum time to wait, 1 to 86400, default 1200; deployed, at most 20 seconds"),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeating a request with the same key waits for the same episode"),
    ),
    responses(
        (status = 200, body = EpisodeResultView),
        (status = 400, body = ErrorBody, description = "The agent is unknown"),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 429, body = ErrorBody), (status = 501, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn post_execute_one(
    State(api): State<Arc<Api>>,
    Path(task): Path<String>,
    request: Request,
) -> Result<Json<EpisodeResultView>, ApiError> {
    let (parts, _) = request.into_parts();
    let mut params = Params::new(&[("task_id", &task)], &parts.uri);
    let (task, timeout) = (params.id("task_id"), params.timeout_seconds());
    params.finish()?;
    let entry = execute_one(&api, &parts, task).await?;
    let found = find_episode(&api, &Identity::of(&parts), task, entry.first_id).await?;
    let view = wait_for_episode(&api, found, timeout).await?;
    Ok(Json(EpisodeResultView::new(&view)))
}

/// Makes a completed task pending again. Its runs stay in the list of runs.
#[utoipa::path(
    post, path = "/api/tasks/{task_id}/retry", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("task_id" = u64, Path, description = "Id of the task")),
    responses(
        (status = 200, body = TaskDoneView),
        (status = 400, body = ErrorBody, description = "The task isn't completed"),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn post_retry(
    State(api): State<Arc<Api>>,
    Path(task): Path<String>,
    request: Request,
) -> Result<Json<TaskDoneView>, ApiError> {
    let (parts, _) = request.into_parts();
    let mut params = Params::new(&[("task_id", &task)], &parts.uri);
    let task = params.id("task_id");
    params.finish()?;
    uploader(&api, &parts).await?;
    let task = visible_task(&api, &Identity::of(&parts), task).await?;
    let id = task.id;
    match Progress::of(&api, &task, Identity::of(&parts).reader()).await?.status() {
        COMPLETED => {}
        status => {
            let hint = match status {
                RUNNING => format!("wait until its episodes are over: `GET /api/tasks/{id}` shows them"),
                _ => {
                    format!("it is pending already: `POST /api/tasks/{id}/execute-async` orders its episodes")
                }
            };
            return Err(
                ApiError::new(Code::TaskNotOver, "Task must be completed or failed to retry").hint(hint)
            );
        }
    }
    if !api.state.next_task_round(&task).await? {
        return Err(ApiError::new(Code::ConcurrentChange, "another request changed the task; read it again"));
    }
    Ok(Json(TaskDoneView { message: "Task reset for retry".to_owned(), task_id: task.id }))
}

/// Identifies who orders episodes. A key that was sent pays for them, also that of the person at this machine and of admins.
async fn episode_orderer(api: &Api, parts: &Parts) -> Result<Orderer, ApiError> {
    let orderer = uploader(api, parts).await?;
    let api_key = match orderer.api_key {
        Some(key) => Some(key),
        None => provider_key(&parts.headers)?,
    };
    Ok(Orderer { api_key, ..orderer })
}

/// Orders all episodes of a pending task.
async fn execute(api: &Api, parts: &Parts, task: u64) -> Result<TaskRecord, ApiError> {
    let orderer = episode_orderer(api, parts).await?;
    let request_key = idempotency_key(&parts.headers)?;
    let task = visible_task(api, &Identity::of(parts), task).await?;
    if let Some(first) = api.state.task_runs(&task).await?.first() {
        if request_key.is_some() && first.request_key == request_key {
            return Ok(task);
        }
        return Err(already_started(api, &task).await);
    }
    let samples = task.facts.num_runs;
    // Clients can't send a key with spaces, so no order of theirs has this one.
    let key = format!("task {} round {} execution", task.id, task.round);
    let created = order_episodes(api, parts, orderer, &task, samples, key).await?;
    let entry = new_entry(api, &created, 1, samples, request_key).await?;
    match api.state.add_task_run(&task, &entry).await? {
        TaskRunWrite::Done => Ok(task),
        TaskRunWrite::Gone => {
            cancel_if_open(api, entry.run).await?;
            Err(task_not_found())
        }
        TaskRunWrite::Taken => {
            // Another request was faster. Usually both ordered the same run.
            let runs = api.state.task_runs(&task).await?;
            if !runs.iter().any(|other| other.run == entry.run) {
                cancel_if_open(api, entry.run).await?;
            }
            Err(already_started(api, &task).await)
        }
    }
}

/// Orders one more episode of a task.
async fn execute_one(api: &Api, parts: &Parts, task: u64) -> Result<TaskRun, ApiError> {
    let orderer = episode_orderer(api, parts).await?;
    let request_key = idempotency_key(&parts.headers)?;
    let task = visible_task(api, &Identity::of(parts), task).await?;
    let known = |runs: &[TaskRun]| {
        let same = runs.iter().find(|entry| request_key.is_some() && entry.request_key == request_key);
        same.cloned()
    };
    let mut runs = api.state.task_runs(&task).await?;
    if let Some(entry) = known(&runs) {
        return Ok(entry);
    }
    let name = request_key.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let key = format!("task {} round {} one {name}", task.id, task.round);
    let next = |runs: &[TaskRun]| runs.last().map_or(1, TaskRun::next_number);
    if next(&runs) > EPISODES_MAX {
        return Err(ApiError::new(
            Code::SamplesLimit,
            format!(
                "the task has {EPISODES_MAX} episodes, the maximum; `POST /api/tasks/{}/retry` resets it",
                task.id
            ),
        ));
    }
    let created = order_episodes(api, parts, orderer, &task, 1, key).await?;
    let mut entry = new_entry(api, &created, next(&runs), 1, request_key.clone()).await?;
    for _ in 0..TRIES_MAX {
        match api.state.add_task_run(&task, &entry).await? {
            TaskRunWrite::Done => return Ok(entry),
            TaskRunWrite::Gone => {
                cancel_if_open(api, entry.run).await?;
                return Err(task_not_found());
            }
            TaskRunWrite::Taken => {
                runs = api.state.task_runs(&task).await?;
                if let Some(entry) = known(&runs) {
                    return Ok(entry);
                }
                entry.first_number = next(&runs);
            }
        }
    }
    cancel_if_open(api, entry.run).await?;
    Err(ApiError::new(Code::ConcurrentChange, "other requests kept adding episodes to the task; try again"))
}

async fn new_entry(
    api: &Api,
    created: &CreatedRun,
    first_number: u32,
    samples: u32,
    request_key: Option<String>,
) -> Result<TaskRun, ApiError> {
    Ok(TaskRun {
        run: created.run.run.spec.id,
        first_id: api.state.take_episode_ids(samples).await?,
        first_number,
        samples,
        ordered_at: bench_clock::now(),
        request_key,
    })
}

/// Returns the error for a task that has episodes.
async fn already_started(api: &Api, task: &TaskRecord) -> ApiError {
    match Progress::of(api, task, &Caller::Anonymous).await {
        Ok(progress) => {
            let (id, status) = (task.id, progress.status());
            let hint = match status {
                COMPLETED => format!("`POST /api/tasks/{id}/retry` makes it pending again"),
                _ => format!("`POST /api/tasks/{id}/execute-one` orders one more episode"),
            };
            ApiError::new(Code::TaskStarted, format!("Task is already {status}")).hint(hint)
        }
        Err(error) => error,
    }
}
