//! Errors of opening and using the embedded services. Every text is one sentence.

use std::io;
use std::path::{Path, PathBuf};

/// Errors of opening and running the embedded services.
///
/// This doesn't include errors of single AWS calls, which are AWS error responses that the SDK
/// parses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// Another process holds the lock of the data directory.
    #[error("The data directory {dir} is in use by {}.", holder_text(*pid))]
    InUse {
        /// The data directory.
        dir: PathBuf,
        /// The process that wrote the lock file last, if known.
        pid: Option<u32>,
        /// True if that process answers others on its socket, or will soon.
        shares: bool,
    },
    /// Another user has used the data directory.
    #[error(
        "{dir} is the data directory of user {owner}, and this is user {user}: run the command as that user, or give a folder of your own with --data-dir or BENCH_HOME."
    )]
    OtherUser {
        /// The data directory.
        dir: PathBuf,
        /// Id of the user whose files are in it.
        owner: u32,
        /// Id of this process's user.
        user: u32,
    },
    /// Other users can read the folder, and this program must not change its permissions.
    #[error(
        "{dir} cannot be the data directory, since others can read it and {reason}: give a folder of your own with --data-dir or BENCH_HOME."
    )]
    NotOwn {
        /// The folder.
        dir: PathBuf,
        /// Reason for which the permissions aren't changed.
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
        /// Operation that failed, as a verb: "create", "read".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file has invalid content.
    #[error("The file {path} cannot be used: {reason}.")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        reason: String,
    },
    /// A service could not be opened.
    #[error("Could not open the {service} store {path}: {reason}.")]
    Store {
        /// Name of the service: "DynamoDB", "SQS", "S3".
        service: &'static str,
        /// The service's file or directory.
        path: PathBuf,
        /// Error of the store.
        reason: String,
    },
    /// A running service failed.
    #[error("The embedded {service} service failed: {reason}.")]
    Failed {
        /// Name of the service.
        service: &'static str,
        /// Error of the store.
        reason: String,
    },
    /// The services have been closed.
    #[error("The embedded services are closed.")]
    Closed,
}

impl EmbeddedError {
    /// Creates the error of a failed file operation; a full disk has its own variant.
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
