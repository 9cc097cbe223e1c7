//! What a tick did, counted by all that take part in it.

use std::sync::atomic::{AtomicU32, Ordering};

use bench_state::{CompareError, StateError};

/// What a tick did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticked {
    /// Runs that were made.
    pub started: u32,
    /// Planned times whose run was given up, or that were missed without another one in their place.
    pub not_started: u32,
    /// Planned times that were missed.
    pub missed: u32,
    /// Runs that were found to be over.
    pub ended: u32,
    /// Runs that were found to take too long.
    pub not_finished: u32,
    /// Runs that are worse than the one before.
    pub regressed: u32,
    /// Messages that were delivered.
    pub told: u32,
    /// Schedules and firings that could not be looked after this time.
    pub passed_over: u32,
}

/// [`Ticked`] as it is counted by several at once.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) started: AtomicU32,
    pub(crate) not_started: AtomicU32,
    pub(crate) missed: AtomicU32,
    pub(crate) ended: AtomicU32,
    pub(crate) not_finished: AtomicU32,
    pub(crate) regressed: AtomicU32,
    pub(crate) told: AtomicU32,
    pub(crate) passed_over: AtomicU32,
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
            told: read(&self.told),
            passed_over: read(&self.passed_over),
        }
    }
}

/// Why one firing could not be gone on with this time.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FiringError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Compare(#[from] CompareError),
}
