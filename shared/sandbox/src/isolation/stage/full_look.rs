//! A look at everything but memory that changes fast: processes, locks, files, sockets and pipes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::held::{Count, Held, Sockets};
use super::locks::Locks;
use super::watched::{LOOK_EVERY, Watch};
use super::{Doing, folder_bytes, processes};

/// A look that takes long (many files) is made less often: so many times as long is waited, and no longer than this, or
/// else a program with much to look at would be looked at too seldom.
const LOOK_SHARE: u32 = 10;
const LOOK_WAIT_MAX: Duration = Duration::from_secs(2);
/// What can't be counted in so many looks, one after the other, is hidden from them.
const UNCOUNTED_MAX: u32 = 10;

/// What the last full look has found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Memory of the kernel by process.
    pub(super) held: BTreeMap<u32, u64>,
    /// Open files by process.
    pub(super) open_files: BTreeMap<u32, u64>,
    /// The folder's files, where they are in memory, in bytes.
    pub(super) files_bytes: u64,
    /// Why the sandbox must end.
    pub(super) over: Option<String>,
}

/// What could not be counted in the last looks, one after the other.
#[derive(Debug, Default)]
pub(super) struct Uncounted {
    /// Looks in which some process could not be looked into.
    hidden: u32,
    /// The same for looks at locks.
    locks: u32,
    /// The same for open files that belong to no process.
    in_flight: u32,
}

impl Watch {
    /// A look at everything but memory that changes fast.
    pub(super) fn look(&self, sockets: Sockets, uncounted: &mut Uncounted) -> Found {
        let mut found = Found::default();
        found.over = self.look_into(sockets, uncounted, &mut found);
        found
    }

    /// The same; gives the reason when the sandbox must end.
    fn look_into(&self, sockets: Sockets, uncounted: &mut Uncounted, found: &mut Found) -> Option<String> {
        let limits = &self.limits;
        let (own, others) = &self.processes();
        if !limits.processes_are_bounded && processes::threads(others.iter().copied()) > limits.processes {
            return Some("there were more processes than the limit".to_owned());
        }
        let locks = Locks::of(others, self.user);
        if locks.are_too_many {
            return Some(
                "more parts of files were locked than the limit, which take memory that nothing counts"
                    .to_owned(),
            );
        }
        uncounted.locks = if self.is_hidden(own, &locks.hidden) { uncounted.locks + 1 } else { 0 };
        if uncounted.locks > UNCOUNTED_MAX {
            return Some("a process held locks on files where they cannot be counted".to_owned());
        }
        if self.folder.is_none() && limits.memory_is_bounded {
            return None;
        }
        // What is above that is no more counted: the sandbox ends.
        let memory_bytes_max = if limits.memory_is_bounded { u64::MAX } else { self.runaway_bytes() };
        let folder = self.folder.as_deref();
        let count = Count { folder, disk_bytes: limits.disk_bytes, memory_bytes_max, sockets };
        found.open_files = others.iter().map(|pid| (*pid, processes::open_files(*pid))).collect();
        let held = Held::by(others, count, self.user);
        if let Some(folder) = folder {
            let bytes = folder_bytes(folder).saturating_add(held.deleted_bytes);
            if bytes > limits.disk_bytes {
                return Some(
                    "the working folder held more than its limit, deleted files that are open included, or what cannot \
                     be counted"
                        .to_owned(),
                );
            }
            found.files_bytes = if is_in_memory(folder) { bytes } else { 0 };
            let is_hidden = self.is_hidden(own, &held.hidden);
            uncounted.hidden = if is_hidden { uncounted.hidden + 1 } else { 0 };
            uncounted.in_flight = if held.in_flight > 0 { uncounted.in_flight + 1 } else { 0 };
            if uncounted.hidden.max(uncounted.in_flight) > UNCOUNTED_MAX {
                return Some("a process held files where they cannot be counted".to_owned());
            }
        }
        found.held = held.memory;
        if !limits.memory_is_bounded {
            // What the kernel keeps for a process, and its pages in swap.
            for (pid, bytes) in &mut found.held {
                let beside = processes::memory_bytes(*pid).saturating_sub(processes::resident_bytes(*pid));
                *bytes = bytes.saturating_add(beside);
            }
        }
        None
    }

    /// Whether a process is closed to this one. A child of the second stage is for a moment, as long as that one waits
    /// for it to become another program.
    fn is_hidden(&self, own: &[u32], hidden: &BTreeSet<u32>) -> bool {
        let Some(agent) = own.get(self.own_processes) else { return false };
        if hidden.is_empty() {
            return false;
        }
        let starting = processes::children(*agent);
        !(processes::is_in_deep_sleep(*agent) && hidden.iter().all(|pid| starting.contains(pid)))
    }
}

/// Full looks in a thread of their own, which ends with the process.
pub(super) struct FullLooks {
    looks: JoinHandle<()>,
    found: Arc<Mutex<Found>>,
    sooner: SyncSender<()>,
    pub(super) sockets: Sockets,
}

impl FullLooks {
    pub(super) fn start(watch: Watch) -> Result<Self, String> {
        let found = Arc::new(Mutex::new(Found::default()));
        let (sooner, hurried) = mpsc::sync_channel(1);
        let sockets = Sockets::of_this_network();
        let shared = Arc::clone(&found);
        let look = move || {
            let mut uncounted = Uncounted::default();
            let mut wait = LOOK_EVERY;
            while hurried.recv_timeout(wait) != Err(RecvTimeoutError::Disconnected) {
                let began = Instant::now();
                let now = watch.look(sockets, &mut uncounted);
                let is_over = now.over.is_some();
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = now;
                if is_over {
                    return;
                }
                wait = until_next(began, LOOK_EVERY);
                // However much it is hurried.
                std::thread::sleep(began.elapsed().min(LOOK_EVERY));
            }
        };
        let looks = std::thread::Builder::new().spawn(look).doing("the sandbox cannot be watched")?;
        Ok(Self { looks, found, sooner, sockets })
    }

    pub(super) fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no look is made any more.
    pub(super) fn have_ended(&self) -> bool {
        self.looks.is_finished()
    }

    /// Has the next look made at once, or right after the one that is under way.
    pub(super) fn hurry(&self) {
        // Full: it is on its way.
        let _ = self.sooner.try_send(());
    }
}

/// How long to wait after a full look that began then.
pub(super) fn until_next(began: Instant, every: Duration) -> Duration {
    (began.elapsed() * LOOK_SHARE).clamp(every, LOOK_WAIT_MAX)
}

/// Whether a folder's file system is in memory.
fn is_in_memory(folder: &Path) -> bool {
    /// Of `linux/magic.h`: tmpfs and ramfs.
    const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];
    #[allow(clippy::unnecessary_cast, reason = "its type differs between architectures")]
    rustix::fs::statfs(folder).is_ok_and(|about| IN_MEMORY.contains(&(about.f_type as i64)))
}
