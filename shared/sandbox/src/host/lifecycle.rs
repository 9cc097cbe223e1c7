//! The sandbox host: keeps the table of sandboxes and ends them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::end_reason::EndReason;
use super::engine::HostEngine;
use super::entry::Entry;
use super::machine::Machine;
use super::metric_history::MetricHistory;
use super::slot_pool::{HolderId, SlotPool};
use super::{EngineView, HostConfig, HostError, SandboxView};
use crate::isolation::{Form, Isolation};

/// Maximum number of sandboxes whose usage is measured concurrently.
pub(super) const CONCURRENT_MEASUREMENTS: usize = 16;
/// Bytes of a body that one permit of [`SandboxHost::bodies`] covers.
pub(super) const BODY_PERMIT_BYTES: usize = 1 << 10;
/// Maximum number of sandboxes for which the host remembers the limit that they were ended for.
const OVER_LIMIT_REMEMBERED: usize = 1_024;
/// Maximum time to wait for the cleanup of a sandbox that ended by itself, which yields the reason.
const END_REASON_WAIT: Duration = Duration::from_secs(35);
/// Interval between checks for ended, expired and idle sandboxes.
const TICK: Duration = Duration::from_secs(1);
/// Interval between checks of the machine's free memory.
const MEMORY_TICK: Duration = Duration::from_millis(250);
/// Divisor of the memory reserve: if less than this part of it is free, the host ends a sandbox. Below the whole
/// reserve, it only stops creating new ones.
const RESERVE_DIVISOR: u64 = 2;
/// Divisor of the memory reserve: ending a sandbox that uses less than this part of it wouldn't help.
const WORTHWHILE_DIVISOR: u64 = 4;
/// Maximum time to wait for one sandbox to end before another one is ended for its memory.
const MEMORY_END_WAIT: Duration = Duration::from_secs(5);
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
    pub(super) metric_history: MetricHistory,
    /// Memory for the bodies of requests, in permits of [`BODY_PERMIT_BYTES`].
    pub(super) bodies: Arc<Semaphore>,
    pub(super) tasks: TaskTracker,
    pub(super) runtime: Handle,
    pub(super) closed: CancellationToken,
    pub(super) weak_self: Weak<Self>,
    pub(super) engine: HostEngine,
    /// Something of an ended sandbox is left in the engine.
    has_remains: AtomicBool,
    slot_pool: Mutex<SlotPool>,
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
        let host = Arc::new_cyclic(|weak_self| Self {
            slot_pool: Mutex::new(SlotPool::new(config.slots, config.sandboxes_max)),
            entries: Mutex::default(),
            ending: Mutex::default(),
            over_limit: Mutex::default(),
            machine: Machine::new(config.disk_folder.clone()),
            metric_history: MetricHistory::default(),
            bodies: Arc::new(Semaphore::new(body_bytes.div_ceil(BODY_PERMIT_BYTES))),
            tasks: TaskTracker::new(),
            runtime: Handle::current(),
            closed: CancellationToken::new(),
            engine: HostEngine::new(config.engine.clone()),
            has_remains: AtomicBool::new(false),
            weak_self: weak_self.clone(),
            isolation,
            config,
        });
        // Not part of `tasks`, since shutdown doesn't wait for it.
        host.runtime.spawn(run_maintenance(Arc::downgrade(&host), host.closed.clone()));
        if host.engine.has_leftovers() {
            host.find_engine();
        }
        host
    }

    /// Looks for a container engine in the background, unless that was done before.
    pub fn find_engine(&self) {
        if self.engine.is_unknown() {
            drop(self.search_engine());
        }
    }

    /// Looks for a container engine in a task of its own, since a search that is interrupted may leave something.
    pub(super) fn search_engine(&self) -> JoinHandle<Result<(), HostError>> {
        let host = self.weak_self.upgrade();
        let search = async move {
            match host {
                Some(host) => host.engine.find().await,
                None => Err(super::create::shutting_down()),
            }
        };
        self.tasks.spawn_on(search, &self.runtime)
    }

    /// Returns the container engine that sandboxes can have, as far as it is known.
    pub fn engine(&self) -> EngineView {
        self.engine.view()
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
        match self.end(&entry, EndReason::Terminated) {
            // Cleanup continues even if the caller stops waiting.
            Some(ending) => ending
                .await
                .map_err(|error| HostError::Failed(format!("Ending the sandbox failed: {error}."))),
            None => Err(HostError::Gone(id.to_owned())),
        }
    }

    /// Ends all sandboxes, refuses new ones, and waits until all are gone. Waiting requests fail.
    pub async fn shut_down(&self) {
        self.closed.cancel();
        self.update_slots(SlotPool::close);
        let endings: Vec<_> =
            self.all_entries().iter().filter_map(|entry| self.end(entry, EndReason::Shutdown)).collect();
        join_all(endings).await;
        // Sandboxes that are still being created end as soon as they exist.
        self.tasks.close();
        self.tasks.wait().await;
        self.engine.close().await;
    }

    /// Changes the slot pool, assigns free slots, and ends preempted sandboxes.
    pub(super) fn update_slots<T>(&self, change: impl FnOnce(&mut SlotPool) -> T) -> T {
        let (changed, victims) = {
            let mut slot_pool = self.slot_pool();
            let changed = change(&mut slot_pool);
            (changed, slot_pool.assign_slots())
        };
        if !victims.is_empty() {
            for entry in self.all_entries().iter().filter(|entry| victims.contains(&entry.holder_id())) {
                // Cleanup continues in the background.
                let _ = self.end(entry, EndReason::Preempted);
            }
        }
        changed
    }

    pub(super) fn slot_pool(&self) -> MutexGuard<'_, SlotPool> {
        // A panic can't leave the value half changed.
        self.slot_pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all sandboxes, oldest first.
    pub(super) fn all_entries(&self) -> Vec<Arc<Entry>> {
        let mut all: Vec<_> = self.entries().values().cloned().collect();
        all.sort_unstable_by_key(|entry| entry.holder_id());
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
            Some(entry) => Err(self.lost_sandbox_error(&entry).await),
            None => Err(self.missing_sandbox_error(id)),
        }
    }

    /// Returns the error for a sandbox that doesn't exist.
    fn missing_sandbox_error(&self, id: &str) -> HostError {
        // A panic can't leave the value half changed.
        let ended = self.over_limit.lock().unwrap_or_else(PoisonError::into_inner);
        match ended.iter().find(|(ended, _)| ended == id) {
            Some((id, limit)) => HostError::OverLimit { id: id.clone(), limit: limit.clone() },
            None => HostError::Gone(displayed_id(id)),
        }
    }

    /// Returns the error for a command that lost its sandbox. If the sandbox ended by itself, waits for its guard to
    /// report the reason.
    pub(super) async fn lost_sandbox_error(&self, entry: &Arc<Entry>) -> HostError {
        if entry.sandbox.is_over() {
            // Does nothing if another task has already ended it.
            let _ = self.end(entry, EndReason::ProcessGone);
        }
        if entry.end_reason.get() == Some(&EndReason::ProcessGone) {
            let _ = tokio::time::timeout(END_REASON_WAIT, entry.gone.cancelled()).await;
        }
        self.missing_sandbox_error(&entry.id)
    }

    fn ending(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember_over_limit(&self, entry: &Entry) {
        if entry.end_reason.get() != Some(&EndReason::ProcessGone) {
            return;
        }
        let Some(limit) = entry.sandbox.over_limit() else { return };
        let mut ended = self.over_limit.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.len() >= OVER_LIMIT_REMEMBERED {
            ended.pop_front();
        }
        ended.push_back((entry.id.clone(), limit.to_owned()));
    }

    /// Ends a sandbox: removes it from the table, and releases its slot when it is gone. Returns `None` if another task
    /// is already ending it.
    pub(super) fn end(&self, entry: &Arc<Entry>, end_reason: EndReason) -> Option<JoinHandle<()>> {
        {
            let mut entries = self.entries();
            entries.remove(&entry.id)?;
            let _ = entry.end_reason.set(end_reason);
            if end_reason == EndReason::ProcessGone {
                self.ending().insert(entry.id.clone(), Arc::clone(entry));
            }
        }
        // Canceled first, so that waiting commands see this error and no other.
        entry.ended.cancel();
        self.slot_pool().mark_ending(entry.holder_id());
        let age_s = entry.created.elapsed().as_secs();
        tracing::info!(sandbox.id = entry.id, age_s, "Sandbox {} ends: {}", entry.id, end_reason.as_str());
        let entry = Arc::clone(entry);
        let host = self.weak_self.clone();
        Some(self.tasks.spawn_on(
            async move {
                let is_all_gone = entry.end().await;
                if let Some(host) = host.upgrade() {
                    if !is_all_gone {
                        host.has_remains.store(true, Ordering::Relaxed);
                    }
                    host.remember_over_limit(&entry);
                    host.ending().remove(&entry.id);
                }
                entry.gone.cancel();
                // Other holders of the entry, such as a command that is just failing, must not keep the slot.
                entry.release();
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
            engine: entry.proxy.as_ref().and_then(|_| self.engine.name()),
            has_slot: self.slot_pool().has_slot(entry.holder_id()),
            commands: activity.running,
            created_at: entry.created_at,
            used_at: activity.last_used_at,
            expires_at: entry.created_at.plus(self.config.lease_max),
        }
    }

    /// Ends sandboxes whose first process is gone, whose lease has expired, or that are unused.
    fn end_expired(&self) {
        for entry in self.all_entries() {
            let quiet = {
                let activity = entry.activity();
                (activity.running == 0).then(|| activity.last_used.elapsed())
            };
            let end_reason = if entry.sandbox.is_over() {
                EndReason::ProcessGone
            } else if entry.created.elapsed() >= self.config.lease_max {
                EndReason::LeaseExpired
            } else if quiet.is_some_and(|quiet| quiet >= self.config.idle_timeout) {
                EndReason::Idle
            } else {
                continue;
            };
            let _ = self.end(&entry, end_reason);
        }
    }

    /// Ends the sandbox that uses most memory if the machine is nearly out of it. Otherwise the kernel would kill a
    /// process of its choice, possibly the host.
    pub(super) async fn enforce_memory_reserve(&self, available_bytes: Option<u64>) {
        let reserve = self.config.memory_reserve_bytes;
        if available_bytes.is_none_or(|available| available >= reserve / RESERVE_DIVISOR) {
            return;
        }
        let measured = stream::iter(self.all_entries()).map(|entry| async move {
            let bytes = entry.sandbox.usage().await.memory_bytes.unwrap_or_default();
            (bytes, entry)
        });
        let used: Vec<_> = measured.buffered(CONCURRENT_MEASUREMENTS).collect().await;
        let Some((bytes, entry)) = used.into_iter().max_by_key(|(bytes, _)| *bytes) else { return };
        if bytes >= reserve / WORTHWHILE_DIVISOR
            && let Some(ending) = self.end(&entry, EndReason::LowMemory)
        {
            // Cleanup continues in the background if it takes longer.
            let _ = tokio::time::timeout(MEMORY_END_WAIT, ending).await;
        }
    }

    /// Tries again to remove what ended sandboxes left in the engine.
    async fn remove_remains(&self) {
        if !self.has_remains.swap(false, Ordering::Relaxed) {
            return;
        }
        let running = self.all_entries().iter().map(|entry| entry.id.clone()).collect();
        if let Err(error) = self.engine.remove_others(&running).await {
            tracing::warn!(%error, "Containers of ended sandboxes were not removed: {error}");
            self.has_remains.store(true, Ordering::Relaxed);
        }
    }

    /// Takes slots from idle sandboxes if any request waits for one.
    async fn lend_idle_slots(&self) {
        if self.slot_pool().waiting() == 0 {
            return;
        }
        for entry in self.all_entries() {
            let is_quiet = |entry: &Entry| {
                let activity = entry.activity();
                activity.running == 0 && activity.last_used.elapsed() >= self.config.lend_after
            };
            if !is_quiet(&entry) || !self.slot_pool().has_slot(entry.holder_id()) {
                continue;
            }
            // Without its CPU time, a sandbox may be working.
            let Some(cpu) = entry.cpu_seconds().await else { continue };
            let now = Instant::now();
            let idle_check = entry.activity().idle_check;
            let is_idle = match idle_check {
                Some((then, _)) if now - then < IDLE_WATCH => continue,
                Some((then, before)) => cpu - before < IDLE_CORES_MAX * (now - then).as_secs_f64(),
                None => false,
            };
            entry.activity().idle_check = Some((now, cpu));
            if is_idle && is_quiet(&entry) {
                tracing::debug!(sandbox.id = entry.id, "Sandbox {} is idle and lends its slot", entry.id);
                let holder_id: HolderId = entry.holder_id();
                self.update_slots(|slot_pool| slot_pool.lend_slot(holder_id));
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
pub(super) fn displayed_id(id: &str) -> String {
    id.chars().filter(|c| !c.is_control()).take(64).collect()
}

/// Runs the periodic checks of a host until it is dropped or shut down.
async fn run_maintenance(host: Weak<SandboxHost>, closed: CancellationToken) {
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
                host.enforce_memory_reserve(host.machine.memory_available_bytes()).await;
                continue;
            }
        }
        let Some(host) = host.upgrade() else { return };
        host.end_expired();
        host.lend_idle_slots().await;
        if tick.is_multiple_of(TICKS_PER_METRIC) {
            host.metric_history.add(host.machine.metric());
            host.remove_remains().await;
        }
        tick += 1;
    }
}
