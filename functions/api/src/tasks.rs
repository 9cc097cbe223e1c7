//! `/api/tasks`, `/api/agents`, `/api/stats`: uploaded terminal tasks and custom agents, and their episodes.
//!
//! Paths, parameters and shapes are those of an earlier runner of such tasks, whose clients find here what they know. An
//! execution of a task is one of our runs, and a "run" of that interface is a sample of it, an episode.
//!
//! Tasks are visible to their owners and the operator only, since their archives contain tests and solutions.

mod agents;
mod archive;
mod episode;
pub(crate) mod execute;
mod list;
mod logs;
pub(crate) mod order;
mod params;
mod progress;
pub(crate) mod query_key;
mod receive;
mod remove;
mod results;
mod runs;
mod stats;
mod upload;
mod uploads;
mod views;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use utoipa::OpenApi;

use crate::Api;

/// Returns the routes of terminal tasks.
pub(crate) fn routes() -> Router<Arc<Api>> {
    // The handlers count the bytes of archives themselves. This also limits what is read ahead of them.
    let archives = Router::new()
        .route("/api/tasks", get(list::get_tasks).post(upload::post_task))
        .route("/api/tasks/check", post(upload::post_check))
        .route("/api/agents", get(agents::get_agents).post(agents::post_agent))
        .layer(DefaultBodyLimit::max(receive::BODY_BYTES_MAX));
    Router::new()
        .merge(archives)
        .route("/api/agents/custom", get(agents::get_custom_agents))
        .route(
            "/api/agents/custom/{agent_id}",
            get(agents::get_custom_agent).delete(agents::delete_custom_agent),
        )
        .route("/api/agents/custom/{agent_id}/archive", get(archive::get_agent_archive))
        .route("/api/stats", get(stats::get_stats))
        .route("/api/tasks/uploads", post(uploads::post_upload))
        .route("/api/tasks/{task_id}", get(list::get_task).delete(remove::delete_task))
        .route("/api/tasks/{task_id}/archive", get(archive::get_archive))
        .route("/api/tasks/{task_id}/start", post(execute::post_start))
        .route("/api/tasks/{task_id}/retry", post(execute::post_retry))
        .route("/api/tasks/{task_id}/execute-async", post(execute::post_execute_async))
        .route("/api/tasks/{task_id}/execute-one", post(execute::post_execute_one))
        .route("/api/tasks/{task_id}/runs", get(runs::get_runs))
        .route("/api/tasks/{task_id}/runs/{run_id}", get(runs::get_run))
        .route("/api/tasks/{task_id}/runs/{run_id}/logs", get(logs::get_logs))
        .route("/api/tasks/{task_id}/runs/{run_id}/execute", post(runs::post_execute))
        .route("/api/tasks/{task_id}/runs/{run_id}/execute-async", post(runs::post_execute_async))
}

/// OpenAPI description of these routes.
#[derive(OpenApi)]
#[openapi(paths(
    agents::get_agents,
    agents::post_agent,
    agents::get_custom_agents,
    agents::get_custom_agent,
    agents::delete_custom_agent,
    archive::get_agent_archive,
    stats::get_stats,
    list::get_tasks,
    upload::post_task,
    upload::post_check,
    uploads::post_upload,
    list::get_task,
    remove::delete_task,
    archive::get_archive,
    execute::post_start,
    execute::post_retry,
    execute::post_execute_async,
    execute::post_execute_one,
    runs::get_runs,
    runs::get_run,
    logs::get_logs,
    runs::post_execute,
    runs::post_execute_async
))]
pub(crate) struct Document;
