//! GET `/api/exports/public-key` and `/.well-known/bench-runner-keys.json`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_signing::KeyError;
use bench_web::ApiError;
use bench_web::error::ErrorBody;
use http::{HeaderName, header};

use crate::routes::views::{KeysView, PublicKeyView};
use crate::{ExportError, Exports};

/// Time for which clients may cache the list of keys.
const KEYS_CACHE: &str = "public, max-age=300";

/// Returns the public key that signs this server's exports now.
#[utoipa::path(
    get,
    path = "/api/exports/public-key",
    tag = "exports",
    responses((status = 200, body = PublicKeyView), (status = 503, body = ErrorBody, description = "The server has no usable signing key")),
)]
pub(crate) async fn public_key(State(exports): State<Arc<Exports>>) -> Result<Json<PublicKeyView>, ApiError> {
    let ring = exports.key_ring().map_err(ExportError::Keys)?;
    let current = ring.current().ok_or(ExportError::Keys(KeyError::NotConfigured))?;
    Ok(Json(current.into()))
}

/// Lists all public keys of this server, including retired ones, with the times in which they signed.
#[utoipa::path(
    get,
    path = "/.well-known/bench-runner-keys.json",
    tag = "exports",
    responses((status = 200, body = KeysView), (status = 503, body = ErrorBody, description = "The server has no usable signing key")),
)]
pub(crate) async fn keys(
    State(exports): State<Arc<Exports>>,
) -> Result<([(HeaderName, &'static str); 1], Json<KeysView>), ApiError> {
    let ring = exports.key_ring().map_err(ExportError::Keys)?;
    Ok(([(header::CACHE_CONTROL, KEYS_CACHE)], Json(ring.document().into())))
}
