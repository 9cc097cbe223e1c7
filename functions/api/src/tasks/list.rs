//! Lists of tasks, and single tasks.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_state::TaskRecord;
use bench_web::error::ErrorBody;
use bench_web::size::fitting;
use bench_web::{ApiError, Caller, Identity, Path};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::Uri;

use super::episode::task_episodes;
use super::params::Params;
use super::progress::Progress;
use super::results::results;
use super::views::{TaskDetailView, TaskView};
use crate::Api;
use crate::runs::tasks::{visible_task, visible_tasks};

/// Number of tasks whose episodes are counted at once.
const TASKS_AT_ONCE: usize = 16;
const STATUS_CHARS_MAX: usize = 100;

/// Lists tasks, newest first.
///
/// A caller sees its own tasks, the operator all. Tasks that were stored for a run, as `bench run --task` does, are left
/// out unless `all` is true.
#[utoipa::path(
    get, path = "/api/tasks", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("skip" = Option<u64>, Query, description = "Number of tasks to skip, default 0"),
        ("limit" = Option<u64>, Query, description = "Number of tasks, 1 to 100, default 50"),
        ("status" = Option<String>, Query, description = "Only tasks with this status"),
        ("all" = Option<bool>, Query, description = "True to list also tasks that were stored for a run (`listed` is false)"),
        ("mine" = Option<bool>, Query, description = "True for only the caller's own tasks; admins see those of all callers otherwise"),
    ),
    responses((status = 200, body = Vec<TaskView>), (status = 422, body = ErrorBody)),
)]
pub(crate) async fn get_tasks(
    State(api): State<Arc<Api>>,
    uri: Uri,
    identity: Identity,
) -> Result<Json<Vec<TaskView>>, ApiError> {
    let mut params = Params::new(&[], &uri);
    let skip = params.query.integer("skip", 0, 0, u64::MAX);
    let limit = params.query.integer("limit", 50, 1, 100);
    let status = params.query.maybe_text("status", STATUS_CHARS_MAX);
    let all = params.query.flag("all");
    let mine = params.query.flag("mine");
    params.finish()?;
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (skip, limit) = (count(skip), count(limit));
    let mut tasks = visible_tasks(&api, identity.reader()).await?;
    tasks.retain(|task| all || !task.facts.unlisted);
    tasks.retain(|task| !mine || identity.reader().is_own(&task.facts.owner));
    let mut views = match status {
        None => views(&api, tasks.into_iter().skip(skip).take(limit).collect(), identity.reader()).await?,
        Some(status) => with_status(&api, tasks, identity.reader(), &status, skip, limit).await?,
    };
    views.truncate(fitting(&views));
    Ok(Json(views))
}

/// Counts tasks until a page is full.
async fn with_status(
    api: &Api,
    tasks: Vec<TaskRecord>,
    caller: &Caller,
    status: &str,
    skip: usize,
    limit: usize,
) -> Result<Vec<TaskView>, ApiError> {
    let (mut page, mut skipped) = (Vec::new(), 0);
    for chunk in tasks.chunks(TASKS_AT_ONCE) {
        for view in
            views(api, chunk.to_vec(), caller).await?.into_iter().filter(|view| view.has_status(status))
        {
            if skipped < skip {
                skipped += 1;
            } else if page.len() < limit {
                page.push(view);
            }
        }
        if page.len() == limit {
            break;
        }
    }
    Ok(page)
}

async fn views(api: &Api, tasks: Vec<TaskRecord>, caller: &Caller) -> Result<Vec<TaskView>, ApiError> {
    let read = |task: TaskRecord| async move {
        let (progress, results) = (Progress::of(api, &task, caller).await?, results(api, &task).await?);
        Ok::<_, ApiError>(TaskView::new(&task, &progress, results))
    };
    let reads: Vec<_> = tasks.into_iter().map(read).collect();
    stream::iter(reads).buffered(TASKS_AT_ONCE).try_collect().await
}

/// Returns a task with its episodes.
#[utoipa::path(
    get, path = "/api/tasks/{task_id}", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("task_id" = u64, Path, description = "Id of the task")),
    responses(
        (status = 200, body = TaskDetailView),
        (status = 404, body = ErrorBody, description = "There is no such task, or it belongs to another caller"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn get_task(
    State(api): State<Arc<Api>>,
    Path(task): Path<String>,
    uri: Uri,
    identity: Identity,
) -> Result<Json<TaskDetailView>, ApiError> {
    let mut params = Params::new(&[("task_id", &task)], &uri);
    let task = params.id("task_id");
    params.finish()?;
    let task = visible_task(&api, &identity, task).await?;
    let (progress, runs) = task_episodes(&api, &task, identity.reader()).await?;
    let results = results(&api, &task).await?;
    Ok(Json(TaskDetailView { task: TaskView::new(&task, &progress, results), runs }))
}
