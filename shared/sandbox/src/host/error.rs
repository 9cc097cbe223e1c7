//! Errors of the sandbox host.

use std::time::Duration;

use crate::isolation::IsolationError;

/// Errors of requests to the sandbox host. Each message is one sentence for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The sandbox doesn't exist, or no longer exists.
    #[error("There is no sandbox `{0}`: it was never created here, or it was ended or preempted.")]
    Gone(String),
    /// The sandbox was ended because its programs exceeded a limit.
    #[error("The sandbox `{id}` was ended: {limit}.")]
    OverLimit {
        /// Id of the sandbox.
        id: String,
        /// Description of the exceeded limit.
        limit: String,
    },
    /// The files in the sandbox don't allow the operation.
    #[error("{0}")]
    Conflict(String),
    /// Too many requests are waiting, of this caller or in total.
    #[error("{0}")]
    TooManyRequests(String),
    /// No slot became free in time, or the machine is out of resources.
    #[error("{reason}")]
    Full {
        /// Reason, in one sentence.
        reason: String,
        /// Time after which callers may try again.
        retry_after: Duration,
    },
    /// The host can't create sandboxes, and retrying doesn't help.
    #[error("{0}")]
    Unavailable(String),
    /// An internal error. A command may or may not have been started.
    #[error("{0}")]
    Failed(String),
}

impl HostError {
    /// Converts an error of an existing sandbox.
    pub(super) fn from_sandbox_error(error: IsolationError, id: &str) -> Self {
        match error {
            IsolationError::Gone => Self::Gone(id.to_owned()),
            IsolationError::Path(_) => Self::Invalid(sentence(&error)),
            IsolationError::Write(_) => Self::Conflict(sentence(&error)),
            IsolationError::Unsafe(_) | IsolationError::Failed(_) | IsolationError::NoEngine(_) => {
                Self::Failed(sentence(&error))
            }
        }
    }

    /// Converts an error of creating a sandbox.
    pub(super) fn from_creation_error(error: &IsolationError) -> Self {
        match error {
            IsolationError::Unsafe(_) | IsolationError::NoEngine(_) => Self::Unavailable(sentence(error)),
            _ => Self::Full { reason: sentence(error), retry_after: Duration::from_secs(5) },
        }
    }
}

/// Formats an error as a sentence, with a capital letter and a period.
pub(super) fn sentence(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let mut chars = text.trim().trim_end_matches('.').chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}
