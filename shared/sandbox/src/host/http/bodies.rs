//! Reads JSON bodies of requests, with limits on length, time and total memory.
//!
//! Memory is counted as bytes arrive, so a body that announces a large length and sends little, or slowly, doesn't
//! block others.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bench_domain::Code;
use http::header;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::error::ApiError;
use crate::host::SandboxHost;
use crate::host::lifecycle::BODY_PERMIT_BYTES;

/// Maximum size of a body that carries no file, in bytes: a command of 128 KiB, its variables, and the worst case of
/// JSON escapes for both.
pub(super) const SMALL_BYTES_MAX: usize = 2 << 20;
/// Bytes of each body that aren't counted, so that ordinary commands never wait for memory. The limit on connections
/// bounds their total.
const UNCOUNTED_BYTES: usize = 64 << 10;
/// Maximum time that a body waits for memory.
const MEMORY_WAIT: Duration = Duration::from_secs(10);
/// Maximum number of characters of a parse error that an answer repeats.
const PROBLEM_CHARS_MAX: usize = 200;

/// Request to write a file.
#[derive(Deserialize)]
pub(super) struct WriteFileRequest {
    /// Path of the file; relative paths are below `/workspace`.
    pub(super) path: String,
    /// Content of the file.
    pub(super) content: String,
}

/// A parsed body. Until it is dropped, its bytes count toward the memory of all bodies.
pub(super) struct ParsedBody<T> {
    pub(super) value: T,
    _memory: Option<OwnedSemaphorePermit>,
}

/// Reads a JSON body of at most `bytes_max` bytes.
pub(super) async fn read_json<T: DeserializeOwned>(
    host: &SandboxHost,
    request: Request,
    bytes_max: usize,
) -> Result<ParsedBody<T>, ApiError> {
    let (parts, body) = request.into_parts();
    let too_large = || {
        let detail = format!("The body has more than {bytes_max} bytes: send a file in several pieces.");
        ApiError::new(Code::BodyTooLarge, detail)
    };
    let content_length = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if content_length
        .and_then(|length| length.parse::<u64>().ok())
        .is_some_and(|length| length > bytes_max as u64)
    {
        return Err(too_large());
    }
    let (bytes, memory) = match timeout(host.config().body_timeout, collect(host, body, bytes_max)).await {
        Ok(Ok(read)) => read,
        Ok(Err(BodyError::TooLarge)) => return Err(too_large()),
        Ok(Err(BodyError::Broken)) => {
            return Err(ApiError::new(Code::IncompleteBody, "The body ended early."));
        }
        Ok(Err(BodyError::NoMemory)) => {
            let detail = "The host has no memory left for request bodies; try again later.";
            return Err(ApiError::new(Code::ServerBusy, detail).retry_after(MEMORY_WAIT));
        }
        Ok(Err(BodyError::ShutDown)) => return Err(crate::host::create::shutting_down().into()),
        Err(_) => {
            let seconds = host.config().body_timeout.as_secs();
            let detail = format!("The body did not arrive within {seconds} s.");
            return Err(ApiError::new(Code::BodyTimeout, detail));
        }
    };
    let invalid = |problem: &str| {
        // The parse error may repeat parts of the body; only its sender sees them.
        let problem: String = problem.chars().take(PROBLEM_CHARS_MAX).collect();
        let detail = format!("The body is not the expected JSON object: {problem}");
        ApiError::new(Code::InvalidRequest, detail)
    };
    // serde would also accept a list of the field values.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(invalid("it does not begin with `{`"));
    }
    let value = serde_json::from_slice(&bytes).map_err(|error| invalid(&error.to_string()))?;
    Ok(ParsedBody { value, _memory: memory })
}

/// Reasons for which a body couldn't be read.
enum BodyError {
    TooLarge,
    Broken,
    NoMemory,
    ShutDown,
}

/// Reads a whole body, and acquires memory for its bytes as they arrive.
async fn collect(
    host: &SandboxHost,
    mut body: Body,
    bytes_max: usize,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), BodyError> {
    let mut bytes = Vec::new();
    let mut memory: Option<OwnedSemaphorePermit> = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let length = bytes.len().saturating_add(data.len());
        if length > bytes_max {
            return Err(BodyError::TooLarge);
        }
        let needed = length.saturating_sub(UNCOUNTED_BYTES).div_ceil(BODY_PERMIT_BYTES);
        let missing = needed.saturating_sub(memory.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
        if let Some(missing) = u32::try_from(missing).ok().filter(|missing| *missing > 0) {
            let permits = Arc::clone(&host.bodies).acquire_many_owned(missing);
            let permits = timeout(MEMORY_WAIT, permits).await.map_err(|_| BodyError::NoMemory)?;
            let permits = permits.map_err(|_| BodyError::ShutDown)?;
            match &mut memory {
                Some(memory) => memory.merge(permits),
                None => memory = Some(permits),
            }
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, memory))
}
