//! Enforces limits that the kernel doesn't enforce here, by repeated measurement.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::full_scan::{FailedScans, FullScanner, ScanResult, pause_after};
use super::held_resources::SocketBuffers;
use super::watcher::{SCAN_INTERVAL, Watcher};
use super::{Context, priority, processes};

/// Interval between scans if only locks need counting, since their memory grows slowly.
const LOCKS_SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// Memory is measured more often the closer it is to its limit, on the estimate that one processor allocates at most
/// this many bytes per second.
const GROWTH_BYTES_PER_S: f64 = 4e9;
const MEMORY_INTERVAL_MIN: Duration = Duration::from_millis(5);
/// If memory stays above its limit for this long although processes are killed, something else holds it, and the
/// sandbox ends.
const OVER_LIMIT_TIMEOUT: Duration = Duration::from_secs(10);
/// If the guard can't raise its priority, programs of a sandbox with more processes than this get the lowest priority:
/// the kernel limits what one process takes, but the guard must notice in time what many take together.
const PROCESSES_BEFORE_LOWERING: usize = 16;
/// Maximum number of sessions if the guard can't raise its priority and the kernel shares processors by session: beside
/// more sessions, the guard would measure too late.
const SESSIONS_MAX: usize = 32;
/// Interval between measurements in that case, while there are programs. Otherwise hundreds could start before the
/// first measurement.
const SESSIONS_INTERVAL: Duration = Duration::from_millis(20);
/// Number of processes for a first, quick check for too many sessions; a check of all processes follows.
const PROCESSES_FIRST_CHECK: usize = 2 * SESSIONS_MAX;
/// Number of files that may be opened without triggering another full scan.
const OPENED_FILES_MIN: u64 = 32;
/// Reason to end a sandbox with more sessions.
const TOO_MANY_SESSIONS: &str =
    "its programs were in more than 32 sessions, so that their memory cannot be measured in time";

/// Pipes that close when the watch must end.
pub(super) struct WatchedPipes<'a> {
    /// Closes when the host is gone.
    pub(super) host_pipe: &'a OwnedFd,
    /// Closes when the second stage is gone.
    pub(super) agent_pipe: &'a OwnedFd,
}

/// Reason for which the watch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatchEnd {
    /// The host is gone.
    HostGone,
    /// The second stage is gone.
    AgentGone,
    /// The sandbox exceeded the described limit.
    OverLimit(String),
}

impl WatchedPipes<'_> {
    /// Waits until one of them closes, at most for `wait`.
    fn wait(&self, wait: Duration) -> Result<Option<WatchEnd>, String> {
        let mut waits = [
            PollFd::new(self.host_pipe, PollFlags::empty()),
            PollFd::new(self.agent_pipe, PollFlags::empty()),
        ];
        match poll(&mut waits, Some(&timespec(wait))) {
            Err(rustix::io::Errno::INTR) => return Ok(None),
            other => other.context("cannot wait for the sandbox")?,
        };
        let [host, agent] = waits.map(|wait| !wait.revents().is_empty());
        Ok(if agent { Some(WatchEnd::AgentGone) } else { host.then_some(WatchEnd::HostGone) })
    }
}

impl Watcher {
    /// Watches until the host or the second stage is gone, or until the folder, the number of processes or the number
    /// of locks exceeds its limit. If all processes together use too much memory, kills the one that uses most, as the
    /// kernel would.
    pub(super) fn run(self, pipes: &WatchedPipes<'_>) -> Result<WatchEnd, String> {
        if self.limits.memory_is_bounded {
            return self.run_full_scans(pipes);
        }
        let scanner = FullScanner::start(self.clone())?;
        self.watch_memory(pipes, &scanner, priority::has_raised_priority())
    }

    /// Runs full scans only, since a cgroup limits memory.
    fn run_full_scans(&self, pipes: &WatchedPipes<'_>) -> Result<WatchEnd, String> {
        let only_locks = self.limits.processes_are_bounded && self.folder.is_none();
        let interval = if only_locks { LOCKS_SCAN_INTERVAL } else { SCAN_INTERVAL };
        let sockets = SocketBuffers::from_network_settings();
        let mut failed = FailedScans::default();
        let mut wait = interval;
        loop {
            if let Some(end) = pipes.wait(wait)? {
                return Ok(end);
            }
            let began = Instant::now();
            if let Some(reason) = self.scan(sockets, &mut failed).end_reason {
                return Ok(WatchEnd::OverLimit(reason));
            }
            wait = pause_after(began, interval);
        }
    }

