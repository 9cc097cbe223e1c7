//! Errors of exports.

use bench_blobs::BlobError;
use bench_domain::{BenchmarkName, RunId, is_layout_control};
use bench_signing::{ArchiveError, CanonicalError, KeyError};
use bench_state::{RunWithBenchmarks, StateError};

/// An export that couldn't be built. Independent of HTTP.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The run doesn't exist.
    #[error("there is no run {0}")]
    NotFound(RunId),
    /// The run doesn't have the benchmark of the order.
    #[error("the run has no benchmark `{name}`; it has {}", names(of_run))]
    NoSuchBenchmark {
        /// Name in the order.
        name: String,
        /// Benchmarks of the run.
        of_run: Vec<BenchmarkName>,
    },
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

impl ExportError {
    /// Returns the error for a benchmark that a run doesn't have.
    pub(crate) fn no_such_benchmark(found: &RunWithBenchmarks, name: &str) -> Self {
        let of_run = found.benchmarks.iter().map(|record| record.name.clone()).collect();
        // A caller's text stays within its sentence.
        Self::NoSuchBenchmark { name: name.replace(is_layout_control, " "), of_run }
    }
}

fn names(benchmarks: &[BenchmarkName]) -> String {
    let names: Vec<String> = benchmarks.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
