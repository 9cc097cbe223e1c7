//! Errors of the services that an attempt needs.

use bench_blobs::BlobError;
use bench_datasets::DatasetError;
use bench_queue::QueueError;
use bench_state::StateError;

/// Reason why a sample could not be handled now. Its message is delivered again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PipelineError {
    /// The state store failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// A queue failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The blob store failed.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// An item or a text of its dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// Other writers kept changing the run.
    #[error("the run changed during every attempt to mark it as failed")]
    Races,
    /// The attempt panicked.
    #[error("the attempt panicked: {0}")]
    Panic(String),
}
