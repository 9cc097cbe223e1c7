//! Entries of the host's table of sandboxes.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bench_domain::Timestamp;
use bench_engine::Proxy;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::end_reason::EndReason;
use super::priority::Priority;
use super::reservation::Reservation;
use super::slot_pool::HolderId;
use crate::isolation::Sandbox;

/// One sandbox of the host.
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) priority: Priority,
    pub(super) preemptable: bool,
    pub(super) sandbox: Arc<dyn Sandbox>,
    /// Its way to the container engine, if it has one.
    pub(super) proxy: Option<Proxy>,
    pub(super) created: Instant,
    pub(super) created_at: Timestamp,
    /// Canceled as soon as the host starts to end the sandbox.
    pub(super) ended: CancellationToken,
    /// Reason for which the sandbox was ended.
    pub(super) end_reason: OnceLock<EndReason>,
    /// Canceled when the processes and files of the sandbox are gone.
    pub(super) gone: CancellationToken,
    reservation: Reservation,
    activity: Mutex<Activity>,
}

/// Records when a sandbox was used.
#[derive(Debug)]
pub(super) struct Activity {
    /// Time of the last use.
    pub(super) last_used: Instant,
    /// Wall-clock time of the last use.
    pub(super) last_used_at: Timestamp,
    /// Number of running commands.
    pub(super) running: usize,
    /// Time of the last check for idleness, and the CPU seconds used until then.
    pub(super) idle_check: Option<(Instant, f64)>,
    /// Time of the last statistics, and the CPU seconds used until then.
    pub(super) last_stats: Option<(Instant, f64)>,
}

impl Entry {
    pub(super) fn new(
        id: String,
        priority: Priority,
        preemptable: bool,
        sandbox: Arc<dyn Sandbox>,
        proxy: Option<Proxy>,
        reservation: Reservation,
    ) -> Self {
        let (now, now_at) = (Instant::now(), bench_clock::now());
        Self {
            id,
            priority,
            preemptable,
            sandbox,
            proxy,
            created: now,
            created_at: now_at,
            ended: CancellationToken::new(),
            end_reason: OnceLock::new(),
            gone: CancellationToken::new(),
            reservation,
            activity: Mutex::new(Activity {
                last_used: now,
                last_used_at: now_at,
                running: 0,
                idle_check: None,
                last_stats: Some((now, 0.0)),
            }),
        }
    }

    pub(super) fn holder_id(&self) -> HolderId {
        self.reservation.holder_id
    }

    /// Returns the CPU time of its programs and containers, in seconds; `None` if it isn't known.
    pub(super) async fn cpu_seconds(&self) -> Option<f64> {
        let programs = self.sandbox.usage().await.cpu_seconds?;
        match &self.proxy {
            Some(proxy) => Some(programs + proxy.cpu_seconds().await.ok()?),
            None => Some(programs),
        }
    }

    /// Ends its processes and containers, and removes its files. Returns false if something is left in the engine.
    pub(super) async fn end(&self) -> bool {
        let stopped = async {
            match &self.proxy {
                Some(proxy) => proxy.stop().await,
                None => Ok(()),
            }
        };
        let ((), stopped) = tokio::join!(self.sandbox.end(), stopped);
        if let Err(error) = &stopped {
            tracing::warn!(sandbox.id = self.id, %error, "Containers of sandbox {} were not removed", self.id);
        }
        stopped.is_ok()
    }

    /// Releases the sandbox's slot and room on the host.
    pub(super) fn release(&self) {
        self.reservation.release();
    }

    pub(super) fn activity(&self) -> MutexGuard<'_, Activity> {
        // A panic can't leave the value half changed.
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the sandbox as in use until the returned guard is dropped.
    pub(super) fn begin_use(self: &Arc<Self>) -> UseGuard {
        let mut activity = self.activity();
        activity.running += 1;
        activity.idle_check = None;
        drop(activity);
        UseGuard(Arc::clone(self))
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Guard that keeps a sandbox from counting as idle.
#[derive(Debug)]
pub(super) struct UseGuard(Arc<Entry>);

impl Drop for UseGuard {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        activity.running = activity.running.saturating_sub(1);
        activity.last_used = Instant::now();
        activity.last_used_at = bench_clock::now();
    }
}
