//! The sandbox host: keeps the table of sandboxes and ends them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::entry::Entry;
use super::machine::Machine;
use super::room::{Number, Room};
use super::series::Series;
use super::why::Why;
use super::{HostConfig, HostError, SandboxView};
use crate::isolation::{Form, Isolation};

/// Maximum number of sandboxes whose usage is measured concurrently.
pub(super) const MEASURED_AT_ONCE: usize = 16;
/// Bytes of a body that one permit of [`SandboxHost::bodies`] covers.
pub(super) const BODY_PERMIT_BYTES: usize = 1 << 10;
/// Maximum number of sandboxes for which the host remembers the limit that they were ended for.
const OVER_LIMIT_KEPT: usize = 1_024;
/// Maximum time to wait for the cleanup of a sandbox that ended by itself, which yields the reason.
const OVER_WAIT: Duration = Duration::from_secs(35);
/// Interval between checks for ended, expired and idle sandboxes.
const TICK: Duration = Duration::from_secs(1);
/// Interval between checks of the machine's free memory.
const MEMORY_TICK: Duration = Duration::from_millis(250);
/// Divisor of the memory reserve: if less than this part of it is free, the host ends a sandbox. Below the whole
/// reserve, it only stops creating new ones.
const RESERVE_SHARE: u64 = 2;
/// Divisor of the memory reserve: ending a sandbox that uses less than this part of it wouldn't help.
const USE_SHARE: u64 = 4;
/// Maximum time to wait for one sandbox to end before another one is ended for its memory.
const MEMORY_WAIT_MAX: Duration = Duration::from_secs(5);
/// Number of [`TICK`]s between two metrics: a minute.
const TICKS_PER_METRIC: u64 = 60;
/// Time over which CPU usage is measured before a sandbox counts as idle.
const IDLE_WATCH: Duration = Duration::from_secs(3);
/// Maximum CPU usage of an idle sandbox, in processors.
const IDLE_CORES_MAX: f64 = 0.02;

/// Creates sandboxes on this machine, runs commands in them, and ends them.
pub struct SandboxHost {
    pub(super) config: HostConfig,
    pub(super) isolation: Arc<dyn Isolation>,
    pub(super) machine: Machine,
    pub(super) series: Series,
    /// Memory for the bodies of requests, in permits of [`BODY_PERMIT_BYTES`].
    pub(super) bodies: Arc<Semaphore>,
    pub(super) tasks: TaskTracker,
    pub(super) runtime: Handle,
    pub(super) closed: CancellationToken,
    pub(super) this: Weak<Self>,
    room: Mutex<Room>,
    entries: Mutex<HashMap<String, Arc<Entry>>>,
    /// Sandboxes that ended by themselves and are still being removed.
    ending: Mutex<HashMap<String, Arc<Entry>>>,
    /// Ids of sandboxes that were ended for a limit, each with the description of the limit; oldest first.
    over_limit: Mutex<VecDeque<(String, String)>>,
}

impl SandboxHost {
    /// Creates a host. Must be called within a Tokio runtime, which runs the host's maintenance task until the host is
    /// dropped.
    pub fn new(isolation: Arc<dyn Isolation>, config: HostConfig) -> Arc<Self> {
        // The largest allowed body always fits.
        let body_bytes = config.bodies_bytes_max.max(config.body_bytes_max);
        let host = Arc::new_cyclic(|this| Self {
            room: Mutex::new(Room::new(config.slots, config.sandboxes_max)),
            entries: Mutex::default(),
            ending: Mutex::default(),
            over_limit: Mutex::default(),
            machine: Machine::new(config.disk_folder.clone()),
            series: Series::default(),
            bodies: Arc::new(Semaphore::new(body_bytes.div_ceil(BODY_PERMIT_BYTES))),
            tasks: TaskTracker::new(),
            runtime: Handle::current(),
            closed: CancellationToken::new(),
            this: this.clone(),
            isolation,
            config,
        });
        // Not part of `tasks`, since shutdown doesn't wait for it.
        host.runtime.spawn(clock(Arc::downgrade(&host), host.closed.clone()));
        host
    }

    /// Returns the form of isolation that this host uses.
    pub fn form(&self) -> &Form {
        self.isolation.form()
    }

    /// Returns the configuration.
    pub fn config(&self) -> &HostConfig {
        &self.config
    }

    /// Returns a sandbox.
    ///
    /// # Errors
    /// [`HostError::Gone`] and [`HostError::OverLimit`].
    pub async fn get(&self, id: &str) -> Result<SandboxView, HostError> {
        Ok(self.view(&*self.entry(id).await?))
    }

