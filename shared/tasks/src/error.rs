//! Errors of uploaded tasks.

use bench_blobs::BlobError;
use bench_datasets::DatasetError;
use bench_state::StateError;
use bench_terminal_tasks::Refusal;

/// Reasons for which a task can't be checked, stored, read or ordered.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The archive isn't a task or an agent that this system can run.
    #[error("{0}")]
    Refused(Refusal),
    /// The archive of a task is missing.
    #[error("the archive of task `{0}` is missing; upload it again")]
    ArchiveMissing(String),
    /// An order gives a variable that none of its tasks asks for.
    #[error("unknown option `env.{name}`: none of the tasks asks for this variable; {advice}")]
    UnknownVariable {
        /// Name of the variable.
        name: String,
        /// The variable that may be meant, or those that the tasks ask for.
        advice: String,
    },
    /// A removal of the same content takes too long.
    #[error("another request is removing the same task; try again in a minute")]
    RemovalInProgress,
    /// The table failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The blob store failed.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The tasks couldn't be imported as a dataset.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A temporary file couldn't be written or read.
    #[error("the archive could not be kept in a temporary file: {0}")]
    Io(#[from] std::io::Error),
    /// A task of this process failed.
    #[error("the archive could not be checked: {0}")]
    Internal(String),
}
