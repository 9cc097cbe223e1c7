//! Full scans of a sandbox: processes, locks, files, sockets and pipes; everything except memory that changes fast.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::held_resources::{CountOptions, HeldResources, SocketBuffers};
use super::locks::Locks;
use super::watcher::{SCAN_INTERVAL, Watcher};
use super::{Context, folder_bytes, processes};

/// Scans that take long (many files) are less frequent: the pause is this many times the duration of the last scan, up
/// to [`PAUSE_MAX`], so that programs can't make scans too rare.
const PAUSE_FACTOR: u32 = 10;
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Maximum number of consecutive scans that fail to count something. After that, the guard assumes that the sandbox hides
/// it.
const FAILED_SCANS_MAX: u32 = 10;

/// Result of the last full scan.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    /// Kernel memory by process, in bytes.
    pub(super) held_resources: BTreeMap<u32, u64>,
    /// Number of open files by process.
    pub(super) open_files: BTreeMap<u32, u64>,
    /// Size of the folder's files if they are in memory, in bytes.
    pub(super) files_bytes: u64,
    /// Reason to end the sandbox.
    pub(super) end_reason: Option<String>,
}

/// Numbers of consecutive scans that couldn't count something.
#[derive(Debug, Default)]
pub(super) struct FailedScans {
    /// Scans that couldn't inspect some process.
    hidden: u32,
    /// Scans that couldn't count locks.
    locks: u32,
    /// Scans that found open files in transit between processes.
    in_flight: u32,
}

impl Watcher {
    /// Scans everything except memory that changes fast.
    pub(super) fn scan(&self, sockets: SocketBuffers, failed: &mut FailedScans) -> ScanResult {
        let mut result = ScanResult::default();
        result.end_reason = self.scan_into(sockets, failed, &mut result);
        result
    }

    /// Scans into `result`; returns the reason if the sandbox must end.
    fn scan_into(
        &self,
        sockets: SocketBuffers,
        failed: &mut FailedScans,
        result: &mut ScanResult,
    ) -> Option<String> {
        let limits = &self.limits;
        let (own, others) = &self.processes();
        if !limits.processes_are_bounded && processes::threads(others.iter().copied()) > limits.processes {
            return Some("there were more processes than the limit".to_owned());
        }
        let locks = Locks::count(others, self.user);
        if locks.are_too_many {
            return Some(
                "its programs held more locks on parts of files than the limit; the kernel does not count their memory"
                    .to_owned(),
            );
        }
        failed.locks = if self.is_hidden(own, &locks.hidden) { failed.locks + 1 } else { 0 };
        if failed.locks > FAILED_SCANS_MAX {
            return Some("a process held file locks that cannot be counted".to_owned());
        }
        if self.folder.is_none() && limits.memory_is_bounded {
            return None;
        }
        // Above this, counting stops: the sandbox ends anyway.
        let memory_bytes_max = if limits.memory_is_bounded { u64::MAX } else { self.runaway_bytes() };
        let folder = self.folder.as_deref();
        let count = CountOptions { folder, disk_bytes: limits.disk_bytes, memory_bytes_max, sockets };
        result.open_files = others.iter().map(|pid| (*pid, processes::open_files(*pid))).collect();
        let held_resources = HeldResources::measure(others, count, self.user);
        if let Some(folder) = folder {
            let bytes = folder_bytes(folder).saturating_add(held_resources.deleted_bytes);
            if bytes > limits.disk_bytes {
                return Some(
                    "the working folder exceeded its limit (including deleted files that are open), or its files cannot \
                     be counted"
                        .to_owned(),
                );
            }
            result.files_bytes = if is_in_memory(folder) { bytes } else { 0 };
            let is_hidden = self.is_hidden(own, &held_resources.hidden);
            failed.hidden = if is_hidden { failed.hidden + 1 } else { 0 };
            failed.in_flight = if held_resources.in_flight > 0 { failed.in_flight + 1 } else { 0 };
            if failed.hidden.max(failed.in_flight) > FAILED_SCANS_MAX {
                return Some("a process held files that cannot be counted".to_owned());
            }
        }
        result.held_resources = held_resources.memory;
        if !limits.memory_is_bounded {
            // Add the kernel's memory for a process, and its swapped pages.
            for (pid, bytes) in &mut result.held_resources {
                let extra = processes::memory_bytes(*pid).saturating_sub(processes::resident_bytes(*pid));
                *bytes = bytes.saturating_add(extra);
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
pub(super) struct FullScanner {
    thread: JoinHandle<()>,
    result: Arc<Mutex<ScanResult>>,
    requests: SyncSender<()>,
    pub(super) sockets: SocketBuffers,
}

impl FullScanner {
    pub(super) fn start(watcher: Watcher) -> Result<Self, String> {
        let result = Arc::new(Mutex::new(ScanResult::default()));
        let (requests, request_receiver) = mpsc::sync_channel(1);
        let sockets = SocketBuffers::from_network_settings();
        let shared = Arc::clone(&result);
        let run = move || {
            let mut failed = FailedScans::default();
            let mut wait = SCAN_INTERVAL;
            while request_receiver.recv_timeout(wait) != Err(RecvTimeoutError::Disconnected) {
                let began = Instant::now();
                let now = watcher.scan(sockets, &mut failed);
                let is_over = now.end_reason.is_some();
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = now;
                if is_over {
                    return;
                }
                wait = pause_after(began, SCAN_INTERVAL);
                // A minimum pause, even if further scans are requested.
                std::thread::sleep(began.elapsed().min(SCAN_INTERVAL));
            }
        };
        let thread = std::thread::Builder::new().spawn(run).context("cannot watch the sandbox")?;
        Ok(Self { thread, result, requests, sockets })
    }

    pub(super) fn result(&self) -> MutexGuard<'_, ScanResult> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the thread has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Requests a scan now, or right after the current one.
    pub(super) fn request_scan(&self) {
        // If the channel is full, a scan is already requested.
        let _ = self.requests.try_send(());
    }
}

/// Returns the time to wait after a full scan that began at `began`.
pub(super) fn pause_after(began: Instant, interval: Duration) -> Duration {
    (began.elapsed() * PAUSE_FACTOR).clamp(interval, PAUSE_MAX)
}

/// Returns true if a folder is on a file system in memory.
fn is_in_memory(folder: &Path) -> bool {
    /// tmpfs and ramfs, from `linux/magic.h`.
    const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];
    #[allow(clippy::unnecessary_cast, reason = "the type differs between architectures")]
    rustix::fs::statfs(folder).is_ok_and(|metadata| IN_MEMORY.contains(&(metadata.f_type as i64)))
}
