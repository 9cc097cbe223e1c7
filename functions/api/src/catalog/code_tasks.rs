//! Programming tasks of benchmarks.

use axum::Json;
use bench_domain::Code;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Path};

use super::benchmarks::find;
use crate::views::code_task::{CodeTaskDetailsView, CodeTasksView, code_task, code_tasks};

/// Lists the programming tasks of a benchmark.
///
/// Each with the proof that it is admitted. The list is empty for benchmarks whose items aren't programming tasks.
#[utoipa::path(
    get, path = "/api/benchmarks/{benchmark_name}/tasks", tag = "catalog",
    params(("benchmark_name" = String, Path, description = "Name of the benchmark, such as `code_lab`")),
    responses((status = 200, body = CodeTasksView), (status = 404, body = ErrorBody, description = "The benchmark doesn't exist")),
)]
pub(crate) async fn get_tasks(Path(name): Path<String>) -> Result<Json<CodeTasksView>, ApiError> {
    Ok(Json(code_tasks(find(&name)?)))
}

/// Returns a programming task with its instructions and the files of its project.
///
/// These are what a model gets. Tests and solutions aren't part of it.
#[utoipa::path(
    get, path = "/api/benchmarks/{benchmark_name}/tasks/{task_id}", tag = "catalog",
    params(
        ("benchmark_name" = String, Path, description = "Name of the benchmark, such as `code_lab`"),
        ("task_id" = String, Path, description = "Id of the task, as listed"),
    ),
    responses(
        (status = 200, body = CodeTaskDetailsView),
        (status = 404, body = ErrorBody, description = "The benchmark or the task doesn't exist"),
    ),
)]
pub(crate) async fn get_task(
    Path((name, id)): Path<(String, String)>,
) -> Result<Json<CodeTaskDetailsView>, ApiError> {
    let task = code_task(find(&name)?, &id);
    task.map(Json).ok_or_else(|| {
        ApiError::new(Code::TaskNotFound, "task not found; `GET /api/benchmarks/NAME/tasks` lists them")
    })
}
