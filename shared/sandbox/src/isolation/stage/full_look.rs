//! Full scans of a sandbox: processes, locks, files, sockets and pipes; everything except memory that changes fast.

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

/// Scans that take long (many files) are less frequent: the pause is this many times the duration of the last scan, up
/// to [`LOOK_WAIT_MAX`], so that programs can't make scans too rare.
const LOOK_SHARE: u32 = 10;
const LOOK_WAIT_MAX: Duration = Duration::from_secs(2);
/// Maximum number of consecutive scans that fail to count something; after that, the sandbox is taken to hide it.
const UNCOUNTED_MAX: u32 = 10;

/// Result of the last full scan.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Kernel memory by process, in bytes.
    pub(super) held: BTreeMap<u32, u64>,
    /// Number of open files by process.
    pub(super) open_files: BTreeMap<u32, u64>,
    /// Size of the folder's files if they are in memory, in bytes.
    pub(super) files_bytes: u64,
    /// Reason to end the sandbox.
    pub(super) over: Option<String>,
}

/// Numbers of consecutive scans that couldn't count something.
#[derive(Debug, Default)]
pub(super) struct Uncounted {
    /// Scans in which some process couldn't be inspected.
    hidden: u32,
    /// Scans that couldn't count locks.
    locks: u32,
    /// Scans that found open files in transit between processes.
    in_flight: u32,
}

impl Watch {
    /// Scans everything except memory that changes fast.
    pub(super) fn look(&self, sockets: Sockets, uncounted: &mut Uncounted) -> Found {
        let mut found = Found::default();
        found.over = self.look_into(sockets, uncounted, &mut found);
        found
    }

    /// Scans into `found`; returns the reason if the sandbox must end.
    fn look_into(&self, sockets: Sockets, uncounted: &mut Uncounted, found: &mut Found) -> Option<String> {
        let limits = &self.limits;
        let (own, others) = &self.processes();
        if !limits.processes_are_bounded && processes::threads(others.iter().copied()) > limits.processes {
            return Some("there were more processes than the limit".to_owned());
        }
        let locks = Locks::of(others, self.user);
        if locks.are_too_many {
            return Some(
                "its programs held more locks on parts of files than the limit; the kernel does not count their memory"
                    .to_owned(),
            );
        }
        uncounted.locks = if self.is_hidden(own, &locks.hidden) { uncounted.locks + 1 } else { 0 };
        if uncounted.locks > UNCOUNTED_MAX {
            return Some("a process held file locks that cannot be counted".to_owned());
        }
        if self.folder.is_none() && limits.memory_is_bounded {
            return None;
        }
        // Above this, counting stops: the sandbox ends anyway.
        let memory_bytes_max = if limits.memory_is_bounded { u64::MAX } else { self.runaway_bytes() };
        let folder = self.folder.as_deref();
        let count = Count { folder, disk_bytes: limits.disk_bytes, memory_bytes_max, sockets };
        found.open_files = others.iter().map(|pid| (*pid, processes::open_files(*pid))).collect();
        let held = Held::by(others, count, self.user);
        if let Some(folder) = folder {
            let bytes = folder_bytes(folder).saturating_add(held.deleted_bytes);
            if bytes > limits.disk_bytes {
                return Some(
                    "the working folder exceeded its limit (including deleted files that are open), or its files cannot \
                     be counted"
                        .to_owned(),
                );
            }
            found.files_bytes = if is_in_memory(folder) { bytes } else { 0 };
            let is_hidden = self.is_hidden(own, &held.hidden);
            uncounted.hidden = if is_hidden { uncounted.hidden + 1 } else { 0 };
            uncounted.in_flight = if held.in_flight > 0 { uncounted.in_flight + 1 } else { 0 };
            if uncounted.hidden.max(uncounted.in_flight) > UNCOUNTED_MAX {
                return Some("a process held files that cannot be counted".to_owned());
            }
        }
        found.held = held.memory;
        if !limits.memory_is_bounded {
            // Add the kernel's memory for a process, and its swapped pages.
            for (pid, bytes) in &mut found.held {
                let beside = processes::memory_bytes(*pid).saturating_sub(processes::resident_bytes(*pid));
                *bytes = bytes.saturating_add(beside);
            }
        }
        None
    }

    /// Returns true if a process can't be inspected. That is normal for a child of the second stage for a moment, while
    /// the second stage waits for its `exec`.
    fn is_hidden(&self, own: &[u32], hidden: &BTreeSet<u32>) -> bool {
        let Some(agent) = own.get(self.own_processes) else { return false };
        if hidden.is_empty() {
            return false;
        }
        let starting = processes::children(*agent);
        !(processes::is_in_deep_sleep(*agent) && hidden.iter().all(|pid| starting.contains(pid)))
    }
}

/// Full scans in a separate thread, which ends with the process.
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
                // A minimum pause, even if further scans are requested.
                std::thread::sleep(began.elapsed().min(LOOK_EVERY));
            }
        };
        let looks = std::thread::Builder::new().spawn(look).doing("cannot watch the sandbox")?;
        Ok(Self { looks, found, sooner, sockets })
    }

    pub(super) fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the thread has ended.
    pub(super) fn have_ended(&self) -> bool {
        self.looks.is_finished()
    }

    /// Requests a scan now, or right after the current one.
    pub(super) fn hurry(&self) {
        // If the channel is full, a scan is already requested.
        let _ = self.sooner.try_send(());
    }
}

/// Returns the time to wait after a full scan that began at `began`.
pub(super) fn until_next(began: Instant, every: Duration) -> Duration {
    (began.elapsed() * LOOK_SHARE).clamp(every, LOOK_WAIT_MAX)
}

/// Returns true if a folder is on a file system in memory.
fn is_in_memory(folder: &Path) -> bool {
    /// tmpfs and ramfs, from `linux/magic.h`.
    const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];
    #[allow(clippy::unnecessary_cast, reason = "the type differs between architectures")]
    rustix::fs::statfs(folder).is_ok_and(|about| IN_MEMORY.contains(&(about.f_type as i64)))
}
