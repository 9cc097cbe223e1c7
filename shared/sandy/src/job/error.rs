//! What goes wrong with jobs.

use std::time::Duration;

use crate::{SandyError, SandyErrorKind};

/// Why a step of a job did not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The sandbox host.
    #[error(transparent)]
    Sandy(#[from] SandyError),
    /// The job cannot be run as it is written.
    #[error("the job cannot be run: {0}")]
    Spec(String),
    /// A stored file could not be read.
    #[error("the job's file `{path}` could not be read: {source}")]
    Source {
        /// Path of the job's file.
        path: String,
        /// What is wrong.
        source: SourceError,
    },
    /// The bytes of a stored file are not those that it should have.
    #[error("the job's file `{path}` has not the bytes that its checksum names")]
    Checksum {
        /// Path of the job's file.
        path: String,
    },
    /// The sandbox host does not have a file, nobody can download it, and it is too large to be sent.
    #[error(
        "the job's file `{path}` has {bytes} bytes: at most {bytes_max} are sent, and there is no address to download it from"
    )]
    TooLarge {
        /// Path of the job's file.
        path: String,
        /// Its length.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The sandbox could not download a file.
    #[error("the sandbox could not download the job's file `{path}`: {reason}")]
    Download {
        /// Path of the job's file.
        path: String,
        /// What the sandbox says, at most 200 characters.
        reason: String,
    },
    /// There is no `python3` in the sandbox.
    #[error("the sandbox has no python3")]
    NoPython,
    /// A command of ours failed in the sandbox.
    #[error("the sandbox could not {step}: {reason}")]
    Failed {
        /// Which command.
        step: &'static str,
        /// What it says, at most 200 characters.
        reason: String,
    },
    /// A command of ours answered something that it never says.
    #[error("the sandbox answered nothing that can be read when it was to {step}")]
    Garbled {
        /// Which command.
        step: &'static str,
    },
}

/// Why the bytes of a stored file could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SourceError {
    /// In a few words.
    pub reason: String,
    /// Whether the same again may work.
    pub is_passing: bool,
}

/// What can be done about a failed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobErrorKind {
    /// Make the step again.
    Transient,
    /// Make the step again after a wait.
    Busy,
    /// Begin again in another sandbox.
    Gone,
    /// Nobody's job works: address or key are missing, or the key is refused.
    Refused,
    /// This job never works.
    Fatal,
}

impl JobError {
    /// What can be done about it.
    pub fn kind(&self) -> JobErrorKind {
        match self {
            Self::Sandy(error) => match error.kind() {
                SandyErrorKind::Transient => JobErrorKind::Transient,
                SandyErrorKind::Busy => JobErrorKind::Busy,
                SandyErrorKind::Gone => JobErrorKind::Gone,
                SandyErrorKind::Refused => JobErrorKind::Refused,
                SandyErrorKind::Fatal => JobErrorKind::Fatal,
            },
            Self::Source { source, .. } if source.is_passing => JobErrorKind::Transient,
            Self::Download { .. } | Self::Failed { .. } | Self::Garbled { .. } => JobErrorKind::Transient,
            Self::Spec(_)
            | Self::Source { .. }
            | Self::Checksum { .. }
            | Self::TooLarge { .. }
            | Self::NoPython => JobErrorKind::Fatal,
        }
    }

    /// How long the sandbox host asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Sandy(error) => error.retry_after(),
            _ => None,
        }
    }
}
