//! What goes wrong with the service, and what a caller can do about it.

use std::time::Duration;

use crate::read::NotThat;

/// Characters of the service's own words that go into an error.
const EXCERPT_CHARS_MAX: usize = 200;

/// Why the service gave nothing that can be used. The service's own words are repeated only as a short excerpt
/// without control characters, and never the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandyError {
    /// `SANDY_API_KEY` is not set.
    #[error("Sandy API key is not configured")]
    NoKey,
    /// `SANDY_BASE_URL` is not set.
    #[error("Sandy base URL is not configured")]
    NoAddress,
    /// No connection, or it broke off.
    #[error("Sandy cannot be reached: {0}")]
    Unreachable(String),
    /// The call took too long.
    #[error("Sandy did not answer within {seconds} s")]
    Timeout {
        /// The limit.
        seconds: u64,
    },
    /// A status other than success, of which nothing more is said.
    #[error("Sandy answered with status {0}")]
    Status(u16),
    /// A status other than success, with the beginning of what the service says about it.
    #[error("Sandy answered with status {status}: {excerpt}")]
    Rejected {
        /// The status.
        status: u16,
        /// At most 200 characters, none of them a control character.
        excerpt: String,
    },
    /// The service takes nothing more now.
    #[error("Sandy is full or busy (status {status})")]
    Full {
        /// 408, 429 or 503.
        status: u16,
        /// How long it asks to wait, at most a day.
        retry_after: Option<Duration>,
    },
    /// The sandbox is no more: ended, preempted, or never there.
    #[error("The sandbox is gone")]
    Gone,
    /// The sandbox is no more: its programs went over one of its limits, and its host ended it for that.
    #[error("The sandbox was ended: {0}")]
    OverLimit(String),
    /// More bytes than are taken.
    #[error("Sandy's answer is longer than is taken")]
    TooLong,
    /// JSON of another shape, or none.
    #[error("Sandy's answer has another shape than expected: {0}")]
    Shape(String),
    /// A sandbox was asked for, and the answer names none.
    #[error("Missing sandboxId in response")]
    NoSandboxId,
    /// The answer does not say how the command ended, nor whether it was run.
    #[error("Sandy's answer has no exitCode: how the command ended is unknown")]
    NoExitCode,
    /// The sandbox was still starting; the command was not run.
    #[error("The sandbox was not ready: the command was not run")]
    NotReady,
    /// What is to be the id of a sandbox is none.
    #[error("This is no id of a sandbox")]
    BadId,
    /// What is to be the path of a file is none: empty, longer than 1,024 bytes, or with a control character.
    #[error("This is no path of a file")]
    BadPath,
}

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandyErrorKind {
    /// The same again may work. Whether the call had an effect is unknown.
    Transient,
    /// The same again may work after a wait.
    Busy,
    /// Only another sandbox helps.
    Gone,
    /// Address or key are missing, the key is refused, or the host makes no sandboxes: nobody's call works.
    Refused,
    /// This call never works.
    Fatal,
}

impl SandyError {
    /// What can be done about it.
    pub fn kind(&self) -> SandyErrorKind {
        match self {
            Self::NoKey | Self::NoAddress => SandyErrorKind::Refused,
            Self::Status(status) | Self::Rejected { status, .. } => kind_of(*status),
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

    /// How long the service asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Full { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl From<NotThat> for SandyError {
    fn from(wrong: NotThat) -> Self {
        Self::Shape(wrong.to_string())
    }
}

fn kind_of(status: u16) -> SandyErrorKind {
    match status {
        // 501: the host will never make a sandbox.
        401 | 403 | 501 => SandyErrorKind::Refused,
        408 | 429 | 503 => SandyErrorKind::Busy,
        // Below 400 it is a redirect, which is never followed.
        500.. => SandyErrorKind::Transient,
        _ => SandyErrorKind::Fatal,
    }
}

/// The limit that a sandbox was ended for, where the service says so in `overLimit`: at most 200 characters.
pub(crate) fn over_limit(body: &[u8]) -> Option<String> {
    let said: serde_json::Value = serde_json::from_slice(body).ok()?;
    let limit = said.get("overLimit")?.as_str()?;
    let clean = limit.chars().filter(|c| !c.is_control()).take(EXCERPT_CHARS_MAX);
    Some(clean.collect())
}

/// Whether these words of the service say that a sandbox is no more.
pub(crate) fn says_gone(text: &str) -> bool {
    let text = text.to_lowercase();
    let ends = ["sandbox not found", "sandbox missing", "sandbox expired", "sandbox terminated"];
    ends.iter().any(|end| text.contains(end)) || (text.contains("sandbox") && text.contains("preempt"))
}

/// Whether these words on standard error say that the sandbox was still starting.
pub(crate) fn says_not_ready(stderr: &str) -> bool {
    let text = stderr.to_lowercase();
    text.contains("vsock handshake failed") || text.contains("agent not ready")
}

/// The beginning of what the service says, without the key and fit to be shown.
pub(crate) fn excerpt(body: &[u8], key: &str) -> String {
    let text = String::from_utf8_lossy(body);
    let said = serde_json::from_str::<serde_json::Value>(&text).ok().and_then(|value| {
        ["detail", "error", "message"].iter().find_map(|name| value.get(name)?.as_str().map(str::to_owned))
    });
    let text = said.unwrap_or_else(|| text.into_owned()).replace(key, "***");
    shown(&text, EXCERPT_CHARS_MAX)
}

/// At most so many characters of a text in one line, none of them a control character.
pub(crate) fn shown(text: &str, chars_max: usize) -> String {
    let words = text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty());
    let mut shown = String::new();
    let mut chars = 0;
    for word in words {
        for c in (!shown.is_empty()).then_some(' ').into_iter().chain(word.chars()) {
            if chars == chars_max {
                shown.push('…');
                return shown;
            }
            shown.push(c);
            chars += 1;
        }
    }
    if shown.is_empty() { "nothing more is said".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_apart_from_any_other_end() {
        let told = over_limit(br#"{"detail": "It was ended.", "overLimit": "too\nmuch"}"#);
        assert_eq!(told.as_deref(), Some("toomuch"));
        for other in
            [&br#"{"detail": "There is no sandbox."}"#[..], br#"{"overLimit": 3}"#, b"overLimit", b""]
        {
            assert_eq!(over_limit(other), None);
        }
        assert_eq!(SandyError::OverLimit(String::new()).kind(), SandyErrorKind::Fatal);
    }

    #[test]
    fn words_of_lost_sandboxes_are_known() {
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
    fn an_excerpt_is_short_has_no_control_characters_and_not_the_key() {
        assert_eq!(
            excerpt(br#"{"detail":"no room\nfor s3cret-key \u001b[31m!"}"#, "s3cret-key"),
            "no room for *** [31m!"
        );
        assert_eq!(excerpt(b"", "k"), "nothing more is said");
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
