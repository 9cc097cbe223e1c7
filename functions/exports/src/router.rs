//! The routes, and errors as HTTP tells them.

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::{get, post};
use bench_domain::Code;
use bench_lambda::metrics;
use bench_signing::KeyError;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Guard};
use http::{HeaderName, StatusCode, header};

use crate::serve::export;
use crate::uploads::post_upload;
use crate::verify::{FORM_BYTES_MAX, verify};
use crate::views::{KeysView, PublicKeyView};
use crate::{ExportError, Exports};

/// How long the list of keys may be kept by others.
const KEYS_CACHE: &str = "public, max-age=300";

/// The routes of this function. What stands around them (unknown paths, Host and Origin, headers) is added by
/// [`bench_web::finish`], once for all routers of a server.
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
        .route("/api/runs/{run_id}/export", get(export).head(not_head))
        .route("/api/exports/public-key", get(public_key).head(not_head))
        .route("/.well-known/bench-runner-keys.json", get(keys).head(not_head))
        .route("/api/exports/verify", post(verify).layer(body_limit))
        .route("/api/uploads", post(post_upload));
    guard.around(routes).with_state(exports)
}

#[utoipa::path(
    get,
    path = "/api/exports/public-key",
    tag = "exports",
    summary = "The key that signs",
    responses((status = 200, body = PublicKeyView), (status = 503, body = ErrorBody, description = "No usable key")),
)]
pub(crate) async fn public_key(State(exports): State<Arc<Exports>>) -> Result<Json<PublicKeyView>, ApiError> {
    let ring = exports.key_ring().map_err(ExportError::Keys)?;
    let current = ring.current().ok_or(ExportError::Keys(KeyError::NotConfigured))?;
    Ok(Json(current.into()))
}

#[utoipa::path(
    get,
    path = "/.well-known/bench-runner-keys.json",
    tag = "exports",
    summary = "All keys, old ones too",
    responses((status = 200, body = KeysView), (status = 503, body = ErrorBody, description = "No usable key")),
)]
pub(crate) async fn keys(
    State(exports): State<Arc<Exports>>,
) -> Result<([(HeaderName, &'static str); 1], Json<KeysView>), ApiError> {
    let ring = exports.key_ring().map_err(ExportError::Keys)?;
    Ok(([(header::CACHE_CONTROL, KEYS_CACHE)], Json(ring.document().into())))
}

/// The part of the OpenAPI document that describes these routes.
pub fn openapi() -> utoipa::openapi::OpenApi {
    #[derive(utoipa::OpenApi)]
    #[openapi(paths(
        crate::serve::export,
        public_key,
        keys,
        crate::verify::verify,
        crate::uploads::post_upload
    ))]
    struct Document;
    <Document as utoipa::OpenApi>::openapi()
}

/// Without this a HEAD would do all the work of a GET.
async fn not_head() -> StatusCode {
    StatusCode::METHOD_NOT_ALLOWED
}

impl From<ExportError> for ApiError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::NotFound(_) => Self::new(Code::RunNotFound, "Run not found"),
            ExportError::NotCompleted => Self::new(Code::RunNotOver, error.to_string()),
            ExportError::NotSettled => {
                Self::new(Code::RunNotOver, error.to_string()).with_status(StatusCode::CONFLICT)
            }
            ExportError::Changed => {
                Self::new(Code::ConcurrentChange, "The run changed while its export was built; ask again")
            }
            ExportError::Keys(_) => Self::new(Code::SigningKeyInvalid, error.to_string()),
            other => Self::internal(other),
        }
    }
}
