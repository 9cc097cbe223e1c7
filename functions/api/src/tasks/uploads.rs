//! Addresses for archives that are too large for a request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use bench_blobs::{ExpectedContent, PresignedPut};
use bench_domain::{Code, RunId, Timestamp};
use bench_runs::Orderer;
use bench_tasks::ARCHIVE_BYTES_MAX;
use bench_web::body::read_object;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldReader};
use serde::Serialize;
use utoipa::ToSchema;

use super::receive::{Received, receive_stream};
use crate::Api;
use crate::runs::tasks::uploader;

/// Validity of the address, which clients use at once.
const UPLOAD_VALID: Duration = Duration::from_secs(10 * 60);
/// Maximum length of an upload's key, in characters.
pub(crate) const UPLOAD_CHARS_MAX: usize = 100;
const SHA256_CHARS: usize = 64;
/// Prefix of the keys, which tells them from other uploads.
const PREFIX: &str = "task-";

/// Announcement of an archive.
#[derive(Debug, ToSchema)]
#[schema(as = TaskUploadOrder)]
#[allow(dead_code)] // a description; the body is read field by field
pub(crate) struct UploadOrder {
    /// Size of the archive in bytes.
    #[schema(minimum = 1, maximum = 104_857_600)]
    bytes: u64,
    /// SHA-256 of the archive, in hexadecimal digits.
    #[schema(min_length = 64, max_length = 64)]
    sha256: String,
}

/// Address for an archive.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskUploadAddress)]
pub(crate) struct UploadView {
    /// Address to send the archive to. It contains the permission to upload, so don't share it.
    upload_url: String,
    /// Always `PUT`.
    method: &'static str,
    /// Headers to send unchanged. They bind length and SHA-256 of the archive.
    headers: BTreeMap<String, String>,
    /// Key of the upload, for `POST /api/tasks`.
    key: String,
    /// Time at which the address expires.
    #[schema(value_type = String, format = DateTime)]
    expires: Timestamp,
}

/// Returns an address for an archive that is too large for a request.
///
/// Send the archive there by `PUT` with the headers of the response, then name it: `POST /api/tasks` with
/// `{"upload": KEY, "name": …}`. The archive is deleted after its use, at the latest after a day.
#[utoipa::path(
    post, path = "/api/tasks/uploads", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    request_body = UploadOrder,
    responses(
        (status = 200, body = UploadView),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "This server offers no uploads"),
        (status = 413, body = ErrorBody), (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn post_upload(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Json<UploadView>, ApiError> {
    let (parts, body) = request.into_parts();
    let content = read(read_object(&parts.headers, body).await?)?;
    let orderer = uploader(&api, &parts).await?;
    if !api.config.direct_uploads {
        return Err(ApiError::new(
            Code::UploadsNotOffered,
            "this server offers no uploads; send the archive as a form to `POST /api/tasks`",
        ));
    }
    let key = format!("{PREFIX}{}", RunId::random());
    let put = api.blobs.presign_put(&object_key(&orderer, &key), &content, UPLOAD_VALID).await;
    let PresignedPut { url, headers } = put.map_err(ApiError::internal)?;
    let expires = bench_clock::now().plus(UPLOAD_VALID);
    let headers = headers.into_iter().collect();
    Ok(Json(UploadView { upload_url: url, method: "PUT", headers, key, expires }))
}

fn read(mut fields: FieldReader) -> Result<ExpectedContent, ApiError> {
    if !fields.has("bytes") {
        fields.note("missing", "bytes", "Field required");
    }
    let length = fields.maybe_integer("bytes", 1, ARCHIVE_BYTES_MAX).unwrap_or_default();
    let mut sha256 = [0; 32];
    let digits = fields.required_text("sha256", SHA256_CHARS);
    if digits.is_some_and(|digits| !decode_hex(&digits, &mut sha256)) {
        fields.note("value_error", "sha256", "Input should be 64 hexadecimal digits");
    }
    fields.finish()?;
    Ok(ExpectedContent { length, sha256 })
}

fn decode_hex(digits: &str, bytes: &mut [u8; 32]) -> bool {
    if digits.len() != SHA256_CHARS || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return false;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        *byte = u8::from_str_radix(pair, 16).unwrap_or_default();
    }
    true
}

/// Returns the key of the object, which belongs to the caller: nobody can name uploads of others.
fn object_key(orderer: &Orderer, key: &str) -> String {
    format!("uploads/{}/{key}", orderer.owner.path_name())
}

/// Receives an archive that its caller uploaded, and deletes the upload.
///
/// # Errors
/// 404 for an upload that doesn't exist, 400 for an archive that is too large.
pub(crate) async fn receive_upload(
    api: &Api,
    orderer: &Orderer,
    key: &str,
    file_name: String,
) -> Result<Received, ApiError> {
    let not_found = || {
        ApiError::new(
            Code::UploadNotFound,
            "upload not found: it was not sent, was used already, has expired, or belongs to another caller; request a new \
             address with `POST /api/tasks/uploads`, and send the archive there first",
        )
    };
    // Only a key of the expected form may become part of an object's key.
    let id: RunId = key.strip_prefix(PREFIX).and_then(|id| id.parse().ok()).ok_or_else(not_found)?;
    let object = object_key(orderer, &format!("{PREFIX}{id}"));
    let found = api.blobs.stream(&object).await.map_err(ApiError::internal)?;
    let (_, stream) = found.ok_or_else(not_found)?;
    let file_name = if file_name.is_empty() { format!("{key}.zip") } else { file_name };
    let received = receive_stream(stream.into_async_read(), file_name, &api.archives).await;
    if let Err(error) = api.blobs.delete(&object).await {
        // The object expires.
        tracing::warn!(%error, "An upload stays behind: {error}");
    }
    received
}
