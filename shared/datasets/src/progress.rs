//! Progress reports during the preparation of a dataset.

use std::time::Duration;

/// A step of the preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// The hub is asked for the revision and its files.
    Resolving {
        /// Id at the hub.
        dataset: &'a str,
    },
    /// Data is being received.
    Downloading {
        /// The file that is being downloaded.
        file: &'a str,
        /// Bytes received so far, over all files.
        done_bytes: u64,
        /// Bytes of all files, if the hub reported them.
        total_bytes: Option<u64>,
    },
    /// A request failed and will be retried after a wait.
    Waiting {
        /// Time to wait.
        wait: Duration,
        /// Reason of the failure.
        problem: &'a str,
    },
    /// Members of an archive are being stored as documents.
    Unpacking {
        /// Documents stored so far.
        documents: u64,
    },
    /// Rows are being turned into items.
    Normalizing {
        /// Items stored so far.
        items: u64,
    },
}

/// Receives progress reports. Called often; implementations should return immediately.
pub trait Progress: Send + Sync {
    /// Reports a step.
    fn step(&self, step: Step<'_>);
}

/// Ignores all progress reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn step(&self, _: Step<'_>) {}
}
