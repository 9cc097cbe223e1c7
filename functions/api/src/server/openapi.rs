//! The OpenAPI document: made from the types and handlers, with the routes of the exports function, which
//! stands behind the same address.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use bench_web::docs::docs_page;
use bench_web::error::ErrorBody;
use serde_json::Value;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi, ToSchema};

use crate::{
    Api, access, benchmarks, compare, create, details, events, health, lifecycle, models, ops, root, runs,
    schedules,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Bench Runner",
        description = "Measures language models on benchmark suites and hands out results that others can check.\n\n\
            Reading is public; a run belongs to the key that made it. Every field of an object is always present, \
            null when there is nothing to tell. Times are UTC. An error has the form {\"detail\": …, \"code\": …}: act on \
            the code, the detail may be reworded.",
        license(name = "MIT OR Apache-2.0"),
    ),
    paths(
        root::root, health::health, health::status, health::auth_status, health::auth_login, health::auth_me,
        json, docs,
        models::get_models, models::post_sync, benchmarks::get_benchmarks, benchmarks::get_benchmark,
        create::post_run, create::post_run_with_key, runs::get_runs, runs::get_run,
        lifecycle::post_cancel, lifecycle::delete, lifecycle::post_requeue, crate::rejudge::post_rejudge, crate::judgings::get_judgings,
        details::get_details, events::get_events, compare::get_comparison,
        access::get_entries, access::post_entry, access::delete_entry,
        ops::get_overview, ops::get_resources, ops::get_metrics, ops::get_sandboxes,
        schedules::get_schedules, schedules::post_schedule, schedules::get_schedule, schedules::patch_schedule,
        schedules::delete_schedule, schedules::get_firings, schedules::post_run_now,
        export, public_key, key_history, verify, upload,
    ),
    modifiers(&Schemes),
)]
struct Document;

struct Schemes;

impl Modify for Schemes {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let key = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("key", SecurityScheme::Http(key));
        let admin = ApiKey::Header(ApiKeyValue::new("X-Admin-Secret"));
        components.add_security_scheme("admin", SecurityScheme::ApiKey(admin));
    }
}

/// The document, as JSON.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> =
        LazyLock::new(|| serde_json::to_value(Document::openapi()).unwrap_or_default());
    &DOCUMENT
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "server", responses((status = 200, body = Object)))]
pub(crate) async fn json(State(_): State<Arc<Api>>) -> Json<&'static Value> {
    Json(document())
}

/// This document as a page.
#[utoipa::path(
    get, path = "/docs", tag = "server",
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(crate) async fn docs(State(_): State<Arc<Api>>) -> Response {
    docs_page(document())
}

/// What verification found.
#[derive(ToSchema)]
#[allow(dead_code)] // describes an answer of the exports function
struct VerificationView {
    /// Whether signature and content are right.
    valid: bool,
    /// Whether the manifest was signed by a known key.
    signature_valid: bool,
    /// Whether the results are those that the manifest names.
    hash_match: bool,
    /// What is wrong, one sentence each.
    errors: Vec<String>,
    run_id: Option<String>,
    model_slug: Option<String>,
    subset_pct: Option<u32>,
    subset_count: Option<u64>,
    subset_seed: Option<String>,
    overall_score: Option<f64>,
    exported_at: Option<String>,
    benchmark_count: Option<u64>,
    /// Fingerprint of the key that the manifest names.
    public_key_fingerprint: Option<String>,
}

/// The key that signs exports.
#[derive(ToSchema)]
#[allow(dead_code)] // describes an answer of the exports function
struct PublicKeyView {
    /// `ed25519`.
    algorithm: String,
    /// Base64 of the 32 raw bytes.
    public_key: String,
    /// SHA-256 of the raw bytes, lowercase hex.
    public_key_fingerprint: String,
}