    /// Ends a sandbox and waits until its processes and files are gone.
    ///
    /// # Errors
    /// [`HostError::Gone`] if the sandbox has already ended.
    pub async fn terminate(&self, id: &str) -> Result<(), HostError> {
        let entry = self.entry(id).await?;
        match self.end(&entry, Why::Terminated) {
            // Cleanup continues even if the caller stops waiting.
            Some(ending) => {
                ending.await.map_err(|error| HostError::Failed(format!("Ending the sandbox failed: {error}.")))
            }
            None => Err(HostError::Gone(id.to_owned())),
        }
    }

    /// Ends all sandboxes, refuses new ones, and waits until all are gone. Waiting requests fail.
    pub async fn shut_down(&self) {
        self.closed.cancel();
        self.change_room(Room::close);
        let endings: Vec<_> = self.all().iter().filter_map(|entry| self.end(entry, Why::Shutdown)).collect();
        join_all(endings).await;
        // Sandboxes that are still being created end as soon as they exist.
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Changes the slot pool, assigns free slots, and ends preempted sandboxes.
    pub(super) fn change_room<T>(&self, change: impl FnOnce(&mut Room) -> T) -> T {
        let (changed, victims) = {
            let mut room = self.room();
            let changed = change(&mut room);
            (changed, room.settle())
        };
        if !victims.is_empty() {
            for entry in self.all().iter().filter(|entry| victims.contains(&entry.number())) {
                // Cleanup continues in the background.
                let _ = self.end(entry, Why::Preempted);
            }
        }
        changed
    }

    pub(super) fn room(&self) -> MutexGuard<'_, Room> {
        // A panic can't leave the value half changed.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all sandboxes, oldest first.
    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        let mut all: Vec<_> = self.entries().values().cloned().collect();
        all.sort_unstable_by_key(|entry| entry.number());
        all
    }

    /// Returns a sandbox that hasn't ended. For one that has ended by itself, waits until the reason is known.
    ///
    /// # Errors
    /// [`HostError::Gone`] and [`HostError::OverLimit`].
    pub(super) async fn entry(&self, id: &str) -> Result<Arc<Entry>, HostError> {
        let found = self.entries().get(id).cloned();
        let over = match found {
            Some(entry) if !entry.sandbox.is_over() => return Ok(entry),
            Some(entry) => Some(entry),
            None => self.ending().get(id).cloned(),
        };
        match over {
            Some(entry) => Err(self.lost(&entry).await),
            None => Err(self.gone(id)),
        }
    }

    /// Returns the error for a sandbox that doesn't exist.
    fn gone(&self, id: &str) -> HostError {
        // A panic can't leave the value half changed.
        let ended = self.over_limit.lock().unwrap_or_else(PoisonError::into_inner);
        match ended.iter().find(|(ended, _)| ended == id) {
            Some((id, limit)) => HostError::OverLimit { id: id.clone(), limit: limit.clone() },
            None => HostError::Gone(shown_id(id)),
        }
    }

    /// Returns the error for a command that lost its sandbox. If the sandbox ended by itself, waits for its guard to
    /// report the reason.
    pub(super) async fn lost(&self, entry: &Arc<Entry>) -> HostError {
        if entry.sandbox.is_over() {
            // Does nothing if another task has already ended it.
            let _ = self.end(entry, Why::Over);
        }
        if entry.why.get() == Some(&Why::Over) {
            let _ = tokio::time::timeout(OVER_WAIT, entry.gone.cancelled()).await;
        }
        self.gone(&entry.id)
    }

