//! Errors of jobs.

use std::time::Duration;

use crate::{SandyError, SandyErrorKind};

/// Errors of the steps of a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// An error of the sandbox host.
    #[error(transparent)]
    Sandy(#[from] SandyError),
    /// The specification of the job is invalid.
    #[error("the job cannot be run: {0}")]
    Spec(String),
    /// The sandbox lacks packages that the job needs. The text names them and what to do.
    #[error("{0}")]
    MissingPackages(String),
    /// A stored file could not be read.
    #[error("the job's file `{path}` could not be read: {source}")]
    Source {
        /// Path of the job's file.
        path: String,
        /// The underlying error.
        source: SourceError,
    },
    /// The bytes of a stored file don't match its checksum.
    #[error("the job's file `{path}` does not match its checksum")]
    Checksum {
        /// Path of the job's file.
        path: String,
    },
    /// The sandbox host doesn't have a file, the file has no download address, and it is too large to be sent.
    #[error(
        "the job's file `{path}` has {bytes} bytes: at most {bytes_max} are sent, and there is no address to download it from"
    )]
    TooLarge {
        /// Path of the job's file.
        path: String,
        /// Length of the file.
        bytes: u64,
        /// Maximum length of files that are sent.
        bytes_max: u64,
    },
    /// The sandbox could not download a file.
    #[error("the sandbox could not download the job's file `{path}`: {reason}")]
    Download {
        /// Path of the job's file.
        path: String,
        /// Reason reported by the sandbox, at most 200 characters.
        reason: String,
    },
    /// There is no `python3` in the sandbox.
    #[error("the sandbox has no python3")]
    NoPython,
    /// One of our commands failed in the sandbox.
    #[error("the sandbox could not {step}: {reason}")]
    Failed {
        /// Name of the command.
        step: &'static str,
        /// Reason that it reports, at most 200 characters.
        reason: String,
    },
    /// One of our commands gave an unexpected answer.
    #[error("the sandbox gave an unexpected answer when it should {step}")]
    UnexpectedAnswer {
        /// Name of the command.
        step: &'static str,
    },
}

/// Error of reading a stored file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SourceError {
    /// Short description.
    pub reason: String,
    /// True if a retry may succeed.
    pub is_transient: bool,
}

/// Kinds of errors, by what callers can do about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobErrorKind {
    /// Repeat the step.
    Transient,
    /// Repeat the step after a wait.
    Busy,
    /// Start over in another sandbox.
    Gone,
    /// All jobs fail: address or key are missing, or the service rejects the key.
    Refused,
    /// This job can't succeed.
    Fatal,
}

impl JobError {
    /// Returns what callers can do about the error.
    pub fn kind(&self) -> JobErrorKind {
        match self {
            Self::Sandy(error) => match error.kind() {
                SandyErrorKind::Transient => JobErrorKind::Transient,
                SandyErrorKind::Busy => JobErrorKind::Busy,
                SandyErrorKind::Gone => JobErrorKind::Gone,
                SandyErrorKind::Refused => JobErrorKind::Refused,
                SandyErrorKind::Fatal => JobErrorKind::Fatal,
            },
            Self::Source { source, .. } if source.is_transient => JobErrorKind::Transient,
            Self::Download { .. } | Self::Failed { .. } | Self::UnexpectedAnswer { .. } => {
                JobErrorKind::Transient
            }
            Self::Spec(_)
            | Self::MissingPackages(_)
            | Self::Source { .. }
            | Self::Checksum { .. }
            | Self::TooLarge { .. }
            | Self::NoPython => JobErrorKind::Fatal,
        }
    }

    /// Returns the time that the sandbox host asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Sandy(error) => error.retry_after(),
            _ => None,
        }
    }
}
