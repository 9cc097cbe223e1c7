//! Tasks of orders of runs.

use bench_benchmarks::{OptionError, task_variables};
use bench_domain::{Agent, BenchmarkName, Code};
use bench_runs::order::OrderWarning;
use bench_runs::{Order, Orderer, RunError, TERMINAL_TASKS, UnknownChoice};
use bench_state::TaskRecord;
use bench_tasks::{TaskError, TaskReference, find_task};
use bench_web::{ApiError, Identity};

use super::dataset::{benchmark, import};
use super::fields::OrderedTasks;
use super::visible::{task_error, visible_tasks};
use crate::Api;
use crate::refusal::refusal;

/// Returns the benchmarks of an order of tasks. With them, the permission for tasks replaces that for answers without a
/// model.
pub(crate) fn task_benchmarks() -> Vec<BenchmarkName> {
    TERMINAL_TASKS.parse().into_iter().collect()
}

/// Finds the tasks of an order among those that its sender may see, one for each content.
///
/// # Errors
/// 404 with the first reference that names no task.
pub(crate) async fn find_tasks(
    api: &Api,
    identity: &Identity,
    ordered: &OrderedTasks,
) -> Result<Vec<TaskRecord>, ApiError> {
    let mut tasks = visible_tasks(api, identity.reader()).await?;
    // The oldest upload of a content comes first.
    tasks.reverse();
    let mut found: Vec<TaskRecord> = Vec::with_capacity(ordered.tasks.len());
    for text in &ordered.tasks {
        let reference = TaskReference::parse(text);
        let task = reference.as_ref().and_then(|reference| find_task(&tasks, reference)).ok_or_else(|| {
            let shown: String = text.chars().filter(|c| !c.is_control()).take(80).collect();
            let problem = format!(
                "Task not found: `{shown}` is not the id, the content hash or the NAME@HASH12 of a task of yours; \
                 `GET /api/tasks?all=true` lists them"
            );
            ApiError::new(Code::TaskNotFound, problem)
        })?;
        if !found.iter().any(|other| other.facts.content_hash == task.facts.content_hash) {
            found.push(task.clone());
        }
    }
    Ok(found)
}

/// Sets the dataset of an order's tasks, and returns them.
///
/// # Errors
/// 403 for callers without the permission, 404 for an unknown task, 422 for a variable that no task asks for.
pub(crate) async fn select_tasks(
    api: &Api,
    identity: &Identity,
    orderer: &Orderer,
    order: &mut Order,
    ordered: &OrderedTasks,
) -> Result<Vec<TaskRecord>, ApiError> {
    let checked = orderer.standing.check_uploads(&api.config.runs.policy);
    checked.map_err(|refused| refusal(refused.into()))?;
    let tasks = find_tasks(api, identity, ordered).await?;
    warn_of_repeats(order, ordered, &tasks);
    check_variables(api, order, &tasks).await?;
    let name = TERMINAL_TASKS.parse().map_err(ApiError::internal)?;
    order.trusted.datasets.insert(name, import(api, &tasks).await?);
    Ok(tasks)
}

/// Names the tasks of an order that isn't placed as its items, so that their number is known.
///
/// # Errors
/// 404 for an unknown task, 422 for a variable that no task asks for.
pub(crate) async fn outline_tasks(
    api: &Api,
    identity: &Identity,
    order: &mut Order,
    ordered: &OrderedTasks,
) -> Result<(), ApiError> {
    benchmark()?;
    let tasks = find_tasks(api, identity, ordered).await?;
    warn_of_repeats(order, ordered, &tasks);
    check_variables(api, order, &tasks).await?;
    order.items = tasks.iter().map(bench_tasks::item_id).collect();
    Ok(())
}

/// Refuses a variable that none of the tasks asks for. A custom agent may ask for others.
async fn check_variables(api: &Api, order: &Order, tasks: &[TaskRecord]) -> Result<(), ApiError> {
    let of_tasks = order.options.iter().find(|(name, _)| name.trim().eq_ignore_ascii_case(TERMINAL_TASKS));
    let Some((name, options)) = of_tasks else { return Ok(()) };
    if Agent::in_place_of_model(&order.model) == Some(Agent::Custom) {
        return Ok(());
    }
    let given: Vec<String> = task_variables(Some(options)).into_keys().collect();
    api.tasks.check_variables(tasks, &given).await.map_err(|error| match error {
        TaskError::UnknownVariable { .. } => {
            let problem = UnknownChoice::Option(OptionError(error.to_string()));
            refusal(RunError::Options { name: name.clone(), problem })
        }
        error => task_error(error),
    })
}

fn warn_of_repeats(order: &mut Order, ordered: &OrderedTasks, found: &[TaskRecord]) {
    let repeats = ordered.tasks.len().saturating_sub(found.len());
    if repeats > 0 {
        let text = format!(
            "{repeats} of the tasks {} the same files as others, which are ordered once",
            if repeats == 1 { "has" } else { "have" }
        );
        order.warnings.push(OrderWarning { field: "tasks".to_owned(), text });
    }
}
