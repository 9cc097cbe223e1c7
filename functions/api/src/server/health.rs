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

/// Whether the server answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthView {
    /// `healthy`.
    status: &'static str,
}

/// Whether runs can be created.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusView {
    /// Whether creation is refused.
    maintenance_mode: bool,
    /// What is told then.
    message: String,
}

/// Who is signed in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuthView {
    /// Whether people can sign in.
    idp_configured: bool,
    /// Whether the caller has.
    authenticated: bool,
    /// Who that is.
    #[schema(value_type = Option<Object>)]
    user: Option<()>,
    /// Whether runs can be made on that account.
    has_invoke_scope: bool,
}

/// Whether the server answers.
#[utoipa::path(get, path = "/api/health", tag = "server", responses((status = 200, body = HealthView)))]
pub(crate) async fn health() -> Json<HealthView> {
    Json(HealthView { status: "healthy" })
}

/// Whether runs can be created.
#[utoipa::path(get, path = "/api/status", tag = "server", responses((status = 200, body = StatusView)))]
pub(crate) async fn status(State(api): State<Arc<Api>>) -> Json<StatusView> {
    let maintenance_mode = api.config.maintenance_mode;
    Json(StatusView { maintenance_mode, message: api.config.maintenance_message.clone() })
}

/// Who is signed in: nobody, since sign-in is not configured.
#[utoipa::path(get, path = "/api/auth/status", tag = "server", responses((status = 200, body = AuthView)))]
pub(crate) async fn auth_status() -> Json<AuthView> {
    Json(AuthView { idp_configured: false, authenticated: false, user: None, has_invoke_scope: false })
}

/// Sign-in: not configured.
#[utoipa::path(get, path = "/api/auth/login", tag = "server", responses((status = 501, body = ErrorBody)))]
pub(crate) async fn auth_login() -> ApiError {
    ApiError::new(
        Code::SignInNotConfigured,
        "this server has no sign-in; send a key as `Authorization: Bearer KEY`",
    )
}

/// The signed-in user: nobody.
#[utoipa::path(get, path = "/api/auth/me", tag = "server", responses((status = 401, body = ErrorBody)))]
pub(crate) async fn auth_me() -> ApiError {
    ApiError::new(Code::MissingCredentials, "Not authenticated")
}
