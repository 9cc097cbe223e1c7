//! The routes by resource, and the conversion of errors to HTTP.

mod export;
mod keys;
pub(crate) mod uploads;
mod verify;
pub(crate) mod views;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use bench_domain::{Code, UnusualStatus};
use bench_lambda::metrics;
use bench_web::{ApiError, Guard};
use http::StatusCode;

use self::verify::FORM_BYTES_MAX;
use crate::{ExportError, Exports};

/// Returns the routes of this function. [`bench_web::finish`] adds the common layers (unknown paths, Host and
/// Origin, headers) once for all routers of a server.
pub fn router(exports: Arc<Exports>) -> Router {
    let upload_bytes_max = exports.config.upload_bytes_max.saturating_add(FORM_BYTES_MAX);
    let body_limit = DefaultBodyLimit::max(usize::try_from(upload_bytes_max).unwrap_or(usize::MAX));
    let guard = Guard::new(
        exports.config.access.clone(),
        exports.state.clone(),
        exports.config.secret_limits,
        || {
            metrics::count(metrics::WRONG_ADMIN_SECRETS, 1.0);
        },
    );
    let routes = Router::new()
        .route("/api/runs/{run_id}/export", get(export::export).head(not_head))
        .route("/api/exports/public-key", get(keys::public_key).head(not_head))
        .route("/.well-known/bench-runner-keys.json", get(keys::keys).head(not_head))
        .route("/api/exports/verify", post(verify::verify).layer(body_limit))
        .route("/api/uploads", post(uploads::post_upload));
    guard.around(routes).with_state(exports)
}

/// Returns the part of the OpenAPI document that describes these routes.
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(utoipa::OpenApi)]
    #[openapi(paths(export::export, keys::public_key, keys::keys, verify::verify, uploads::post_upload))]
    struct Document;
    <Document as utoipa::OpenApi>::openapi()
}

/// Refuses HEAD, which would otherwise do all the work of a GET.
async fn not_head() -> StatusCode {
    StatusCode::METHOD_NOT_ALLOWED
}

impl From<ExportError> for ApiError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::NotFound(_) => Self::new(Code::RunNotFound, "Run not found"),
            ExportError::NoSuchBenchmark { .. } => Self::new(Code::BenchmarkNotInRun, error.to_string()),
            ExportError::NotCompleted => Self::new(Code::RunNotOver, error.to_string()),
            ExportError::NotSettled => Self::unusual(UnusualStatus::ExportOfUnsettledRun, error.to_string()),
            ExportError::Changed => {
                Self::new(Code::ConcurrentChange, "the run changed while its export was built; try again")
            }
            ExportError::Keys(_) => Self::new(Code::SigningKeyInvalid, error.to_string()),
            other => Self::internal(other),
        }
    }
}
