//! Archives in requests, received into temporary files.

use std::sync::Arc;

use axum::extract::FromRequest;
use axum::extract::Request;
use axum::extract::multipart::{Field, Multipart, MultipartError};
use bench_domain::{Code, is_layout_control};
use bench_tasks::{AGENT_ARCHIVE_BYTES_MAX, ARCHIVE_BYTES_MAX, IncomingArchive, TaskError, UploadedArchive};
use bench_web::{AdmissionRefusal, ApiError, FieldError};
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::runs::tasks::task_error;

/// Bytes of a form around the file: boundaries, headers and other parts.
const FORM_BYTES_MAX: u64 = 64 * 1024;
/// Maximum length of a body with a form.
pub(crate) const BODY_BYTES_MAX: usize = (ARCHIVE_BYTES_MAX + FORM_BYTES_MAX) as usize;
/// Number of bytes to read from a stream at once.
const PIECE_BYTES: usize = 64 * 1024;
const FILE_NAME_CHARS_MAX: usize = 255;

/// Kind of an uploaded archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UploadKind {
    /// A terminal task.
    Task,
    /// A custom agent.
    Agent,
}

impl UploadKind {
    /// Returns the maximum size of an archive, in bytes.
    const fn bytes_max(self) -> u64 {
        match self {
            Self::Task => ARCHIVE_BYTES_MAX,
            Self::Agent => AGENT_ARCHIVE_BYTES_MAX,
        }
    }

    fn refused(self, code: &'static str, detail: &str, hint: &str) -> ApiError {
        let status = match self {
            Self::Task => Code::TaskRefused,
            Self::Agent => Code::AgentRefused,
        };
        let refused = AdmissionRefusal { code, file: None, line: None };
        ApiError::new(status, detail.to_owned()).refused_for(refused).hint(hint.to_owned())
    }

    fn not_zip(self) -> ApiError {
        let hint = match self {
            Self::Task => {
                "pack the task's folder with `zip -r task.zip FOLDER`, and send the file under a name that ends with `.zip`"
            }
            Self::Agent => {
                "pack the agent's folder with `zip -r agent.zip FOLDER`, and send the file under a name that ends with `.zip`"
            }
        };
        self.refused("not_zip", "File must be a zip archive", hint)
    }

    fn too_large(self) -> ApiError {
        let (code, detail, hint) = match self {
            Self::Task => (
                "archive_too_large",
                "File too large. Maximum size is 100MB",
                "let the task's Dockerfile download or make large files",
            ),
            Self::Agent => (
                "agent_too_large",
                "File too large. Maximum size is 4MB",
                "let the agent's install script download large files",
            ),
        };
        self.refused(code, detail, hint)
    }
}

/// Received archive with the client's name for it.
pub(crate) struct Received {
    pub(crate) archive: UploadedArchive,
    pub(crate) file_name: String,
    /// Place among the archives that are received or checked.
    pub(crate) place: OwnedSemaphorePermit,
}

/// Form of a request, and whether it has a file.
pub(crate) enum Form {
    /// There is no body.
    Missing,
    /// The body is something else than a multipart form.
    Other,
    /// A form whose parts weren't read yet.
    Unread(Box<Multipart>),
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// Opens the form of a request.
///
/// # Errors
/// 400 for a body that is announced to be too large.
pub(crate) async fn open_form(request: Request, kind: UploadKind) -> Result<Form, ApiError> {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|length| length.parse::<u64>().ok()).unwrap_or(0);
    if announced > kind.bytes_max() + FORM_BYTES_MAX {
        return Err(kind.too_large());
    }
    let is_missing = announced == 0 && !request.headers().contains_key(header::CONTENT_TYPE);
    Ok(match Multipart::from_request(request, &()).await {
        Ok(form) => Form::Unread(Box::new(form)),
        Err(_) if is_missing => Form::Missing,
        Err(_) => Form::Other,
    })
}

impl Form {
    /// Returns whether the form has a file, without storing it. Used when the request is refused for other reasons.
    pub(crate) async fn has_file(self) -> bool {
        let Self::Unread(mut form) = self else { return false };
        while let Ok(Some(part)) = form.next_field().await {
            if is_file(&part) {
                return true;
            }
        }
        false
    }