    fn ending(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_over_limit(&self, entry: &Entry) {
        if entry.why.get() != Some(&Why::Over) {
            return;
        }
        let Some(limit) = entry.sandbox.over_limit() else { return };
        let mut ended = self.over_limit.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.len() >= OVER_LIMIT_KEPT {
            ended.pop_front();
        }
        ended.push_back((entry.id.clone(), limit.to_owned()));
    }

    /// Ends a sandbox: removes it from the table, and releases its slot when it is gone. Returns `None` if another task
    /// is already ending it.
    pub(super) fn end(&self, entry: &Arc<Entry>, why: Why) -> Option<tokio::task::JoinHandle<()>> {
        {
            let mut entries = self.entries();
            entries.remove(&entry.id)?;
            let _ = entry.why.set(why);
            if why == Why::Over {
                self.ending().insert(entry.id.clone(), Arc::clone(entry));
            }
        }
        // Canceled first, so that waiting commands see this error and no other.
        entry.ended.cancel();
        self.room().leaving(entry.number());
        let age_s = entry.created.elapsed().as_secs();
        tracing::info!(sandbox.id = entry.id, age_s, "Sandbox {} ends: {}", entry.id, why.as_str());
        let entry = Arc::clone(entry);
        let host = self.this.clone();
        Some(self.tasks.spawn_on(
            async move {
                entry.sandbox.end().await;
                if let Some(host) = host.upgrade() {
                    host.note_over_limit(&entry);
                    host.ending().remove(&entry.id);
                }
                entry.gone.cancel();
                // Other holders of the entry, such as a command that is just failing, must not keep the slot.
                entry.leave();
            },
            &self.runtime,
        ))
    }

    pub(super) fn view(&self, entry: &Entry) -> SandboxView {
        let activity = entry.activity();
        SandboxView {
            sandbox_id: entry.id.clone(),
            status: "running",
            priority: entry.priority,
            preemptable: entry.preemptable,
            isolation: self.isolation.form().name,
            has_slot: self.room().has_slot(entry.number()),
            commands: activity.running,
            created_at: entry.created_at,
            used_at: activity.used_at,
            expires_at: entry.created_at.plus(self.config.lease_max),
        }
    }

    /// Ends sandboxes whose first process is gone, whose lease has expired, or that are unused.
    fn sweep(&self) {
        for entry in self.all() {
            let quiet = {
                let activity = entry.activity();
                (activity.running == 0).then(|| activity.used.elapsed())
            };
            let why = if entry.sandbox.is_over() {
                Why::Over
            } else if entry.created.elapsed() >= self.config.lease_max {
                Why::Lease
            } else if quiet.is_some_and(|quiet| quiet >= self.config.idle_timeout) {
                Why::Idle
            } else {
                continue;
            };
            let _ = self.end(&entry, why);
        }
    }

    /// Ends the sandbox that uses most memory if the machine is nearly out of it. Otherwise the kernel would kill a
    /// process of its choice, possibly the host.
    pub(super) async fn keep_reserve(&self, available_bytes: Option<u64>) {
        let reserve = self.config.memory_reserve_bytes;
        if available_bytes.is_none_or(|available| available >= reserve / RESERVE_SHARE) {
            return;
        }
        let measured = stream::iter(self.all()).map(|entry| async move {
            let bytes = entry.sandbox.usage().await.memory_bytes.unwrap_or_default();
            (bytes, entry)
        });
        let used: Vec<_> = measured.buffered(MEASURED_AT_ONCE).collect().await;
        let Some((bytes, entry)) = used.into_iter().max_by_key(|(bytes, _)| *bytes) else { return };
        if bytes >= reserve / USE_SHARE
            && let Some(ending) = self.end(&entry, Why::Memory)
        {
            // Cleanup continues in the background if it takes longer.
            let _ = tokio::time::timeout(MEMORY_WAIT_MAX, ending).await;
        }
    }

    /// Takes slots from idle sandboxes if any request waits for one.
    async fn lend(&self) {
        if self.room().waiting() == 0 {
            return;
        }
        for entry in self.all() {
            let is_quiet = |entry: &Entry| {
                let activity = entry.activity();
                activity.running == 0 && activity.used.elapsed() >= self.config.lend_after
            };
            if !is_quiet(&entry) || !self.room().has_slot(entry.number()) {
                continue;
            }
            // Without its CPU time, a sandbox may be working.
            let Some(cpu) = entry.sandbox.usage().await.cpu_seconds else { continue };
            let now = Instant::now();
            let looked = entry.activity().looked;
            let is_idle = match looked {
                Some((then, _)) if now - then < IDLE_WATCH => continue,
                Some((then, before)) => cpu - before < IDLE_CORES_MAX * (now - then).as_secs_f64(),
                None => false,
            };
            entry.activity().looked = Some((now, cpu));
            if is_idle && is_quiet(&entry) {
                tracing::debug!(sandbox.id = entry.id, "Sandbox {} is idle and lends its slot", entry.id);
                let number: Number = entry.number();
                self.change_room(|room| room.lend(number));
            }
        }
    }
}

impl fmt::Debug for SandboxHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxHost").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Returns an id in the form that errors repeat: short and without control characters.
pub(super) fn shown_id(id: &str) -> String {
    id.chars().filter(|c| !c.is_control()).take(64).collect()
}

/// Runs the periodic checks of a host until it is dropped or shut down.
async fn clock(host: Weak<SandboxHost>, closed: CancellationToken) {
    let (mut ticks, mut memory_ticks) = (tokio::time::interval(TICK), tokio::time::interval(MEMORY_TICK));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    memory_ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut tick = 0_u64;
    loop {
        tokio::select! {
            biased;
            () = closed.cancelled() => return,
            _ = ticks.tick() => {}
            _ = memory_ticks.tick() => {
                let Some(host) = host.upgrade() else { return };
                host.keep_reserve(host.machine.memory_available_bytes()).await;
                continue;
            }
        }
        let Some(host) = host.upgrade() else { return };
        host.sweep();
        host.lend().await;
        if tick.is_multiple_of(TICKS_PER_METRIC) {
            host.series.add(host.machine.metric());
        }
        tick += 1;
    }
}
