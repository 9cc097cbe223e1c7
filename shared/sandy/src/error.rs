//! Errors of the service, and what callers can do about them.

use std::time::Duration;

use crate::read::FieldError;

/// Maximum number of characters of the service's error text that an error repeats.
const EXCERPT_CHARS_MAX: usize = 200;

/// Errors of calls to the service. The service's own text is repeated only as a short excerpt without control
/// characters, and never the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandyError {
    /// `SANDY_API_KEY` is not set.
    #[error("Sandy API key is not configured: set SANDY_API_KEY")]
    NoKey,
    /// `SANDY_BASE_URL` is not set.
    #[error("Sandy base URL is not configured: set SANDY_BASE_URL")]
    NoAddress,
    /// The connection failed or broke.
    #[error("Sandy cannot be reached: {0}")]
    Unreachable(String),
    /// The call took too long.
    #[error("Sandy did not answer within {seconds} s")]
    Timeout {
        /// The time limit.
        seconds: u64,
    },
    /// A status other than success, without the service's text.
    #[error("Sandy answered with status {0}")]
    Status(u16),
    /// A status other than success, with the beginning of the service's text.
    #[error("Sandy answered with status {status}: {excerpt}")]
    Rejected {
        /// The status.
        status: u16,
        /// At most 200 characters, none of them a control character.
        excerpt: String,
    },
    /// The service accepts no requests at the moment.
    #[error("Sandy is full or busy (status {status})")]
    Full {
        /// 408, 429 or 503.
        status: u16,
        /// Time that the service asks to wait, at most a day.
        retry_after: Option<Duration>,
    },
    /// The sandbox was ended or preempted, or never existed.
    #[error("The sandbox is gone")]
    Gone,
    /// The host ended the sandbox because its programs exceeded a limit.
    #[error("The sandbox was ended: {0}")]
    OverLimit(String),
    /// The answer exceeds the size limit.
    #[error("Sandy's answer is too long")]
    TooLong,
    /// The answer isn't JSON, or not of the expected shape.
    #[error("Sandy's answer has an unexpected shape: {0}")]
    Shape(String),
    /// The answer to a creation contains no sandbox id.
    #[error("Missing sandboxId in response")]
    NoSandboxId,
    /// The answer says neither how the command ended, nor whether it was run.
    #[error("Sandy's answer has no exitCode: how the command ended is unknown")]
    NoExitCode,
    /// The sandbox was still starting, and the command was not run.
    #[error("The sandbox was not ready: the command was not run")]
    NotReady,
    /// The sandbox id is invalid.
    #[error("This is not a valid sandbox id")]
    BadId,
    /// The path is invalid: empty, longer than 1,024 bytes, or with a control character.
    #[error("This is not a valid file path")]
    BadPath,
}

/// Kinds of errors, by what callers can do about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandyErrorKind {
    /// A retry may succeed. The call may or may not have had an effect.
    Transient,
    /// A retry may succeed after a wait.
    Busy,
    /// The caller needs another sandbox.
    Gone,
    /// All calls fail: address or key are missing, the service rejects the key, or the host can't create sandboxes.
    Refused,
    /// This call can't succeed.
    Fatal,
}

impl SandyError {
    /// Returns what callers can do about the error.
    pub fn kind(&self) -> SandyErrorKind {
        match self {
            Self::NoKey | Self::NoAddress => SandyErrorKind::Refused,
            Self::Status(status) | Self::Rejected { status, .. } => kind_for_status(*status),
            Self::Full { .. } => SandyErrorKind::Busy,
            Self::Gone => SandyErrorKind::Gone,
            Self::OverLimit(_) | Self::TooLong | Self::BadId | Self::BadPath => SandyErrorKind::Fatal,
            Self::Unreachable(_)
            | Self::Timeout { .. }
            | Self::Shape(_)
            | Self::NoSandboxId
            | Self::NoExitCode
            | Self::NotReady => SandyErrorKind::Transient,
        }
    }

    /// Returns the time that the service asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Full { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl From<FieldError> for SandyError {
    fn from(invalid: FieldError) -> Self {
        Self::Shape(invalid.to_string())
    }
}

fn kind_for_status(status: u16) -> SandyErrorKind {
    match status {
        // 501: the host can't create sandboxes at all.
        401 | 403 | 501 => SandyErrorKind::Refused,
        408 | 429 | 503 => SandyErrorKind::Busy,
        // Below 400, it is a redirect, which the client never follows.
        500.. => SandyErrorKind::Transient,
        _ => SandyErrorKind::Fatal,
    }
}

