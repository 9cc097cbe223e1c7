//! Errors of environments, by whose fault they are.

use std::fmt;
use std::time::Duration;

use bench_sandy::job::{JobError, JobErrorKind};

use crate::ProjectError;

/// Limits that an operation can exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Time of the builds.
    BuildTime,
    /// Size of an image.
    ImageSize,
    /// Time of the start.
    StartTime,
    /// Time to fetch files.
    FetchTime,
    /// Disk space of a container.
    ContainerDisk,
    /// Time of the whole operation in the sandbox.
    OperationTime,
    /// Limits of the sandbox itself: memory, processes, disk.
    Sandbox,
}

impl Limit {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "build-time" => Self::BuildTime,
            "image-size" => Self::ImageSize,
            "start-time" => Self::StartTime,
            "fetch-time" => Self::FetchTime,
            "disk" => Self::ContainerDisk,
            _ => return None,
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuildTime => "the time limit of the build",
            Self::ImageSize => "the size limit of images",
            Self::StartTime => "the time limit of the start",
            Self::FetchTime => "the time limit of fetching files",
            Self::ContainerDisk => "the disk limit of containers",
            Self::OperationTime => "the time limit of the operation",
            Self::Sandbox => "a limit of the sandbox",
        })
    }
}

/// Errors of operations and queries. Logs are the last 16 KiB of output of the engine or of a build, and untrusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// The sandbox was lost, and with it the way to the containers. They may still run.
    #[error("the sandbox was lost")]
    SandboxLost,
    /// The sandbox host failed.
    #[error("the sandbox host: {0}")]
    Host(JobError),
    /// The sandbox has no container engine that works.
    #[error("{why}; use a sandbox host with a container engine")]
    NoEngine {
        /// Reason.
        why: String,
        /// Output of the command.
        log: String,
    },
    /// The engine failed.
    #[error("the container engine failed: {why}")]
    Engine {
        /// What failed.
        why: String,
        /// Output of the engine.
        log: String,
    },
    /// The compose files of the task are invalid.
    #[error("{why}")]
    Project {
        /// Reason.
        why: String,
        /// Output of compose.
        log: String,
    },
    /// The compose project asks for something that it must not have, or isn't one.
    #[error(transparent)]
    Refused(#[from] ProjectError),
    /// An image could not be built or pulled.
    #[error("{why}")]
    Build {
        /// Reason.
        why: String,
        /// End of the build's output.
        log: String,
    },
    /// The containers could not be started or prepared.
    #[error("{why}")]
    Start {
        /// Reason.
        why: String,
        /// Output of the engine.
        log: String,
    },
    /// The health check failed.
    #[error("{why}")]
    Unhealthy {
        /// Reason.
        why: String,
        /// Output of the last check.
        log: String,
    },
    /// The container is gone or has stopped.
    #[error("{why}")]
    ContainerGone {
        /// Reason.
        why: String,
        /// True if the engine says that it ran out of memory.
        out_of_memory: bool,
    },
    /// A limit was exceeded.
    #[error("{limit} was exceeded: {why}")]
    LimitExceeded {
        /// The limit.
        limit: Limit,
        /// Details.
        why: String,
        /// End of the output.
        log: String,
    },
    /// The environment was removed before this operation.
    #[error("the environment was removed")]
    Removed,
    /// The operation stopped without a result, because its processes were killed.
    #[error("operation `{operation}` stopped without a result")]
    Vanished {
        /// Name of the operation.
        operation: String,
    },
    /// The operation has an unexpected result.
    #[error("operation `{operation}` has an unexpected result")]
    UnexpectedResult {
        /// Name of the operation or query.
        operation: String,
    },
    /// The request itself is invalid.
    #[error("the request is invalid: {0}")]
    Invalid(String),
}

/// Kinds of errors, by what callers can do about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Repeat the call, after a wait.
    Busy,
    /// The host or its engine failed: try again in another environment.
    Infrastructure,
    /// No environment can work: the host has no engine, or rejects the key.
    Unavailable,
    /// The task is at fault: it fails in every environment.
    Task,
    /// The task or what runs in it exceeded a limit.
    Limit,
    /// Start over in another sandbox.
    SandboxLost,
    /// The caller is at fault, or removed the environment.
    Caller,
}

impl EnvironmentError {
    /// Returns what callers can do about the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::SandboxLost => ErrorKind::SandboxLost,
            Self::Host(error) => match error.kind() {
                JobErrorKind::Transient | JobErrorKind::Busy => ErrorKind::Busy,
                JobErrorKind::Gone => ErrorKind::SandboxLost,
                JobErrorKind::Refused => ErrorKind::Unavailable,
                JobErrorKind::Fatal => ErrorKind::Infrastructure,
            },
            Self::NoEngine { .. } => ErrorKind::Unavailable,
            Self::Engine { .. } | Self::Vanished { .. } | Self::UnexpectedResult { .. } => {
                ErrorKind::Infrastructure
            }
            Self::Project { .. }
            | Self::Refused(_)
            | Self::Build { .. }
            | Self::Start { .. }
            | Self::Unhealthy { .. }
            | Self::ContainerGone { .. } => ErrorKind::Task,
            Self::LimitExceeded { .. } => ErrorKind::Limit,
            Self::Removed | Self::Invalid(_) => ErrorKind::Caller,
        }
    }

    /// Returns the time that the sandbox host asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Host(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Returns the end of the output that explains the error, if there is any.
    pub fn log(&self) -> Option<&str> {
        match self {
            Self::NoEngine { log, .. }
            | Self::Engine { log, .. }
            | Self::Project { log, .. }
            | Self::Build { log, .. }
            | Self::Start { log, .. }
            | Self::Unhealthy { log, .. }
            | Self::LimitExceeded { log, .. } => Some(log.as_str()).filter(|log| !log.is_empty()),
            _ => None,
        }
    }
}

impl From<JobError> for EnvironmentError {
    fn from(error: JobError) -> Self {
        match error.kind() {
            JobErrorKind::Gone => Self::SandboxLost,
            _ => Self::Host(error),
        }
    }
}
