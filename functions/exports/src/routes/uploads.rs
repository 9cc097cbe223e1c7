//! POST `/api/uploads`: requests an address for a file that is too large for a request.
//!
//! The object is the only trace of an upload: its key consists of the id that the caller receives and of the
//! caller's owner name. So callers can't name uploads of other callers, and unused uploads expire with the object.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bench_blobs::{ExpectedContent, PresignedPut};
use bench_domain::run::Owner;
use bench_domain::{Code, RunId, Timestamp};
use bench_web::attempts::caller_address;
use bench_web::body::read_object;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Caller, FieldReader, Identity};
use http::StatusCode;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

use crate::Exports;

/// Maximum size of an archive that is uploaded for verification.
pub const VERIFY_BYTES_MAX: u64 = 200 * 1024 * 1024;
/// Validity of the address, which clients use at once.
const UPLOAD_VALID: Duration = Duration::from_secs(10 * 60);
/// Maximum number of upload addresses per minute for one network address: any text is accepted as a key here.
const UPLOADS_PER_MINUTE: u32 = 30;
/// Maximum length of an upload id, in characters.
pub(crate) const UPLOAD_ID_CHARS_MAX: usize = 100;
const PURPOSE_CHARS_MAX: usize = 50;
const SHA256_CHARS: usize = 64;

/// Purpose of an uploaded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Verification.
    Verify,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Verify => "verify",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        (name == Self::Verify.as_str()).then_some(Self::Verify)
    }

    const fn bytes_max(self) -> u64 {
        match self {
            Self::Verify => VERIFY_BYTES_MAX,
        }
    }
}

/// Address for an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UploadView {
    /// Id of the upload, for later requests.
    pub upload_id: String,
    /// Always `PUT`.
    pub method: &'static str,
    /// Address. It contains the permission to upload, so don't share it.
    pub url: String,
    /// Headers to send unchanged. They bind the length and SHA-256 of the file.
    pub headers: BTreeMap<String, String>,
    /// Time at which the address expires.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
}

/// Order for an upload.
#[derive(Debug, ToSchema)]
#[schema(as = UploadOrder)]
#[allow(dead_code)] // a description; the body is read field by field
pub(crate) struct UploadOrder {
    /// Purpose of the file: `verify`.
    purpose: String,
    /// Length of the file in bytes; at most 200 MiB for `verify`.
    #[schema(minimum = 1, maximum = 209_715_200)]
    bytes: u64,
    /// SHA-256 of the file, in hexadecimal digits.
    #[schema(min_length = 64, max_length = 64)]
    sha256: String,
}

/// Returns an address for a file that is too large for a request.
///
/// Send the file there by `PUT` with the headers of the response, then name it by its id: `POST /api/exports/verify`
/// with `{"upload_id": …}`. The address accepts only a file of the announced length and SHA-256. The file is deleted
/// after its use, at the latest after a day.
#[utoipa::path(
    post,
    path = "/api/uploads",
    tag = "exports",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    request_body = UploadOrder,
    responses(
        (status = 201, body = UploadView),
        (status = 401, body = ErrorBody, description = "No key was sent, and the server isn't on loopback"),
        (status = 404, body = ErrorBody, description = "This server offers no uploads"),
        (status = 413, body = ErrorBody, description = "The file is too large for its purpose"),
        (status = 422, body = ErrorBody, description = "A field is invalid"),
        (status = 429, body = ErrorBody, description = "Too many uploads; `Retry-After` has the seconds to wait"),
    ),
)]
pub(crate) async fn post_upload(
    State(exports): State<Arc<Exports>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let (purpose, content) = read(read_object(&parts.headers, body).await?)?;
    let owner = owner(&Identity::of(&parts))?;
    if !exports.config.direct_uploads {
        let bytes = exports.config.upload_bytes_max;
        return Err(ApiError::new(
            Code::UploadsNotOffered,
            format!(
                "this server offers no uploads; send a file of up to {bytes} bytes in the request itself"
            ),
        ));
    }
    if !exports.config.access.local {
        let counted = exports.uploads.count(&caller_address(&parts), UPLOADS_PER_MINUTE);
        counted.map_err(|wait| {
            ApiError::new(Code::UploadRateLimit, "too many uploads; try again later").after(wait)
        })?;
    }
    let id = format!("{}-{}", purpose.as_str(), RunId::random());
    let put = exports.blobs.presign_put(&key(&owner, &id), &content, UPLOAD_VALID).await;
    let PresignedPut { url, headers } = put.map_err(ApiError::internal)?;
    let expires_at = bench_clock::now().plus(UPLOAD_VALID);
    let headers = headers.into_iter().collect();
    let view = UploadView { upload_id: id, method: "PUT", url, headers, expires_at };
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

fn read(mut fields: FieldReader) -> Result<(Purpose, ExpectedContent), ApiError> {
    let name = fields.required_text("purpose", PURPOSE_CHARS_MAX);
    let purpose = name.as_deref().and_then(Purpose::from_name);
    if name.is_some() && purpose.is_none() {
        fields.note("literal_error", "purpose", "Input should be 'verify'");
    }
    let bytes = fields.maybe_integer("bytes", 1, u64::MAX);
    if bytes.is_none() && !fields.has("bytes") {
        fields.note("missing", "bytes", "Field required");
    }
    let mut sha256 = [0; 32];
    let digits = fields.required_text("sha256", SHA256_CHARS);
    if digits.is_some_and(|digits| hex::decode_to_slice(&digits, &mut sha256).is_err()) {
        fields.note("value_error", "sha256", "Input should be 64 hexadecimal digits");
    }
    fields.finish()?;
    let (Some(purpose), Some(length)) = (purpose, bytes) else {
        return Err(ApiError::internal("a required field has neither a value nor a problem"));
    };
    if length > purpose.bytes_max() {
        return Err(ApiError::new(
            Code::BodyTooLarge,
            format!("a file to {} may have at most {} bytes", purpose.as_str(), purpose.bytes_max()),
        ));
    }
    Ok((purpose, ExpectedContent { length, sha256 }))
}

/// Returns the part of an object key that identifies the caller.
fn owner(identity: &Identity) -> Result<String, ApiError> {
    match identity.caller()? {
        Caller::Admin => Ok("admin".to_owned()),
        Caller::Local => Ok("local".to_owned()),
        Caller::Key { owner, .. } => Ok(Owner::Key(owner.clone()).path_name()),
        Caller::User { subject, .. } => Ok(Owner::User(subject.clone()).path_name()),
        Caller::Anonymous => Err(ApiError::new(Code::MissingCredentials, "Missing Authorization header")),
    }
}

fn key(owner: &str, id: &str) -> String {
    format!("uploads/{owner}/{id}")
}

/// Returns the object key of the caller's upload for verification. It can't be another caller's upload.
pub(crate) fn uploaded_key(identity: &Identity, id: &str) -> Result<String, ApiError> {
    let owner = owner(identity)?;
    let rest = id.strip_prefix(Purpose::Verify.as_str()).and_then(|rest| rest.strip_prefix('-'));
    // Only an id of the expected form may become part of an object key.
    let canonical = rest.and_then(|rest| rest.parse::<RunId>().ok()).ok_or_else(upload_not_found)?;
    Ok(key(&owner, &format!("{}-{canonical}", Purpose::Verify.as_str())))
}

pub(crate) fn upload_not_found() -> ApiError {
    ApiError::new(
        Code::UploadNotFound,
        "upload not found: it was not sent, was verified already, has expired, or belongs to another caller",
    )
}
