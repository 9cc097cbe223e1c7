//! Why a request came to nothing.

use std::time::Duration;

use crate::isolation::IsolationError;

/// Why the host did not do what was asked. Each is one sentence for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The request makes no sense, field by field.
    #[error("{0}")]
    Invalid(String),
    /// It makes sense, but not on this host.
    #[error("{0}")]
    NotHere(String),
    /// There is no such sandbox, or no more.
    #[error("There is no sandbox `{0}`: it was never made here, or it was ended or preempted.")]
    Gone(String),
    /// There was such a sandbox: its programs went over a limit, and it was ended for it.
    #[error("The sandbox `{id}` was ended: {limit}.")]
    OverLimit {
        /// Which sandbox.
        id: String,
        /// What its programs did.
        limit: String,
    },
    /// As the files in the sandbox are, it cannot be done.
    #[error("{0}")]
    Conflict(String),
    /// Too many requests of this caller, or of all, are waiting.
    #[error("{0}")]
    TooMany(String),
    /// No place came free in time, or the machine has nothing left.
    #[error("{reason}")]
    Full {
        /// One sentence.
        reason: String,
        /// When it is worth asking again.
        retry_after: Duration,
    },
    /// The host makes no sandboxes, now or ever again.
    #[error("{0}")]
    Unable(String),
    /// Something went wrong inside. Whether a command was started is not known.
    #[error("{0}")]
    Failed(String),
}

impl HostError {
    /// As an error of a sandbox that exists is told.
    pub(super) fn of_sandbox(error: IsolationError, id: &str) -> Self {
        match error {
            IsolationError::Gone => Self::Gone(id.to_owned()),
            IsolationError::Path(_) => Self::Invalid(sentence(&error)),
            IsolationError::Write(_) => Self::Conflict(sentence(&error)),
            IsolationError::Unsafe(_) | IsolationError::Failed(_) => Self::Failed(sentence(&error)),
        }
    }

    /// As an error of making one is told.
    pub(super) fn of_making(error: &IsolationError) -> Self {
        match error {
            IsolationError::Unsafe(_) => Self::Unable(sentence(error)),
            _ => Self::Full { reason: sentence(error), retry_after: Duration::from_secs(5) },
        }
    }
}

/// The error as a sentence: a capital letter first, a full stop last.
pub(super) fn sentence(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let mut chars = text.trim().trim_end_matches('.').chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}
