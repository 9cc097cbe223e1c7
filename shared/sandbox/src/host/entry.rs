//! One sandbox, as its host knows it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bench_domain::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::place::Place;
use super::priority::Priority;
use super::room::Number;
use super::why::Why;
use crate::isolation::Sandbox;

/// What is known of one sandbox.
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) priority: Priority,
    pub(super) preemptable: bool,
    pub(super) sandbox: Arc<dyn Sandbox>,
    pub(super) created: Instant,
    pub(super) created_at: Timestamp,
    /// Cancelled as soon as it is being ended.
    pub(super) ended: CancellationToken,
    /// Why it was ended.
    pub(super) why: OnceLock<Why>,
    /// Cancelled when it is gone.
    pub(super) gone: CancellationToken,
    place: Place,
    activity: Mutex<Activity>,
}

/// How a sandbox was used.
#[derive(Debug)]
pub(super) struct Activity {
    /// When it was last used.
    pub(super) used: Instant,
    /// The same by the calendar.
    pub(super) used_at: Timestamp,
    /// Commands that run now.
    pub(super) running: usize,
    /// Its CPU seconds when whether it is idle was last looked at.
    pub(super) looked: Option<(Instant, f64)>,
    /// Its CPU seconds when they were last told in statistics.
    pub(super) told: Option<(Instant, f64)>,
}

impl Entry {
    pub(super) fn new(
        id: String,
        priority: Priority,
        preemptable: bool,
        sandbox: Arc<dyn Sandbox>,
        place: Place,
    ) -> Self {
        let (now, now_at) = (Instant::now(), bench_clock::now());
        Self {
            id,
            priority,
            preemptable,
            sandbox,
            created: now,
            created_at: now_at,
            ended: CancellationToken::new(),
            why: OnceLock::new(),
            gone: CancellationToken::new(),
            place,
            activity: Mutex::new(Activity {
                used: now,
                used_at: now_at,
                running: 0,
                looked: None,
                told: Some((now, 0.0)),
            }),
        }
    }

    pub(super) fn number(&self) -> Number {
        self.place.number
    }

    /// Gives its place up.
    pub(super) fn leave(&self) {
        self.place.leave();
    }

    pub(super) fn activity(&self) -> MutexGuard<'_, Activity> {
        // Nothing in it can be half changed.
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that it is being used, until the answer is dropped.
    pub(super) fn in_use(self: &Arc<Self>) -> InUse {
        let mut activity = self.activity();
        activity.running += 1;
        activity.looked = None;
        drop(activity);
        InUse(Arc::clone(self))
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A use of a sandbox: it is not idle.
#[derive(Debug)]
pub(super) struct InUse(Arc<Entry>);

impl Drop for InUse {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        activity.running = activity.running.saturating_sub(1);
        activity.used = Instant::now();
        activity.used_at = bench_clock::now();
    }
}
