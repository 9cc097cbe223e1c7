//! Removal of tasks.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_domain::{Code, RunId};
use bench_state::ScheduleRecord;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Identity, Path};
use http::Uri;

use super::params::Params;
use super::views::MessageView;
use crate::Api;
use crate::runs::lifecycle::cancel_run;
use crate::runs::tasks::{task_error, task_not_found};

/// Removes a task and cancels its runs.
///
/// Runs stay in the list of runs, with the results that they have. An open run that also has episodes of other tasks
/// isn't canceled; the task can be removed once it is over.
#[utoipa::path(
    delete, path = "/api/tasks/{task_id}", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("task_id" = u64, Path, description = "Id of the task")),
    responses(
        (status = 200, body = MessageView),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "There is no such task, or it belongs to another caller"),
        (status = 409, body = ErrorBody, description = "An open run also has episodes of other tasks, or a schedule runs the task"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn delete_task(
    State(api): State<Arc<Api>>,
    Path(task): Path<String>,
    uri: Uri,
    identity: Identity,
) -> Result<Json<MessageView>, ApiError> {
    let mut params = Params::new(&[("task_id", &task)], &uri);
    let id = params.id("task_id");
    params.finish()?;
    let caller = identity.caller()?;
    // A task whose removal was interrupted is hidden, and its removal continues here.
    let task = api.state.task(id).await?.filter(|task| caller.owns(&task.facts.owner));
    let task = task.ok_or_else(task_not_found)?;
    refuse_scheduled(&api, id).await?;
    let mut runs = Vec::new();
    for order in api.state.task_orders(id).await? {
        if order.tasks > 1 && is_open(&api, order.run).await? {
            return Err(ApiError::new(
                Code::TaskInUse,
                format!(
                    "run {} also has episodes of other tasks; cancel it, or remove the task when it is over",
                    order.run
                ),
            ));
        }
        runs.push(order.run);
    }
    api.state.hide_task(id).await?;
    // Nothing can be ordered any more, so the list is complete.
    runs.extend(api.state.all_task_runs(id).await?);
    for run in runs {
        cancel_if_open(&api, run).await?;
    }
    api.tasks.remove(&task).await.map_err(task_error)?;
    Ok(Json(MessageView { message: "Task deleted successfully".to_owned() }))
}

/// Refuses the removal of a task that a schedule runs.
async fn refuse_scheduled(api: &Api, task: u64) -> Result<(), ApiError> {
    let schedules = api.state.list_schedules().await?;
    let runs_it = |record: &&ScheduleRecord| record.schedule.tasks.iter().any(|other| other.id == task);
    match schedules.iter().find(runs_it) {
        Some(record) => Err(ApiError::new(
            Code::TaskInUse,
            format!(
                "the schedule `{}` runs this task; change the schedule's `tasks`, or delete it, before you remove the task",
                record.schedule.name
            ),
        )),
        None => Ok(()),
    }
}

async fn is_open(api: &Api, run: RunId) -> Result<bool, ApiError> {
    Ok(api.state.run(run).await?.is_some_and(|run| run.state.status().is_open()))
}

/// Cancels a run, unless it is over or gone.
pub(super) async fn cancel_if_open(api: &Api, run: RunId) -> Result<(), ApiError> {
    if !is_open(api, run).await? {
        return Ok(());
    }
    match cancel_run(api, run).await {
        // It ended in the meantime.
        Err(error) if error.code() == Code::RunNotCancelable => Ok(()),
        other => other,
    }
}
