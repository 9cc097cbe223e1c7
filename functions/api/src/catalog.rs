//! Benchmarks with their programming tasks, and models, that can be run.

pub(crate) mod benchmarks;
pub(crate) mod code_tasks;
pub(crate) mod models;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use utoipa::OpenApi;

use crate::Api;

/// Returns the routes of the catalog.
pub(crate) fn routes() -> Router<Arc<Api>> {
    Router::new()
        .route("/api/models", get(models::get_models))
        .route("/api/admin/sync-models", post(models::post_sync))
        .route("/api/benchmarks", get(benchmarks::get_benchmarks))
        .route("/api/benchmarks/{benchmark_name}", get(benchmarks::get_benchmark))
        .route("/api/benchmarks/{benchmark_name}/tasks", get(code_tasks::get_tasks))
        .route("/api/benchmarks/{benchmark_name}/tasks/{task_id}", get(code_tasks::get_task))
}

/// OpenAPI description of these routes.
#[derive(OpenApi)]
#[openapi(paths(
    models::get_models,
    models::post_sync,
    benchmarks::get_benchmarks,
    benchmarks::get_benchmark,
    code_tasks::get_tasks,
    code_tasks::get_task
))]
pub(crate) struct Document;