    /// Measures memory frequently, in parallel to full scans, which may take longer than programs need to use up all
    /// memory.
    fn watch_memory(
        &self,
        pipes: &WatchedPipes<'_>,
        scanner: &FullScanner,
        has_raised_priority: bool,
    ) -> Result<WatchEnd, String> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        #[allow(clippy::cast_precision_loss)] // a small number
        let growth = GROWTH_BYTES_PER_S * processors as f64;
        let by_session = !has_raised_priority && priority::is_scheduled_by_session();
        let too_many_sessions = |processes: &BTreeSet<u32>| {
            by_session && processes::are_in_more_sessions_than(processes, SESSIONS_MAX)
        };
        let mut over_since = None;
        let mut wait = SCAN_INTERVAL;
        loop {
            if let Some(end) = pipes.wait(wait)? {
                return Ok(end);
            }
            let began = Instant::now();
            if too_many_sessions(&processes::descendants_up_to(std::process::id(), PROCESSES_FIRST_CHECK)) {
                return Ok(WatchEnd::OverLimit(TOO_MANY_SESSIONS.to_owned()));
            }
            let (own, others) = self.processes();
            if too_many_sessions(&others) {
                return Ok(WatchEnd::OverLimit(TOO_MANY_SESSIONS.to_owned()));
            }
            if !has_raised_priority && others.len() > PROCESSES_BEFORE_LOWERING {
                priority::lower(&others);
            }
            let memory = memory(&others);
            let (used, files_bytes) = {
                let result = scanner.result();
                if let Some(reason) = &result.end_reason {
                    return Ok(WatchEnd::OverLimit(reason.clone()));
                }
                if scanner.has_ended() {
                    return Err("the scans of the sandbox have ended".to_owned());
                }
                let files_bytes = match self.folder {
                    Some(_) => result.files_bytes,
                    None => self.files_in_memory(&own),
                };
                let used = with_held(&memory, &result.held_resources);
                if self.may_hold_more(&memory, sum(&used, files_bytes), scanner.sockets, &result) {
                    scanner.request_scan();
                }
                (used, files_bytes)
            };
            if let Some(reason) = self.bound_memory(&used, files_bytes, &mut over_since) {
                return Ok(WatchEnd::OverLimit(reason));
            }
            wait =
                next_measurement(self.limits.memory_bytes, sum(&used, files_bytes), growth, began.elapsed());
            if by_session && !others.is_empty() {
                wait = wait.min(SESSIONS_INTERVAL);
            }
        }
    }

    /// Returns true if the files opened since the last full scan could be sockets that fill much of the remaining
    /// memory. Kernels before 6.2 don't report the number of open files; there only full scans find them.
    fn may_hold_more(
        &self,
        memory: &BTreeMap<u32, u64>,
        used: u64,
        sockets: SocketBuffers,
        result: &ScanResult,
    ) -> bool {
        let more = |pid: &u32| {
            let known = result.open_files.get(pid).copied().unwrap_or_default();
            processes::open_files(*pid).saturating_sub(known)
        };
        let more = memory.keys().map(more).fold(0, u64::saturating_add);
        let left = self.limits.memory_bytes.saturating_sub(used);
        more > OPENED_FILES_MIN && more.saturating_mul(sockets.largest_bytes()) > left / 2
    }

    /// Returns the size of the sandbox's file systems in memory, in bytes. Those that can't be inspected count as full.
    fn files_in_memory(&self, own: &[u32]) -> u64 {
        let Some(agent) = own.get(self.own_processes) else { return 0 };
        let bytes = |path: &&str| match rustix::fs::statvfs(format!("/proc/{agent}/root{path}")) {
            Ok(at) => at.f_blocks.saturating_sub(at.f_bfree).saturating_mul(at.f_frsize),
            Err(_) => self.limits.disk_bytes,
        };
        self.in_memory.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// If all processes together use too much memory, kills those that use most until the rest fits. Returns the reason
    /// if that doesn't help.
    fn bound_memory(
        &self,
        used: &BTreeMap<u32, u64>,
        files_bytes: u64,
        over_since: &mut Option<Instant>,
    ) -> Option<String> {
        const REASON: &str = "the sandbox used more memory than its limit";
        let limit = self.limits.memory_bytes;
        let total = sum(used, files_bytes);
        if total <= limit {
            *over_since = None;
            return None;
        }
        let since = *over_since.get_or_insert_with(Instant::now);
        if files_bytes > limit || total > self.runaway_bytes() || since.elapsed() > OVER_LIMIT_TIMEOUT {
            return Some(REASON.to_owned());
        }
        for pid in largest(used, total - limit).into_iter().filter_map(|pid| i32::try_from(pid).ok()) {
            // The process may be gone in the meantime; the next measurement finds the next one.
            let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
        }
        None
    }
}

