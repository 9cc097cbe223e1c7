//! Routes that need only the configuration.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_domain::Code;
use bench_web::ApiError;
use bench_web::error::ErrorBody;
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

/// Sign-in of the caller. This server has none; callers send keys.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuthView {
    /// Always false: people can't sign in.
    idp_configured: bool,
    /// Always false.
    authenticated: bool,
    /// Always null.
    #[schema(value_type = Option<Object>)]
    user: Option<()>,
    /// Always false.
    has_invoke_scope: bool,
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

/// Returns the caller's sign-in. This server has none.
#[utoipa::path(get, path = "/api/auth/status", tag = "server", responses((status = 200, body = AuthView)))]
pub(crate) async fn auth_status() -> Json<AuthView> {
    Json(AuthView { idp_configured: false, authenticated: false, user: None, has_invoke_scope: false })
}

/// Refuses sign-in, which isn't configured.
#[utoipa::path(get, path = "/api/auth/login", tag = "server", responses((status = 501, body = ErrorBody)))]
pub(crate) async fn auth_login() -> ApiError {
    ApiError::new(
        Code::SignInNotConfigured,
        "this server has no sign-in; send a key as `Authorization: Bearer KEY`",
    )
}

/// Refuses to return a signed-in user, since there is none.
#[utoipa::path(get, path = "/api/auth/me", tag = "server", responses((status = 401, body = ErrorBody)))]
pub(crate) async fn auth_me() -> ApiError {
    ApiError::new(Code::MissingCredentials, "Not authenticated")
}
