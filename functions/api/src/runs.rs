//! `/api/runs`: order, read, label, cancel, delete and requeue runs.

pub(crate) mod admission;
mod bounds;
pub(crate) mod budget;
pub(crate) mod choices;
pub(crate) mod compare;
pub(crate) mod create;
pub(crate) mod details;
pub(crate) mod estimate;
pub(crate) mod events;
mod generation;
pub(crate) mod interrupt;
mod item_index;
pub(crate) mod item_log;
mod item_turns;
pub(crate) mod judge;
pub(crate) mod judgings;
pub(crate) mod labels;
pub(crate) mod lifecycle;
pub(crate) mod list;
mod one_sample;
pub(crate) mod order;
mod order_estimate;
pub(crate) mod page_item;
pub(crate) mod rejudge;
pub(crate) mod requests;
pub(crate) mod requeue;
mod sample_filter;
pub(crate) mod search;
mod stream_limit;
pub(crate) mod tasks;
mod view;
pub(crate) mod viewer;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use utoipa::OpenApi;

use crate::Api;

/// Returns the routes of runs.
pub(crate) fn routes() -> Router<Arc<Api>> {
    Router::new()
        .route("/api/runs", get(list::get_runs).post(create::post_run))
        .route("/api/runs/api", post(create::post_run_with_key))
        .route("/api/runs/estimate", post(order_estimate::post_estimate))
        .route("/api/runs/{run_id}", get(list::get_run).patch(labels::patch_run).delete(lifecycle::delete))
        .route("/api/runs/{run_id}/cancel", post(lifecycle::post_cancel))
        .route("/api/runs/{run_id}/rejudge", post(rejudge::post_rejudge))
        .route("/api/runs/{run_id}/judgings", get(judgings::get_judgings))
        .route("/api/admin/runs/{run_id}/requeue", post(lifecycle::post_requeue))
        .route("/api/runs/{run_id}/benchmarks/{benchmark_name}", get(details::get_details))
        .route("/api/runs/{run_id}/items/index", get(item_index::get_item_index))
        .route("/api/runs/{run_id}/items/log", get(item_log::get_item_log))
        .route("/api/runs/{run_id}/artifacts", get(item_log::get_artifacts))
        .route("/api/runs/{run_id}/items/turns", get(item_turns::get_item_turns))
        .route("/api/runs/{run_id}/events", get(events::get_events))
        .route("/api/runs/{run_id}/compare/{other_id}", get(compare::get_comparison))
}

/// OpenAPI description of these routes.
#[derive(OpenApi)]
#[openapi(paths(
    create::post_run,
    create::post_run_with_key,
    order_estimate::post_estimate,
    list::get_runs,
    list::get_run,
    labels::patch_run,
    lifecycle::post_cancel,
    lifecycle::delete,
    lifecycle::post_requeue,
    rejudge::post_rejudge,
    judgings::get_judgings,
    details::get_details,
    item_index::get_item_index,
    item_log::get_item_log,
    item_log::get_artifacts,
    item_turns::get_item_turns,
    events::get_events,
    compare::get_comparison
))]
pub(crate) struct Document;