/// Returns the processes that use most, as many as together use at least `bytes`.
fn largest(used: &BTreeMap<u32, u64>, bytes: u64) -> Vec<u32> {
    let mut all: Vec<(u64, u32)> = used.iter().map(|(pid, bytes)| (*bytes, *pid)).collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    let mut left = bytes;
    let enough = all.iter().position(|(bytes, _)| {
        left = left.saturating_sub(*bytes);
        left == 0
    });
    all.truncate(enough.map_or(all.len(), |last| last + 1));
    all.into_iter().map(|(_, pid)| pid).collect()
}

/// Returns the private memory of each process.
fn memory(processes: &BTreeSet<u32>) -> BTreeMap<u32, u64> {
    processes.iter().map(|pid| (*pid, processes::resident_bytes(*pid))).collect()
}

/// Adds what each process held at the last full scan.
fn with_held(memory: &BTreeMap<u32, u64>, held_resources: &BTreeMap<u32, u64>) -> BTreeMap<u32, u64> {
    let held_resources = |pid| held_resources.get(pid).copied().unwrap_or_default();
    memory.iter().map(|(pid, bytes)| (*pid, bytes.saturating_add(held_resources(pid)))).collect()
}

/// Returns the memory of all processes and files together.
fn sum(used: &BTreeMap<u32, u64>, files_bytes: u64) -> u64 {
    used.values().fold(files_bytes, |sum, bytes| sum.saturating_add(*bytes))
}

/// Returns the time until the next measurement of memory: before it can reach its limit, but not without any pause.
fn next_measurement(limit: u64, used: u64, growth: f64, took: Duration) -> Duration {
    #[allow(clippy::cast_precision_loss)] // bytes of one machine are far below 2^53
    let left = Duration::from_secs_f64(limit.saturating_sub(used) as f64 / growth);
    left.clamp(MEMORY_INTERVAL_MIN, SCAN_INTERVAL).max(took.min(SCAN_INTERVAL))
}

/// Waits until the other end of a pipe is closed; false if the time is up first.
pub(super) fn wait_closed(pipe: &OwnedFd, wait: Duration) -> bool {
    poll(&mut [PollFd::new(pipe, PollFlags::empty())], Some(&timespec(wait))).is_ok_and(|ready| ready > 0)
}

fn timespec(wait: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(wait.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_close_to_its_limit_is_measured_more_often() {
        const GROWTH: f64 = 4e9;
        let quick = Duration::from_micros(100);
        assert_eq!(next_measurement(4 << 30, 50 << 20, GROWTH, quick), SCAN_INTERVAL);
        assert_eq!(next_measurement(4 << 30, 4 << 30, GROWTH, quick), MEMORY_INTERVAL_MIN);
        let between = next_measurement(256 << 20, 56 << 20, GROWTH, quick);
        assert!(between > MEMORY_INTERVAL_MIN && between < SCAN_INTERVAL, "{between:?}");
        // More processors allocate it faster.
        assert!(next_measurement(256 << 20, 56 << 20, 2.0 * GROWTH, quick) < between);
        // However long a measurement takes, memory close to its limit is measured again after that time at the latest.
        let slow = Duration::from_millis(30);
        assert_eq!(next_measurement(4 << 30, 4 << 30, GROWTH, slow), slow);
        assert_eq!(next_measurement(4 << 30, 4 << 30, GROWTH, Duration::from_secs(9)), SCAN_INTERVAL);
    }

    #[test]
    fn only_as_many_processes_as_needed_are_chosen() {
        let used = BTreeMap::from([(1, 10), (2, 40), (3, 30), (4, 0)]);
        assert_eq!(largest(&used, 1), [2]);
        assert_eq!(largest(&used, 40), [2]);
        assert_eq!(largest(&used, 41), [2, 3]);
        assert_eq!(largest(&used, 500), [2, 3, 1, 4]);
        assert_eq!(largest(&BTreeMap::new(), 1), [0; 0]);
    }
}
