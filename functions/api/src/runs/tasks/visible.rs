//! Who may see and use tasks.

use bench_domain::Code;
use bench_runs::Orderer;
use bench_state::TaskRecord;
use bench_tasks::TaskError;
use bench_web::{ApiError, Caller, Identity};
use http::request::Parts;

use crate::Api;
use crate::refusal::refusal;
use crate::runs::admission;

pub(crate) fn task_not_found() -> ApiError {
    ApiError::new(Code::TaskNotFound, "Task not found")
        .hint("check the id: `GET /api/tasks?all=true` lists the tasks that this caller may see")
}

/// Returns a task that the sender of a request may see. Tasks of others look as if they didn't exist.
///
/// # Errors
/// 404 for all others.
pub(crate) async fn visible_task(api: &Api, identity: &Identity, id: u64) -> Result<TaskRecord, ApiError> {
    let caller = identity.reader();
    let task = api.tasks.get(id).await.map_err(task_error)?;
    task.filter(|task| is_visible(caller, task)).ok_or_else(task_not_found)
}

/// Returns all tasks that a caller may see, newest first.
pub(crate) async fn visible_tasks(api: &Api, caller: &Caller) -> Result<Vec<TaskRecord>, ApiError> {
    let mut tasks = api.tasks.list().await.map_err(task_error)?;
    tasks.retain(|task| is_visible(caller, task));
    Ok(tasks)
}

fn is_visible(caller: &Caller, task: &TaskRecord) -> bool {
    caller.owns(&task.facts.owner)
}

/// Identifies a caller who may upload and order tasks.
///
/// # Errors
/// 401 without credentials, 403 for callers without the permission `tasks`.
pub(crate) async fn uploader(api: &Api, parts: &Parts) -> Result<Orderer, ApiError> {
    let orderer = admission::orderer(api, parts).await?;
    let checked = orderer.standing.check_uploads(&api.config.runs.policy);
    checked.map_err(|refused| refusal(refused.into()))?;
    Ok(orderer)
}

/// Converts an error of the store of tasks.
pub(crate) fn task_error(error: TaskError) -> ApiError {
    match error {
        TaskError::Refused(refusal) => {
            let (file, line) = match &refusal.place {
                Some(place) => (Some(place.file.clone()), place.line),
                None => (None, None),
            };
            let problem = bench_web::AdmissionRefusal { code: refusal.code(), file, line };
            ApiError::new(Code::TaskRefused, refusal.to_string()).refused_for(problem)
        }
        error @ TaskError::RemovalInProgress => ApiError::new(Code::ConcurrentChange, error.to_string()),
        error => ApiError::internal(error),
    }
}
