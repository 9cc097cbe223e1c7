//! Counts the results of a tick, across its concurrent tasks.

use std::sync::atomic::{AtomicU32, Ordering};

use bench_state::{CompareError, StateError};

/// Results of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticked {
    /// Runs made.
    pub started: u32,
    /// Planned times whose run was given up, or that were missed without a later one to replace them.
    pub not_started: u32,
    /// Planned times missed.
    pub missed: u32,
    /// Runs found to be over.
    pub ended: u32,
    /// Runs found to take too long.
    pub not_finished: u32,
    /// Runs that scored worse than the previous one.
    pub regressed: u32,
    /// Messages delivered.
    pub delivered: u32,
    /// Schedules and firings that were skipped because of errors.
    pub skipped: u32,
}

/// [`Ticked`] as atomic counters for concurrent tasks.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) started: AtomicU32,
    pub(crate) not_started: AtomicU32,
    pub(crate) missed: AtomicU32,
    pub(crate) ended: AtomicU32,
    pub(crate) not_finished: AtomicU32,
    pub(crate) regressed: AtomicU32,
    pub(crate) delivered: AtomicU32,
    pub(crate) skipped: AtomicU32,
}

pub(crate) fn count(counter: &AtomicU32) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    pub(crate) fn sum(&self) -> Ticked {
        let read = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
        Ticked {
            started: read(&self.started),
            not_started: read(&self.not_started),
            missed: read(&self.missed),
            ended: read(&self.ended),
            not_finished: read(&self.not_finished),
            regressed: read(&self.regressed),
            delivered: read(&self.delivered),
            skipped: read(&self.skipped),
        }
    }
}

/// Reason why a firing could not be continued in this tick.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FiringError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Compare(#[from] CompareError),
}
