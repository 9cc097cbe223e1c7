//! Operators' views: workers, runs, queues, tokens, and the sandbox host.

mod access;
mod details;
mod overview;
mod sandy;
mod series;

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get};
use utoipa::OpenApi;

use crate::Api;

pub use overview::overview;

/// Returns the operators' routes.
pub(crate) fn routes() -> Router<Arc<Api>> {
    Router::new()
        .route("/api/ops/overview", get(overview::get_overview))
        .route("/api/ops/sandy/resources", get(sandy::get_resources))
        .route("/api/ops/sandy/metrics", get(sandy::get_metrics))
        .route("/api/ops/sandy/sandboxes", get(sandy::get_sandboxes))
        .route("/api/admin/access", get(access::get_entries).post(access::post_entry))
        .route("/api/admin/access/{entry}", delete(access::delete_entry))
}

/// OpenAPI description of these routes.
#[derive(OpenApi)]
#[openapi(paths(
    access::get_entries,
    access::post_entry,
    access::delete_entry,
    overview::get_overview,
    sandy::get_resources,
    sandy::get_metrics,
    sandy::get_sandboxes
))]
pub(crate) struct Document;
