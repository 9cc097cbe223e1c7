//! What the server tells of itself: health, who calls, and the document of all routes.

mod health;
mod openapi;
mod root;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::Api;

pub use openapi::document;

/// The routes of the server itself.
pub(crate) fn routes() -> Router<Arc<Api>> {
    Router::new()
        .route("/", get(root::root))
        .route("/docs", get(openapi::docs))
        .route("/openapi.json", get(openapi::json))
        .route("/api/health", get(health::health))
        .route("/api/status", get(health::status))
        .route("/api/auth/status", get(health::auth_status))
        .route("/api/auth/login", get(health::auth_login))
        .route("/api/auth/me", get(health::auth_me))
}
