//! Failures of a call, and their meaning for the sample and its run.

use std::fmt;
use std::time::Duration;

use bench_domain::{Code, Usage};
use serde::{Deserialize, Serialize};

use crate::Keys;

/// Maximum number of characters of a provider's body that a cause quotes.
pub(crate) const QUOTED_CHARS_MAX: usize = 1000;

/// Meaning of a failure. Determined by the HTTP status and the structure of the error body, never by text that a
/// model wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// Every further call of this run would fail as well.
    FatalForRun(Fatal),
    /// The provider asked to wait: 429, 503 and 529. The wait applies to all requests with the same credential and
    /// model. It isn't a failed attempt; such waits are limited by time, not by their number.
    RateLimited,
    /// Temporary failure: 408, 409, 425, other 5xx, connections that fail or break, incomplete or malformed answers.
    /// The attempt has failed; such failures are limited by their number.
    Transient,
    /// The prompt or the answer is too long. Trying again would end the same way.
    TooLong(TooLong),
    /// The model doesn't support an image of the prompt. Says nothing about prompts without images.
    Unsupported,
    /// The provider's policy blocks the prompt or the answer. Says nothing about other items.
    Refused,
    /// The provider rejects this request for another reason: the other 4xx. The same request would be rejected again.
    Bad,
    /// The answer exceeds the maximum size. It was paid for, and another one would be as long.
    AnswerTooLarge,
}

impl FailureKind {
    /// Returns true if the same request may succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Transient)
    }
}

/// Reason why no call of a run can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fatal {
    /// The key is refused or may not use the model: 401, 403.
    Key,
    /// The session of the signed-in user whose account pays is over.
    Session,
    /// The account lacks money or quota: 402, or an error code for that.
    Quota,
    /// The provider doesn't have the model: 404, or an error code for that.
    Model,
    /// The configured address can't be used, or answers with a redirect.
    Address,
}

/// Limit that an answer exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TooLong {
    /// The prompt does not fit the model's context or the provider's size limit.
    Context,
    /// The answer was not complete at the deadline.
    Time,
}

/// Party that ended the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GaveUpBy {
    /// The provider, or the network on the way to it.
    Provider,
    /// This program: a timeout, a deadline or a size limit.
    Runner,
}

impl fmt::Display for GaveUpBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Provider => "the provider gave up",
            Self::Runner => "the runner gave up",
        })
    }
}

/// A call that returned no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct Failure {
    /// Meaning of the failure.
    pub kind: FailureKind,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Description in one sentence. Quotes at most 1,000 characters of the provider's body; never a key.
    pub cause: String,
    /// The provider's id of the request, if it sent one.
    pub request_id: Option<String>,
    /// Wait that the provider asked for, at most a day.
    pub retry_after: Option<Duration>,
    /// Party that ended the call.
    pub gave_up_by: GaveUpBy,
    /// Tokens that were generated nevertheless, if an answer had begun: as the provider counted them, else estimated
    /// from the received text, without the prompt, and marked as an estimate.
    pub usage: Option<Usage>,
}

impl Failure {
    pub(crate) const fn new(kind: FailureKind, gave_up_by: GaveUpBy, cause: String) -> Self {
        Self { kind, status: None, cause, request_id: None, retry_after: None, gave_up_by, usage: None }
    }

    /// Creates the failure of a request that wasn't sent, since the session whose account pays is over.
    pub fn session_over(cause: impl Into<String>) -> Self {
        Self::new(FailureKind::FatalForRun(Fatal::Session), GaveUpBy::Runner, cause.into())
    }

    /// Creates the failure of a request that wasn't sent, and may be sent after this time.
    pub fn not_yet(wait: Duration, cause: impl Into<String>) -> Self {
        let failure = Self::new(FailureKind::RateLimited, GaveUpBy::Runner, cause.into());
        Self { retry_after: Some(wait), ..failure }
    }

    /// Returns the stable code of the failure, for a failure of the model's provider.
    pub const fn code(&self) -> Code {
        match self.kind {
            FailureKind::FatalForRun(Fatal::Key) => Code::InvalidKey,
            FailureKind::FatalForRun(Fatal::Session) => Code::SessionInvalid,
            FailureKind::FatalForRun(Fatal::Quota) => Code::QuotaExhausted,
            FailureKind::FatalForRun(Fatal::Model) => Code::ModelNotFound,
            FailureKind::FatalForRun(Fatal::Address) => Code::ProviderNotConfigured,
            FailureKind::RateLimited => Code::RateLimited,
            FailureKind::Transient => match (self.gave_up_by, self.status) {
                (GaveUpBy::Runner, _) => Code::ProviderTimeout,
                (GaveUpBy::Provider, None) => Code::ProviderUnreachable,
                (GaveUpBy::Provider, Some(_)) => Code::ProviderError,
            },
            FailureKind::TooLong(TooLong::Context) => Code::ContextTooLong,
            FailureKind::TooLong(TooLong::Time) => Code::AnswerTimeout,
            FailureKind::Unsupported => Code::ImagesUnsupported,
            FailureKind::Refused => Code::ContentFiltered,
            FailureKind::Bad => Code::RequestRejected,
            FailureKind::AnswerTooLarge => Code::AnswerTooLarge,
        }
    }

    /// Removes keys from the texts that a provider sent.
    pub fn redact(&mut self, keys: &Keys) {
        keys.redact_in(&mut self.cause);
        self.request_id.as_mut().map(|id| keys.redact_in(id));
    }
}

/// Returns the cause of an HTTP error, such as `HTTP 429 from Chutes: slow down (request_id=r1)`.
pub(crate) fn http_cause(from: &str, status: u16, body: &str, request_id: Option<&str>) -> String {
    let body = match body.trim() {
        "" => "Empty response body".to_owned(),
        body => quote(body),
    };
    let id = request_id.map(|id| format!(" (request_id={id})")).unwrap_or_default();
    format!("HTTP {status} from {from}: {body}{id}")
}

/// Returns an untrusted text, cut to [`QUOTED_CHARS_MAX`] and without control characters.
pub(crate) fn quote(text: &str) -> String {
    let text = text.trim();
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        None => text.chars().map(clean).collect(),
        Some((end, _)) => {
            let mut quoted: String = text.get(..end).unwrap_or("").chars().map(clean).collect();
            quoted.push_str("...(truncated)");
            quoted
        }
    }
}

/// Returns the beginning of a body as text.
pub(crate) fn quote_bytes(bytes: &[u8]) -> String {
    // Four bytes per character are enough; the rest is never read.
    let head = bytes.get(..8192).unwrap_or(bytes);
    quote(&String::from_utf8_lossy(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_causes_follow_the_vectors() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/inference-errors.json");
        let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let cases = all["http_error_text"].as_array().unwrap();
        assert!(cases.len() >= 3);
        for case in cases {
            let status = u16::try_from(case["status"].as_u64().unwrap()).unwrap();
            let body = case["body"].as_str().unwrap();
            let cause = http_cause("Chutes", status, body, case["request_id"].as_str());
            assert_eq!(cause, case["text"]);
        }
    }

    #[test]
    fn a_long_body_is_cut_between_characters() {
        assert_eq!(quote(&"é".repeat(1000)), "é".repeat(1000));
        assert_eq!(quote(&"é".repeat(1001)), format!("{}...(truncated)", "é".repeat(1000)));
        assert_eq!(quote(" a\r\nb\u{1b}[31m "), "a  b [31m");
    }
}