/// Returns the limit that a sandbox was ended for, from the `overLimit` field of an answer: at most 200 characters.
pub(crate) fn over_limit(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let limit = body.get("overLimit")?.as_str()?;
    let clean = limit.chars().filter(|c| !c.is_control()).take(EXCERPT_CHARS_MAX);
    Some(clean.collect())
}

/// Returns true if the service's text says that a sandbox no longer exists.
pub(crate) fn says_gone(text: &str) -> bool {
    let text = text.to_lowercase();
    let ends = ["sandbox not found", "sandbox missing", "sandbox expired", "sandbox terminated"];
    ends.iter().any(|end| text.contains(end)) || (text.contains("sandbox") && text.contains("preempt"))
}

/// Returns true if a standard error says that the sandbox was still starting.
pub(crate) fn says_not_ready(stderr: &str) -> bool {
    let text = stderr.to_lowercase();
    text.contains("vsock handshake failed") || text.contains("agent not ready")
}

/// Returns the beginning of the service's text, without the key and fit to be shown.
pub(crate) fn excerpt(body: &[u8], key: &str) -> String {
    let text = String::from_utf8_lossy(body);
    let detail = serde_json::from_str::<serde_json::Value>(&text).ok().and_then(|value| {
        ["detail", "error", "message"].iter().find_map(|name| value.get(name)?.as_str().map(str::to_owned))
    });
    let text = detail.unwrap_or_else(|| text.into_owned()).replace(key, "***");
    single_line(&text, EXCERPT_CHARS_MAX)
}

/// Returns at most `chars_max` characters of a text, on one line and without control characters.
pub(crate) fn single_line(text: &str, chars_max: usize) -> String {
    let words = text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty());
    let mut line = String::new();
    let mut chars = 0;
    for word in words {
        for c in (!line.is_empty()).then_some(' ').into_iter().chain(word.chars()) {
            if chars == chars_max {
                line.push('…');
                return line;
            }
            line.push(c);
            chars += 1;
        }
    }
    if line.is_empty() { "no details".to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exceeded_limit_is_recognized() {
        let limit = over_limit(br#"{"detail": "It was ended.", "overLimit": "too\nmuch"}"#);
        assert_eq!(limit.as_deref(), Some("toomuch"));
        for other in
            [&br#"{"detail": "There is no sandbox."}"#[..], br#"{"overLimit": 3}"#, b"overLimit", b""]
        {
            assert_eq!(over_limit(other), None);
        }
        assert_eq!(SandyError::OverLimit(String::new()).kind(), SandyErrorKind::Fatal);
    }

    #[test]
    fn texts_about_lost_sandboxes_are_recognized() {
        for text in [
            "Sandbox not found",
            "sandbox expired",
            "error: Sandbox Terminated by host",
            "the sandbox was preempted",
            "Preemption of sandbox 4",
            "sandbox missing",
        ] {
            assert!(says_gone(text), "{text}");
        }
        for text in ["not found", "preempted", "sandbox is busy", ""] {
            assert!(!says_gone(text), "{text}");
        }
        assert!(
            says_not_ready("x: Vsock handshake FAILED (os error 3)") && says_not_ready("agent not ready")
        );
        assert!(!says_not_ready("agent ready"));
    }

    #[test]
    fn an_excerpt_is_short_and_contains_neither_control_characters_nor_the_key() {
        assert_eq!(
            excerpt(br#"{"detail":"no room\nfor s3cret-key \u001b[31m!"}"#, "s3cret-key"),
            "no room for *** [31m!"
        );
        assert_eq!(excerpt(b"", "k"), "no details");
        assert_eq!(excerpt(b"\xff\x00\r\n", "k"), "\u{fffd}");
        let long = excerpt("é ".repeat(5_000).as_bytes(), "k");
        assert_eq!((long.chars().count(), long.ends_with('…')), (EXCERPT_CHARS_MAX + 1, true));
    }

    #[test]
    fn statuses_have_kinds() {
        for (status, kind) in [
            (302, SandyErrorKind::Fatal),
            (400, SandyErrorKind::Fatal),
            (401, SandyErrorKind::Refused),
            (403, SandyErrorKind::Refused),
            (408, SandyErrorKind::Busy),
            (422, SandyErrorKind::Fatal),
            (429, SandyErrorKind::Busy),
            (500, SandyErrorKind::Transient),
            (501, SandyErrorKind::Refused),
            (503, SandyErrorKind::Busy),
            (504, SandyErrorKind::Transient),
        ] {
            assert_eq!(SandyError::Status(status).kind(), kind, "{status}");
        }
    }
}