    /// Receives the first file of the form.
    ///
    /// # Errors
    /// 422 without a file; 400 for a body that is no form, and for a file that is too large or isn't named as a ZIP archive.
    pub(crate) async fn receive(
        self,
        places: &Arc<Semaphore>,
        kind: UploadKind,
    ) -> Result<Received, ApiError> {
        let mut form = match self {
            Self::Unread(form) => form,
            Self::Missing => return Err(ApiError::validation(vec![missing_file()])),
            Self::Other => return Err(no_form("the body is not a multipart form")),
        };
        let place = Arc::clone(places).acquire_owned().await.map_err(ApiError::internal)?;
        while let Some(mut part) = form.next_field().await.map_err(|error| broken_form(&error, kind))? {
            if !is_file(&part) {
                continue;
            }
            let file_name = clean_file_name(part.file_name().unwrap_or_default());
            if !file_name.to_ascii_lowercase().ends_with(".zip") {
                return Err(kind.not_zip());
            }
            let receive_error = |error| receive_error(error, kind);
            let mut archive = begin(kind).await?;
            while let Some(piece) = part.chunk().await.map_err(|error| broken_form(&error, kind))? {
                archive.write(&piece).await.map_err(receive_error)?;
            }
            let archive = archive.finish().await.map_err(receive_error)?;
            return Ok(Received { archive, file_name, place });
        }
        Err(ApiError::validation(vec![missing_file()]))
    }
}

/// Receives the archive of a task from the object store.
///
/// # Errors
/// 400 for a file that is too large.
pub(crate) async fn receive_stream(
    mut stream: impl AsyncRead + Unpin,
    file_name: String,
    places: &Arc<Semaphore>,
) -> Result<Received, ApiError> {
    let place = Arc::clone(places).acquire_owned().await.map_err(ApiError::internal)?;
    let receive_error = |error| receive_error(error, UploadKind::Task);
    let mut archive = begin(UploadKind::Task).await?;
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let count = stream.read(&mut buffer).await.map_err(ApiError::internal)?;
        let Some(piece) = buffer.get(..count).filter(|piece| !piece.is_empty()) else { break };
        archive.write(piece).await.map_err(receive_error)?;
    }
    let archive = archive.finish().await.map_err(receive_error)?;
    Ok(Received { archive, file_name, place })
}

async fn begin(kind: UploadKind) -> Result<IncomingArchive, ApiError> {
    IncomingArchive::new(kind.bytes_max()).await.map_err(task_error)
}

fn is_file(part: &Field<'_>) -> bool {
    part.name() == Some("file") && part.file_name().is_some()
}

/// Returns a file name without characters that a terminal or a page would act on, cut to 255 characters.
fn clean_file_name(name: &str) -> String {
    let kept: Vec<char> = name.chars().filter(|c| !is_layout_control(*c)).collect();
    // The end has the suffix.
    kept.iter().skip(kept.len().saturating_sub(FILE_NAME_CHARS_MAX)).collect()
}

fn receive_error(error: TaskError, kind: UploadKind) -> ApiError {
    match error {
        TaskError::Refused(_) => kind.too_large(),
        other => task_error(other),
    }
}

fn broken_form(error: &MultipartError, kind: UploadKind) -> ApiError {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => kind.too_large(),
        _ => no_form("the form in the body is damaged or ended too early"),
    }
}

fn no_form(problem: &str) -> ApiError {
    ApiError::new(
        Code::InvalidForm,
        format!("{problem}; send `multipart/form-data` with the archive in the part `file`"),
    )
}

/// Returns the problem of a body without a file.
pub(crate) fn missing_file() -> FieldError {
    let loc = vec!["body".into(), "file".into()];
    FieldError { kind: "missing", loc, msg: "Field required".to_owned(), input: Value::Null, ctx: None }
}

#[cfg(test)]
mod tests {
    use super::clean_file_name;

    #[test]
    fn file_names_are_metadata_that_terminals_can_show() {
        assert_eq!(clean_file_name("../../evil.zip"), "../../evil.zip");
        assert_eq!(clean_file_name("a\u{1b}[2J\0\u{202e}\u{2066}b.zip"), "a[2Jb.zip");
        let long = clean_file_name(&format!("{}.zip", "x".repeat(300)));
        assert!(long.len() == 255 && long.ends_with("x.zip"));
    }
}
