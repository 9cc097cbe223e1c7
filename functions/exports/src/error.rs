//! Errors of exports.

use bench_blobs::BlobError;
use bench_domain::RunId;
use bench_signing::{ArchiveError, CanonicalError, KeyError};
use bench_state::StateError;

/// An export that couldn't be built. Independent of HTTP.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The run doesn't exist.
    #[error("there is no run {0}")]
    NotFound(RunId),
    /// The run doesn't have the benchmark of the order.
    #[error("Benchmark not found in run")]
    NoSuchBenchmark,
    /// The run is not over, or was canceled.
    #[error("Run must be completed before export")]
    NotCompleted,
    /// The run is over, but its benchmarks are still being closed and may change.
    #[error("the run's benchmarks are still being closed; try again")]
    NotSettled,
    /// The run was requeued or deleted while the export was built.
    #[error("the run changed while its export was built")]
    Changed,
    /// No usable signing key.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The run or its samples couldn't be read.
    #[error("the run could not be read: {0}")]
    State(#[from] StateError),
    /// A stored answer couldn't be read now, or the file couldn't be stored.
    #[error("the stored objects could not be used: {0}")]
    Blobs(#[from] BlobError),
    /// The archive couldn't be written.
    #[error("the archive could not be written: {0}")]
    Archive(#[from] ArchiveError),
    /// The results couldn't be written.
    #[error("the results could not be written: {0}")]
    Canonical(#[from] CanonicalError),
    /// The table couldn't be written.
    #[error("the table could not be written: {0}")]
    Table(#[from] csv::Error),
    /// A line of JSON couldn't be written.
    #[error("a line could not be written: {0}")]
    Line(#[from] serde_json::Error),
    /// The report couldn't be rendered.
    #[error(transparent)]
    Report(#[from] bench_report::ReportError),
    /// A task of the export ended without a result.
    #[error("a step of the export ended early: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
}
