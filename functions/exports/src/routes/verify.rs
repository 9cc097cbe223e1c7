//! POST `/api/exports/verify`: stores an archive from the request, or from an earlier upload, in a temporary
//! file and verifies it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Json;
use axum::extract::multipart::{Field, Multipart, MultipartError, MultipartRejection};
use axum::extract::{ConnectInfo, FromRequest, Request, State};
use bench_domain::Code;
use bench_signing::verify_configured;
use bench_web::body::read_object;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldError, FieldReader, Identity};
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;

use crate::Exports;
use crate::routes::uploads::{UPLOAD_ID_CHARS_MAX, VERIFY_BYTES_MAX, upload_not_found, uploaded_key};
use crate::routes::views::{UploadForm, UploadedArchive, VerificationView};
use crate::spool::{SizeLimit, Spool, Spooled};

/// Bytes of a form around the file: boundaries, headers and other parts.
pub(crate) const FORM_BYTES_MAX: u64 = 64 * 1024;
/// Advice for archives that are too large for this server.
const VERIFY_LOCALLY: &str = "verify it on your machine with `bench verify --here`";
/// Advice for archives that are too large for a form, where uploads are offered.
const UPLOAD_FIRST: &str = "upload it with `POST /api/uploads` first";

/// Verifies a signed archive.
///
/// Problems of the archive are part of the result; only a request without an archive is an error.
///
/// Send an archive of up to 4 MB as a form. Upload a larger one first (`POST /api/uploads`), then name it in a JSON
/// body.
#[utoipa::path(
    post,
    path = "/api/exports/verify",
    tag = "exports",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    request_body(content((UploadForm = "multipart/form-data"), (UploadedArchive = "application/json"))),
    responses(
        (status = 200, body = VerificationView),
        (status = 404, body = ErrorBody, description = "The caller has no upload with this id"),
        (status = 413, body = ErrorBody, description = "The archive is too large for a form, or for this server"),
        (status = 422, body = ErrorBody, description = "The part `file` or the field `upload_id` is missing"),
        (status = 503, body = ErrorBody, description = "The server is receiving too many archives; try again in a minute"),
    ),
)]
pub(crate) async fn verify(
    State(exports): State<Arc<Exports>>,
    request: Request,
) -> Result<Json<VerificationView>, ApiError> {
    let peer = peer(&request);
    if is_json(request.headers()) {
        let (parts, body) = request.into_parts();
        let fields = read_object(&parts.headers, body).await?;
        return verify_upload(&exports, &Identity::of(&parts), peer, fields).await;
    }
    let limit = form_limit(&exports);
    if announced_bytes(request.headers()) > limit.bytes.saturating_add(FORM_BYTES_MAX) {
        return Err(limit.exceeded());
    }
    let form = Multipart::from_request(request, &()).await.map_err(|rejection| not_a_form(&rejection))?;
    // The slot is taken before any byte of the body is read.
    let spool = exports.spools.begin(peer, limit).await?;
    let archive = read_file(spool, form, limit).await?;
    verify_archive(&exports, archive).await
}

/// Returns the limit on archives in a form.
fn form_limit(exports: &Exports) -> SizeLimit {
    let advice = if exports.config.direct_uploads { UPLOAD_FIRST } else { VERIFY_LOCALLY };
    SizeLimit { bytes: exports.config.upload_bytes_max, advice }
}

/// Verifies an upload and then deletes it.
async fn verify_upload(
    exports: &Arc<Exports>,
    identity: &Identity,
    peer: Option<IpAddr>,
    mut fields: FieldReader,
) -> Result<Json<VerificationView>, ApiError> {
    let id = fields.text("upload_id", UPLOAD_ID_CHARS_MAX);
    fields.finish()?;
    let key = uploaded_key(identity, &id)?;
    let limit = SizeLimit { bytes: VERIFY_BYTES_MAX, advice: VERIFY_LOCALLY };
    let mut spool = exports.spools.begin(peer, limit).await?;
    let (_, stream) =
        exports.blobs.stream(&key).await.map_err(ApiError::internal)?.ok_or_else(upload_not_found)?;
    let stored = match spool.copy(stream.into_async_read()).await {
        Ok(()) => spool.finish().await,
        Err(error) => Err(error),
    };
    let verified = match stored {
        Ok(archive) => verify_archive(exports, archive).await,
        // The caller may retry with the same upload.
        Err(error) if error.code() == Code::ServerBusy => return Err(error),
        Err(error) => Err(error),
    };
    if let Err(error) = exports.blobs.delete(&key).await {
        // The object expires.
        tracing::warn!(%error, "An upload that was looked at stays behind: {error}");
    }
    verified
}

async fn verify_archive(
    exports: &Arc<Exports>,
    archive: Spooled,
) -> Result<Json<VerificationView>, ApiError> {
    let permit = exports.verifying.acquire().await.map_err(ApiError::internal)?;
    let context = Arc::clone(exports);
    let (archive, stored) = archive.into_parts();
    let verified = tokio::task::spawn_blocking(move || {
        // The file counts as stored until it was verified, even if the caller disconnects.
        let _stored = stored;
        let (limits, now) = (&context.config.verify_limits, jiff::Timestamp::now());
        match &context.key_ring() {
            Ok(ring) => verify_configured(archive, Ok(&ring.known_keys()), limits, now),
            Err(problem) => verify_configured(archive, Err(problem), limits, now),
        }
    });
    let verified = verified.await.map_err(ApiError::internal)?;
    drop(permit);
    Ok(Json(verified.into()))
}

/// Returns the caller's address, if the server knows it.
fn peer(request: &Request) -> Option<IpAddr> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map(|ConnectInfo(peer)| peer.ip().to_canonical())
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

fn announced_bytes(headers: &HeaderMap) -> u64 {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// Stores the first part named `file`; other parts are ignored.
async fn read_file(spool: Spool, mut form: Multipart, limit: SizeLimit) -> Result<Spooled, ApiError> {
    let refused = |error: MultipartError| refusal(&error, limit);
    while let Some(part) = form.next_field().await.map_err(refused)? {
        if part.name() != Some("file") {
            continue;
        }
        if part.file_name().is_none() {
            let problem = FieldError::value_error(file_field(), "expected a file", Value::Null);
            return Err(ApiError::validation(vec![problem]));
        }
        return store(spool, part, limit).await;
    }
    Err(missing_file())
}

async fn store(mut spool: Spool, mut part: Field<'_>, limit: SizeLimit) -> Result<Spooled, ApiError> {
    while let Some(chunk) = part.chunk().await.map_err(|error| refusal(&error, limit))? {
        spool.write(&chunk).await?;
    }
    spool.finish().await
}

fn refusal(error: &MultipartError, limit: SizeLimit) -> ApiError {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => limit.exceeded(),
        _ => ApiError::new(Code::InvalidForm, "There was an error parsing the body"),
    }
}

/// Returns the error for a body that isn't a form: it has no part `file` either.
fn not_a_form(rejection: &MultipartRejection) -> ApiError {
    tracing::debug!(problem = %rejection, "A verification without a form was refused");
    missing_file()
}

fn missing_file() -> ApiError {
    let (loc, msg) = (file_field(), "Field required".to_owned());
    ApiError::validation(vec![FieldError { kind: "missing", loc, msg, input: Value::Null, ctx: None }])
}

fn file_field() -> Vec<Value> {
    vec!["body".into(), "file".into()]
}
