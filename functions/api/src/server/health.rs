//! Routes that need only the configuration.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;

/// Health of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthView {
    /// Always `healthy`.
    status: &'static str,
}

/// Maintenance mode of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusView {
    /// True if new runs and schedules are refused.
    maintenance_mode: bool,
    /// Message of these refusals. It is also present while maintenance mode is off.
    message: String,
}

/// Confirms that the server responds.
#[utoipa::path(get, path = "/api/health", tag = "server", responses((status = 200, body = HealthView)))]
pub(crate) async fn health() -> Json<HealthView> {
    Json(HealthView { status: "healthy" })
}

/// Returns whether new runs can be created.
#[utoipa::path(get, path = "/api/status", tag = "server", responses((status = 200, body = StatusView)))]
pub(crate) async fn status(State(api): State<Arc<Api>>) -> Json<StatusView> {
    let maintenance_mode = api.config.maintenance_mode;
    Json(StatusView { maintenance_mode, message: api.config.maintenance_message.clone() })
}
