//! Bodies of requests: JSON, of a bounded length, within a bounded time, so many at once.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::Request;
use http::{StatusCode, header};
use http_body_util::LengthLimitError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::answer::ApiError;
use crate::host::SandboxHost;

/// Bytes of a body that carries no file: a command of 128 KiB, its variables, and what JSON makes of both at worst.
pub(super) const SMALL_BYTES_MAX: usize = 2 << 20;
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

/// What was read. While it is held it counts as one of the bodies that are worked on.
pub(super) struct Held<T> {
    pub(super) value: T,
    _permit: OwnedSemaphorePermit,
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
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    let announced = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if announced.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > bytes_max as u64)
    {
        return Err(too_large());
    }
    let permit = Arc::clone(&host.bodies).acquire_owned().await;
    let permit = permit.map_err(|_| ApiError::from(crate::host::making::shut_down()))?;
    let bytes = match timeout(host.config().body_timeout, to_bytes(body, bytes_max)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) if is_length_limit(&error) => return Err(too_large()),
        Ok(Err(_)) => return Err(ApiError::new(StatusCode::BAD_REQUEST, "The body ended early.")),
        Err(_) => {
            let seconds = host.config().body_timeout.as_secs();
            let detail = format!("The body did not arrive within {seconds} s.");
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, detail));
        }
    };
    let unexpected = |problem: &str| {
        // What was sent is repeated in parts at most; it goes to nobody else.
        let problem: String = problem.chars().take(PROBLEM_CHARS_MAX).collect();
        let detail = format!("The body is not the JSON object that is expected: {problem}");
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    };
    // A list would be taken for the values of an object's fields.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(unexpected("it does not begin with `{`"));
    }
    let value = serde_json::from_slice(&bytes).map_err(|error| unexpected(&error.to_string()))?;
    Ok(Held { value, _permit: permit })
}

fn is_length_limit(error: &axum::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(found) = cause {
        if found.is::<LengthLimitError>() {
            return true;
        }
        cause = found.source();
    }
    false
}
