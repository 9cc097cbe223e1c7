//! Information about the server: health, and the OpenAPI document.

mod health;
mod openapi;
mod root;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::Api;

pub use openapi::document;

/// Returns the routes of the server itself.
pub(crate) fn routes() -> Router<Arc<Api>> {
    Router::new()
        .route("/", get(root::root))
        .route("/docs", get(openapi::docs))
        .route("/openapi.json", get(openapi::json))
        .route("/api/health", get(health::health))
        .route("/api/status", get(health::status))
}
