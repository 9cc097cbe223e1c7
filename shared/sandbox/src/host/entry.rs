//! One sandbox, as its host knows it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bench_domain::Timestamp;
use serde::{Serialize, Serializer};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::SandboxHost;
use super::life::Why;
use super::room::Number;
use crate::isolation::Sandbox;

/// How urgent a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// 0: before all others.
    Critical,
    /// 1.
    High,
    /// 2: unless said otherwise.
    Normal,
    /// 3: batches.
    Low,
}

impl Priority {
    /// The most urgent first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];

    /// The priority of that number, 0 to 3.
    pub fn of_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// 0 to 3.
    pub const fn number(self) -> u64 {
        self as u64
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

impl Serialize for Priority {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.number())
    }
}

/// A sandbox as its callers see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxView {
    /// Its id.
    pub sandbox_id: String,
    /// `running`: what is over is not found.
    pub status: &'static str,
    /// 0 to 3.
    pub priority: Priority,
    /// Whether it gives way to sandboxes of higher priority.
    pub preemptable: bool,
    /// How it is kept apart.
    pub isolation: &'static str,
    /// Whether it holds a slot; an idle one may have lent it to others.
    pub has_slot: bool,
    /// Commands that run in it now and were not left in the background.
    pub commands: usize,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, by the end of a command or a file.
    pub used_at: Timestamp,
    /// When it is ended at the latest.
    pub expires_at: Timestamp,
}

/// A place in the room, from the wish for it on. It comes free when this is dropped.
pub(super) struct Place {
    pub(super) host: Weak<SandboxHost>,
    pub(super) number: Number,
}

impl Place {
    /// Gives it up. It does not matter how often.
    fn leave(&self) {
        if let Some(host) = self.host.upgrade() {
            host.change_room(|room| room.gone(self.number));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

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
        let (now, now_at) = (Instant::now(), Timestamp::now());
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
        activity.used_at = Timestamp::now();
    }
}
