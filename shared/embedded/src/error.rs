//! Why the embedded services could not be opened or used. Every text is one sentence.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of opening and running the embedded services.
///
/// Errors of single AWS calls are not here: those are AWS error answers that the SDK parses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// Another process holds the lock of the data directory.
    #[error("The data directory {dir} is in use by {}.", holder_text(*pid))]
    InUse {
        /// The data directory.
        dir: PathBuf,
        /// The process that wrote the lock file last, if it could be read.
        pid: Option<u32>,
    },
    /// The data directory is one that others can read and that this program must not close to them.
    #[error(
        "{dir} cannot be the data directory, since others can read it and {reason}: give a folder of your own with --data-dir or BENCH_HOME."
    )]
    NotOwn {
        /// The folder.
        dir: PathBuf,
        /// Why it isn't closed.
        reason: &'static str,
    },
    /// The disk is full.
    #[error("There is no space left on the disk for {path}.")]
    DiskFull {
        /// The file or directory that could not be written.
        path: PathBuf,
    },
    /// A file or directory could not be used.
    #[error("Could not {action} {path}: {source}.")]
    File {
        /// What was tried, as a verb: "create", "read".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file does not hold what this program writes there.
    #[error("The file {path} cannot be used: {reason}.")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// One of the services did not open.
    #[error("Could not open the {service} store {path}: {reason}.")]
    Store {
        /// The service: "DynamoDB", "SQS", "S3".
        service: &'static str,
        /// The service's file or directory.
        path: PathBuf,
        /// The cause as the store words it.
        reason: String,
    },
    /// A running service failed.
    #[error("The embedded {service} service failed: {reason}.")]
    Failed {
        /// The service.
        service: &'static str,
        /// The cause as the store words it.
        reason: String,
    },
    /// The services were closed.
    #[error("The embedded services are closed.")]
    Closed,
}

impl EmbeddedError {
    /// A failed file operation, with a full disk told apart.
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path: path.to_owned() }
            }
            _ => Self::File { action, path: path.to_owned(), source },
        }
    }
}

fn holder_text(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("another process (pid {pid})"),
        None => "another process".to_owned(),
    }
}
