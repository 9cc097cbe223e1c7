//! The host: which sandboxes there are, and how they end.

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

/// Sandboxes whose use is measured at once.
pub(super) const MEASURED_AT_ONCE: usize = 16;
/// Bytes of a body that one permit of [`SandboxHost::bodies`] stands for.
pub(super) const BODY_PERMIT_BYTES: usize = 1 << 10;
/// Sandboxes that were ended for a limit are told from others that are gone, so many of them.
const OVER_LIMIT_KEPT: usize = 1_024;
/// How long the end of a sandbox that ended by itself is waited for, to be told why.
const OVER_WAIT: Duration = Duration::from_secs(35);
/// How often it is looked which sandboxes are over, expired or idle.
const TICK: Duration = Duration::from_secs(1);
/// How often it is looked whether the machine has memory left.
const MEMORY_TICK: Duration = Duration::from_millis(250);
/// A sandbox is ended when less than this share of the reserve is left. Above it, no more are made.
const RESERVE_SHARE: u64 = 2;
/// Ending a sandbox that uses less than this share of the reserve would not help.
const USE_SHARE: u64 = 4;
/// How long the end of a sandbox is waited for before another one is ended for its memory.
const MEMORY_WAIT_MAX: Duration = Duration::from_secs(5);
/// Ticks between two entries of the metrics: a minute.
const TICKS_PER_METRIC: u64 = 60;
/// How long a sandbox is watched before it counts as idle.
const IDLE_WATCH: Duration = Duration::from_secs(3);
/// Processors that an idle sandbox uses at most.
const IDLE_CORES_MAX: f64 = 0.02;

/// The sandboxes of this machine: makes them, hands commands on to them, ends them.
pub struct SandboxHost {
    pub(super) config: HostConfig,
    pub(super) isolation: Arc<dyn Isolation>,
    pub(super) machine: Machine,
    pub(super) series: Series,
    /// Memory for requests' bodies, in permits of [`BODY_PERMIT_BYTES`].
    pub(super) bodies: Arc<Semaphore>,
    pub(super) tasks: TaskTracker,
    pub(super) runtime: Handle,
    pub(super) closed: CancellationToken,
    pub(super) this: Weak<Self>,
    room: Mutex<Room>,
    entries: Mutex<HashMap<String, Arc<Entry>>>,
    /// Sandboxes that ended by themselves, while they are being removed.
    ending: Mutex<HashMap<String, Arc<Entry>>>,
    /// Sandboxes that were ended for a limit, and for which; the oldest first.
    over_limit: Mutex<VecDeque<(String, String)>>,
}

impl SandboxHost {
    /// A host over an isolation. Call it within a Tokio runtime, which carries its clock for as long as the host lives.
    pub fn new(isolation: Arc<dyn Isolation>, config: HostConfig) -> Arc<Self> {
        // The largest body fits in any case.
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
        // Not one of `tasks`: nobody has to wait for it.
        host.runtime.spawn(clock(Arc::downgrade(&host), host.closed.clone()));
        host
    }

    /// How sandboxes are kept apart.
    pub fn form(&self) -> &Form {
        self.isolation.form()
    }

    /// Its bounds.
    pub fn config(&self) -> &HostConfig {
        &self.config
    }

    /// A sandbox.
    ///
    /// # Errors
    /// [`HostError::Gone`] and [`HostError::OverLimit`].
    pub async fn get(&self, id: &str) -> Result<SandboxView, HostError> {
        Ok(self.view(&*self.entry(id).await?))
    }

    /// Ends a sandbox; returns when its processes and files are gone.
    ///
    /// # Errors
    /// [`HostError::Gone`] when it is over already.
    pub async fn terminate(&self, id: &str) -> Result<(), HostError> {
        let entry = self.entry(id).await?;
        match self.end(&entry, Why::Terminated) {
            // It goes on when the caller does not wait for it.
            Some(ending) => {
                ending.await.map_err(|error| HostError::Failed(format!("Ending it failed: {error}")))
            }
            None => Err(HostError::Gone(id.to_owned())),
        }
    }

    /// Ends all sandboxes and makes no more; returns when they are gone. Whoever waits is told.
    pub async fn shut_down(&self) {
        self.closed.cancel();
        self.change_room(Room::close);
        let endings: Vec<_> = self.all().iter().filter_map(|entry| self.end(entry, Why::Shutdown)).collect();
        join_all(endings).await;
        // Those that were being made are ended as soon as they are.
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Changes who has which place, and carries out what follows.
    pub(super) fn change_room<T>(&self, change: impl FnOnce(&mut Room) -> T) -> T {
        let (changed, victims) = {
            let mut room = self.room();
            let changed = change(&mut room);
            (changed, room.settle())
        };
        if !victims.is_empty() {
            for entry in self.all().iter().filter(|entry| victims.contains(&entry.number())) {
                // It goes on by itself.
                let _ = self.end(entry, Why::Preempted);
            }
        }
        changed
    }

    pub(super) fn room(&self) -> MutexGuard<'_, Room> {
        // Every change of it is complete before it can fail.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All sandboxes, the oldest first.
    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        let mut all: Vec<_> = self.entries().values().cloned().collect();
        all.sort_unstable_by_key(|entry| entry.number());
        all
    }

    /// A sandbox that is not over. For one that has ended by itself it waits until it is known why.
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

    /// Why there is no such sandbox.
    fn gone(&self, id: &str) -> HostError {
        // Nothing in it can be half changed.
        let ended = self.over_limit.lock().unwrap_or_else(PoisonError::into_inner);
        match ended.iter().find(|(ended, _)| ended == id) {
            Some((id, limit)) => HostError::OverLimit { id: id.clone(), limit: limit.clone() },
            None => HostError::Gone(shown_id(id)),
        }
    }

    /// The same for a command that has lost its sandbox: where it has ended by itself, its guard is asked why.
    pub(super) async fn lost(&self, entry: &Arc<Entry>) -> HostError {
        if entry.sandbox.is_over() {
            // Nothing is done where somebody else has ended it before.
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

    /// Ends a sandbox: it is not found from now on, and its place comes free when it is gone. `None` when somebody else
    /// does that already.
    pub(super) fn end(&self, entry: &Arc<Entry>, why: Why) -> Option<tokio::task::JoinHandle<()>> {
        {
            let mut entries = self.entries();
            entries.remove(&entry.id)?;
            let _ = entry.why.set(why);
            if why == Why::Over {
                self.ending().insert(entry.id.clone(), Arc::clone(entry));
            }
        }
        // First of all, so that whoever waits for it hears of nothing else.
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
                // Whoever still holds the entry, such as a command that is told of the end, holds no place with it.
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

    /// Ends what is over, expired or unused.
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

    /// Ends the sandbox that uses most memory when so little of the machine's is left: the kernel would otherwise end
    /// whatever process it chooses, the host's own among them.
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
            // It goes on by itself where it takes longer.
            let _ = tokio::time::timeout(MEMORY_WAIT_MAX, ending).await;
        }
    }

    /// Takes their slots from idle sandboxes, if anybody waits for one.
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
            // Where the time of its processes cannot be told, it may be working.
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

/// An id as an error repeats it.
pub(super) fn shown_id(id: &str) -> String {
    id.chars().filter(|c| !c.is_control()).take(64).collect()
}

/// Looks after the sandboxes of a host until it is dropped or shut down.
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
