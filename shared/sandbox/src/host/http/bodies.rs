//! Bodies of requests: JSON, of a bounded length, within a bounded time, so many bytes at once.
//!
//! Memory is counted by the bytes that have arrived. A body that announces much and sends little, or slowly, therefore
//! blocks no other.

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

use super::answer::ApiError;
use crate::host::SandboxHost;
use crate::host::life::BODY_PERMIT_BYTES;

/// Bytes of a body that carries no file: a command of 128 KiB, its variables, and what JSON makes of both at worst.
pub(super) const SMALL_BYTES_MAX: usize = 2 << 20;
/// Bytes of each body that aren't counted: ordinary commands never wait for memory. The number of connections bounds them.
const FREE_BYTES: usize = 64 << 10;
/// Time that a body waits for memory.
const MEMORY_WAIT: Duration = Duration::from_secs(10);
/// Characters of what is said about a body that cannot be read.
const PROBLEM_CHARS_MAX: usize = 200;

/// A file that is to be written.
#[derive(Deserialize)]
pub(super) struct FileAsk {
    /// Where; relative paths are below `/workspace`.
    pub(super) path: String,
    /// Text.
    pub(super) content: String,
}

/// What was read. While it is held, its bytes count as memory that bodies take.
pub(super) struct Held<T> {
    pub(super) value: T,
    _memory: Option<OwnedSemaphorePermit>,
}

/// Reads a body of at most so many bytes.
pub(super) async fn read<T: DeserializeOwned>(
    host: &SandboxHost,
    request: Request,
    bytes_max: usize,
) -> Result<Held<T>, ApiError> {
    let (parts, body) = request.into_parts();
    let too_large = || {
        let detail = format!("The body has more than {bytes_max} bytes: send a file in several pieces.");
        ApiError::new(Code::BodyTooLarge, detail)
    };
    let announced = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if announced.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > bytes_max as u64)
    {
        return Err(too_large());
    }
    let (bytes, memory) = match timeout(host.config().body_timeout, collect(host, body, bytes_max)).await {
        Ok(Ok(read)) => read,
        Ok(Err(Unread::TooLarge)) => return Err(too_large()),
        Ok(Err(Unread::Broken)) => {
            return Err(ApiError::new(Code::IncompleteBody, "The body ended early."));
        }
        Ok(Err(Unread::NoMemory)) => {
            let detail = "The host holds as many bytes of request bodies as it may; try again later.";
            return Err(ApiError::new(Code::ServerBusy, detail).retry_after(MEMORY_WAIT));
        }
        Ok(Err(Unread::ShutDown)) => return Err(crate::host::making::shut_down().into()),
        Err(_) => {
            let seconds = host.config().body_timeout.as_secs();
            let detail = format!("The body did not arrive within {seconds} s.");
            return Err(ApiError::new(Code::BodyTimeout, detail));
        }
    };
    let unexpected = |problem: &str| {
        // What was sent is repeated in parts at most; it goes to nobody else.
        let problem: String = problem.chars().take(PROBLEM_CHARS_MAX).collect();
        let detail = format!("The body is not the JSON object that is expected: {problem}");
        ApiError::new(Code::InvalidRequest, detail)
    };
    // A list would be taken for the values of an object's fields.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(unexpected("it does not begin with `{`"));
    }
    let value = serde_json::from_slice(&bytes).map_err(|error| unexpected(&error.to_string()))?;
    Ok(Held { value, _memory: memory })
}

/// Why a body wasn't read.
enum Unread {
    TooLarge,
    Broken,
    NoMemory,
    ShutDown,
}

/// Reads a whole body, and takes the memory for its bytes as they arrive.
async fn collect(
    host: &SandboxHost,
    mut body: Body,
    bytes_max: usize,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Unread> {
    let mut bytes = Vec::new();
    let mut memory: Option<OwnedSemaphorePermit> = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
        let length = bytes.len().saturating_add(data.len());
        if length > bytes_max {
            return Err(Unread::TooLarge);
        }
        let needed = length.saturating_sub(FREE_BYTES).div_ceil(BODY_PERMIT_BYTES);
        let missing = needed.saturating_sub(memory.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
        if let Some(missing) = u32::try_from(missing).ok().filter(|missing| *missing > 0) {
            let more = Arc::clone(&host.bodies).acquire_many_owned(missing);
            let more = timeout(MEMORY_WAIT, more).await.map_err(|_| Unread::NoMemory)?;
            let more = more.map_err(|_| Unread::ShutDown)?;
            match &mut memory {
                Some(memory) => memory.merge(more),
                None => memory = Some(more),
            }
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, memory))
}
