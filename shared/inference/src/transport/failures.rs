//! Failures of an exchange: error statuses, our own limits, and connections.

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Response, StatusCode};

use super::http::error_chain;
use super::watch::{ExpiredLimit, Watch};
use crate::failure::{Failure, FailureKind, Fatal, GaveUpBy, TooLong, http_cause};
use crate::protocols::{Dialect, PreparedRequest, RequestError};
use crate::response::with_images;
use crate::retry_after::retry_after;
use crate::{Keys, Provider};

/// Maximum number of bytes read of an error body.
const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of the provider's id of a request in characters.
const REQUEST_ID_CHARS_MAX: usize = 200;

/// A failed try.
pub(crate) struct Refusal {
    pub(crate) failure: Box<Failure>,
    /// Dialect that avoids a field that the server refused as unknown, if any.
    pub(crate) next: Option<Dialect>,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failure: Box::new(failure), next: None }
    }
}

/// Reads an error response and returns the corresponding failure.
pub(crate) async fn read_refusal(
    provider: &Provider,
    mut response: Response,
    watch: &mut Watch,
    prepared: Option<PreparedRequest<'_>>,
    keys: &Keys,
) -> Refusal {
    let mut body = Vec::new();
    // The status counts even if a part of the body is missing.
    while let Ok(Ok(Some(chunk))) = watch.guard(response.chunk()).await {
        watch.touch();
        let room = ERROR_BODY_BYTES_MAX - body.len();
        body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if body.len() >= ERROR_BODY_BYTES_MAX {
            break;
        }
    }
    let status = response.status();
    // Redacted before it is quoted, since a quote may be cut within a key.
    let body = keys.redact_beginning(&body);
    let request_id = request_id(provider, response.headers(), keys);
    let text = match redirect(status, response.headers(), keys) {
        Some(text) => text,
        None => String::from_utf8_lossy(&body).into_owned(),
    };
    let error = provider.protocol.read_error(&body);
    let mut kind = provider.protocol.classify(status.as_u16(), &error);
    if prepared.is_some_and(|prepared| prepared.has_images()) {
        // A body that isn't JSON may still be a sentence.
        let words = if error.is_empty() { &text } else { &error.message };
        kind = with_images(kind, status.as_u16(), words);
    }
    let next =
        prepared.and_then(|prepared| provider.protocol.next_dialect(prepared, status.as_u16(), &error));
    let failure = Failure {
        kind,
        status: Some(status.as_u16()),
        cause: http_cause(provider.display_name, status.as_u16(), &text, request_id.as_deref()),
        retry_after: retry_after(response.headers(), jiff::Timestamp::now()),
        request_id,
        gave_up_by: GaveUpBy::Provider,
        usage: None,
    };
    Refusal { failure: Box::new(failure), next }
}

fn redirect(status: StatusCode, headers: &HeaderMap, keys: &Keys) -> Option<String> {
    let to = headers.get(LOCATION).filter(|_| status.is_redirection())?.to_str().ok()?;
    let to = keys.redact(to);
    let to: String = to.split(['?', '#']).next().unwrap_or("").chars().take(200).collect();
    Some(format!(
        "a redirect to {to}, which is not followed because the key belongs to the configured address"
    ))
}

/// Returns the failure for one of our own time limits.
pub(crate) fn timeout_failure(
    provider: &Provider,
    why: ExpiredLimit,
    watch: &Watch,
    bytes: usize,
) -> Failure {
    let name = provider.display_name;
    let waited = watch.elapsed_ms().div_ceil(1000);
    match why {
        ExpiredLimit::Deadline => {
            let cause = format!(
                "No whole answer from {name} in the time given: {bytes} bytes of text after {waited} s"
            );
            Failure::new(FailureKind::TooLong(TooLong::Time), GaveUpBy::Runner, cause)
        }
        ExpiredLimit::Idle => {
            let idle = watch.idle().as_secs();
            let cause = format!("Nothing came from {name} for {idle} s, after {bytes} bytes of text");
            Failure::new(FailureKind::Transient, GaveUpBy::Runner, cause)
        }
    }
}

/// Returns the failure for a connection that could not be made, or broke before the response.
pub(crate) fn network_failure(provider: &Provider, error: &reqwest::Error) -> Failure {
    let (class, gave_up_by) = match () {
        () if error.is_connect() && error.is_timeout() => ("ConnectTimeout", GaveUpBy::Runner),
        () if error.is_timeout() => ("ReadTimeout", GaveUpBy::Runner),
        () if error.is_dns() => ("DnsError", GaveUpBy::Provider),
        () if error.is_connect() => ("ConnectError", GaveUpBy::Provider),
        () => ("ReadError", GaveUpBy::Provider),
    };
    // Leaves out the address, which is known and would make equal failures differ.
    let detail = std::error::Error::source(error).map_or_else(|| error.to_string(), error_chain);
    let cause = format!("Network error contacting {} ({class}): {detail}", provider.display_name);
    Failure::new(FailureKind::Transient, gave_up_by, cause)
}

/// Returns the failure for a request that the protocol can't build.
pub(crate) fn invalid_request_failure(provider: &Provider, error: &RequestError) -> Failure {
    let name = provider.display_name;
    let (kind, cause) = match error {
        RequestError::Key => (
            FailureKind::FatalForRun(Fatal::Key),
            format!("The key for {name} contains characters that HTTP does not allow"),
        ),
        RequestError::Address => (
            FailureKind::FatalForRun(Fatal::Address),
            format!("The address of {name} can't be used: {error}"),
        ),
        RequestError::Body(_) => (FailureKind::Bad, format!("The request could not be written: {error}")),
    };
    Failure::new(kind, GaveUpBy::Runner, cause)
}

/// Returns the failure for an HTTP client that can't be built.
pub(crate) fn missing_client_failure(provider: &Provider, problem: &str) -> Failure {
    let cause = format!("No HTTP client for {}: {problem}", provider.display_name);
    Failure::new(FailureKind::FatalForRun(Fatal::Address), GaveUpBy::Runner, cause)
}

/// Returns the provider's id of a request. Keys are removed before it is cut.
pub(crate) fn request_id(provider: &Provider, headers: &HeaderMap, keys: &Keys) -> Option<String> {
    let mut names = provider.protocol.request_id_headers().iter();
    let value = names.find_map(|name| headers.get(*name))?.to_str().ok()?.trim();
    (!value.is_empty()).then(|| keys.redact(value).chars().take(REQUEST_ID_CHARS_MAX).collect())
}