/// The archive to verify.
#[derive(ToSchema)]
#[allow(dead_code)] // describes a body of the exports function
struct VerifyForm {
    /// A ZIP file that an export gave.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// A run that is over, as a table or a signed archive.
///
/// A large file is answered with a redirect to an address that is good for a while.
#[utoipa::path(
    get, path = "/api/runs/{run_id}/export", tag = "exports",
    params(
        ("run_id" = String, Path, description = "The run"),
        ("format" = Option<String>, Query, description = "csv (default) or zip"),
    ),
    responses(
        (status = 200, content((String = "text/csv"), (String = "application/zip"))),
        (status = 202, body = ErrorBody, description = "It is being built, or the run's benchmarks are still being closed: ask again after `Retry-After` seconds"),
        (status = 307, description = "A large file is at the address in `Location`, which is good for a few minutes"),
        (status = 400, body = ErrorBody, description = "The run is not over, or was canceled"),
        (status = 404, body = ErrorBody, description = "There is no such run"),
        (status = 422, body = ErrorBody, description = "There is no such format"),
        (status = 503, body = ErrorBody, description = "There is no key to sign with"),
    ),
)]
#[allow(dead_code)] // stands for a route of the exports function
fn export() {}

/// The public key that belongs to the exports of this server.
#[utoipa::path(
    get, path = "/api/exports/public-key", tag = "exports",
    responses((status = 200, body = PublicKeyView), (status = 503, body = ErrorBody)),
)]
#[allow(dead_code)] // stands for a route of the exports function
fn public_key() {}

/// All public keys of this server with the times in which they signed, old ones included.
#[utoipa::path(
    get, path = "/.well-known/bench-runner-keys.json", tag = "exports",
    responses((status = 200, body = Object), (status = 503, body = ErrorBody)),
)]
#[allow(dead_code)] // stands for a route of the exports function
fn key_history() {}

/// An archive that was uploaded before.
#[derive(ToSchema)]
#[allow(dead_code)] // describes a body of the exports function
struct UploadedArchive {
    /// The id that `POST /api/uploads` gave.
    upload_id: String,
}

/// Verifies a signed archive.
///
/// An archive of up to 4 MB comes in a form. A larger one is uploaded first (`POST /api/uploads`), then named in a
/// JSON body.
#[utoipa::path(
    post, path = "/api/exports/verify", tag = "exports", security((), ("key" = []), ("admin" = [])),
    request_body(content((VerifyForm = "multipart/form-data"), (UploadedArchive = "application/json"))),
    responses(
        (status = 200, body = VerificationView),
        (status = 404, body = ErrorBody, description = "The caller has no such upload"),
        (status = 413, body = ErrorBody, description = "Too large for a form, or altogether"),
        (status = 422, body = ErrorBody),
    ),
)]
#[allow(dead_code)] // stands for a route of the exports function
fn verify() {}

/// The body of a request for an upload.
#[derive(ToSchema)]
#[allow(dead_code)] // describes a body of the exports function
struct UploadOrder {
    /// What for: `verify`.
    purpose: String,
    /// The file's length in bytes; for `verify` 200 MiB at most.
    #[schema(minimum = 1, maximum = 209_715_200)]
    bytes: u64,
    /// The file's SHA-256 in hexadecimal digits.
    #[schema(min_length = 64, max_length = 64)]
    sha256: String,
}

/// Where to send a file, and how.
#[derive(ToSchema)]
#[allow(dead_code)] // describes an answer of the exports function
struct UploadView {
    /// What the file is called afterwards.
    upload_id: String,
    /// Always `PUT`.
    method: String,
    /// Where to; it holds the permission, so it is not to be handed on.
    url: String,
    /// Headers to send with it, as they stand here. They bind length and SHA-256 of the file.
    #[schema(value_type = Object)]
    headers: (),
    /// When the address ends to be good.
    #[schema(format = DateTime)]
    expires_at: String,
}

/// Asks for an address to send a file to that is too large for a request.
///
/// Send the file there by `PUT` with the headers of the answer, then name it by its id: `POST /api/exports/verify`
/// with `{"upload_id": …}`. The store takes nothing but a file of the length and SHA-256 that were announced. It is
/// removed once it was used, and after a day in any case.
#[utoipa::path(
    post, path = "/api/uploads", tag = "exports", security((), ("key" = []), ("admin" = [])),
    request_body = UploadOrder,
    responses(
        (status = 201, body = UploadView),
        (status = 401, body = ErrorBody, description = "A key is needed, unless the server is bound to loopback"),
        (status = 404, body = ErrorBody, description = "This server takes files in requests only"),
        (status = 413, body = ErrorBody, description = "The file is too large for its purpose"),
        (status = 422, body = ErrorBody),
    ),
)]
#[allow(dead_code)] // stands for a route of the exports function
fn upload() {}
