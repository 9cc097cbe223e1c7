//! Limits that the kernel does not keep here, kept by looking.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::full_look::{Found, FullLooks, Uncounted, until_next};
use super::held::Sockets;
use super::watched::{LOOK_EVERY, Watch};
use super::{Doing, priority, processes};

/// How often it looks where it has only locks to count, whose memory grows slowly.
const LOCKS_LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks at memory alone are made more often, the closer it is to its limit: a processor takes at most so many bytes in a
/// second, about.
const GROWTH_BYTES_PER_S: f64 = 4e9;
const MEMORY_LOOK_MIN: Duration = Duration::from_millis(5);
/// Memory that stays above its limit for so long, whatever is killed, is in use by something that can't be.
const OVER_MAX: Duration = Duration::from_secs(10);
/// Where the guard may not come first, programs get the lowest priority as soon as a sandbox has more processes than this:
/// what one takes is bounded by the kernel, and what many take together must be found in time.
const PROCESSES_FEW: usize = 16;
/// A guard that may not come first is one session among those of the programs where processors are shared out by session:
/// beside more than so many, it would look too late.
const SESSIONS_MAX: usize = 32;
/// There it looks at least so often while there are programs, or else hundreds could start before the first look.
const SESSIONS_LOOK_EVERY: Duration = Duration::from_millis(20);
/// So many processes are enough to find too many sessions early, mostly; all are looked at afterward.
const PROCESSES_EARLY: usize = 2 * SESSIONS_MAX;
/// So many files may be opened without another full look.
const OPENED_MIN: u64 = 32;
/// Why a sandbox with more ends.
const TOO_MANY_SESSIONS: &str =
    "its programs were in more than 32 sessions, beside which their memory cannot be watched in time";

/// Until when.
pub(super) struct Ends<'a> {
    /// Its other end is closed when the host is gone.
    pub(super) life: &'a OwnedFd,
    /// Its other end is closed when the second stage is gone.
    pub(super) ended: &'a OwnedFd,
}

/// Why there is nothing to watch any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Over {
    /// The host is gone.
    Host,
    /// The second stage is gone.
    Agent,
    /// The sandbox must end: why.
    Limit(String),
}

impl Ends<'_> {
    /// Waits for one of them, and no longer than this.
    fn wait(&self, wait: Duration) -> Result<Option<Over>, String> {
        let mut waits =
            [PollFd::new(self.life, PollFlags::empty()), PollFd::new(self.ended, PollFlags::empty())];
        match poll(&mut waits, Some(&timespec(wait))) {
            Err(rustix::io::Errno::INTR) => return Ok(None),
            other => other.doing("the sandbox cannot be waited for")?,
        };
        let [host, agent] = waits.map(|wait| !wait.revents().is_empty());
        Ok(if agent { Some(Over::Agent) } else { host.then_some(Over::Host) })
    }
}

impl Watch {
    /// Looks until the host or the second stage is gone, or the folder, the number of processes or that of locks is over its
    /// limit. Where the processes use too much memory together, the one that uses most is killed, as the kernel would.
    pub(super) fn run(self, ends: &Ends<'_>) -> Result<Over, String> {
        if self.limits.memory_is_bounded {
            return self.look_for(ends);
        }
        let full = FullLooks::start(self.clone())?;
        self.watch_memory(ends, &full, priority::comes_first())
    }

    /// Full looks alone, now and then: a cgroup bounds memory.
    fn look_for(&self, ends: &Ends<'_>) -> Result<Over, String> {
        let only_locks = self.limits.processes_are_bounded && self.folder.is_none();
        let every = if only_locks { LOCKS_LOOK_EVERY } else { LOOK_EVERY };
        let sockets = Sockets::of_this_network();
        let mut uncounted = Uncounted::default();
        let mut wait = every;
        loop {
            if let Some(over) = ends.wait(wait)? {
                return Ok(over);
            }
            let began = Instant::now();
            if let Some(reason) = self.look(sockets, &mut uncounted).over {
                return Ok(Over::Limit(reason));
            }
            wait = until_next(began, every);
        }
    }

    /// Looks at memory, often, beside full looks, which may take much longer than it takes to use all memory there is.
    fn watch_memory(&self, ends: &Ends<'_>, full: &FullLooks, comes_first: bool) -> Result<Over, String> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        #[allow(clippy::cast_precision_loss)] // a small number
        let growth = GROWTH_BYTES_PER_S * processors as f64;
        let by_session = !comes_first && priority::is_by_session();
        let too_many_sessions = |processes: &BTreeSet<u32>| {
            by_session && processes::are_in_more_sessions_than(processes, SESSIONS_MAX)
        };
        let mut over_since = None;
        let mut wait = LOOK_EVERY;
        loop {
            if let Some(over) = ends.wait(wait)? {
                return Ok(over);
            }
            let began = Instant::now();
            if too_many_sessions(&processes::some_descendants(std::process::id(), PROCESSES_EARLY)) {
                return Ok(Over::Limit(TOO_MANY_SESSIONS.to_owned()));
            }
            let (own, others) = self.processes();
            if too_many_sessions(&others) {
                return Ok(Over::Limit(TOO_MANY_SESSIONS.to_owned()));
            }
            if !comes_first && others.len() > PROCESSES_FEW {
                priority::lower(&others);
            }
            let memory = memory(&others);
            let (used, files_bytes) = {
                let found = full.found();
                if let Some(reason) = &found.over {
                    return Ok(Over::Limit(reason.clone()));
                }
                if full.have_ended() {
                    return Err("the looks at the sandbox have ended".to_owned());
                }
                let files_bytes = match self.folder {
                    Some(_) => found.files_bytes,
                    None => self.files_in_memory(&own),
                };
                let used = with_held(&memory, &found.held);
                if self.may_hold_more(&memory, sum(&used, files_bytes), full.sockets, &found) {
                    full.hurry();
                }
                (used, files_bytes)
            };
            if let Some(reason) = self.bound_memory(&used, files_bytes, &mut over_since) {
                return Ok(Over::Limit(reason));
            }
            wait = next_look(self.limits.memory_bytes, sum(&used, files_bytes), growth, began.elapsed());
            if by_session && !others.is_empty() {
                wait = wait.min(SESSIONS_LOOK_EVERY);
            }
        }
    }

    /// Whether what was opened since the last full look may be sockets that fill much of what is left. Kernels before 6.2 do
    /// not tell how many files are open; there the full looks alone find them.
    fn may_hold_more(&self, memory: &BTreeMap<u32, u64>, used: u64, sockets: Sockets, found: &Found) -> bool {
        let more = |pid: &u32| {
            let known = found.open_files.get(pid).copied().unwrap_or_default();
            processes::open_files(*pid).saturating_sub(known)
        };
        let more = memory.keys().map(more).fold(0, u64::saturating_add);
        let left = self.limits.memory_bytes.saturating_sub(used);
        more > OPENED_MIN && more.saturating_mul(sockets.largest_bytes()) > left / 2
    }

    /// Bytes of the sandbox's file systems; each that cannot be seen counts as full.
    fn files_in_memory(&self, own: &[u32]) -> u64 {
        let Some(agent) = own.get(self.own_processes) else { return 0 };
        let bytes = |path: &&str| match rustix::fs::statvfs(format!("/proc/{agent}/root{path}")) {
            Ok(at) => at.f_blocks.saturating_sub(at.f_bfree).saturating_mul(at.f_frsize),
            Err(_) => self.limits.disk_bytes,
        };
        self.in_memory.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// Kills the processes that use most, until the rest fits, where all together use too much. Gives the reason when that
    /// does not help.
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
        if files_bytes > limit || total > self.runaway_bytes() || since.elapsed() > OVER_MAX {
            return Some(REASON.to_owned());
        }
        for pid in largest(used, total - limit).into_iter().filter_map(|pid| i32::try_from(pid).ok()) {
            // Gone meanwhile, perhaps; the next look finds the next.
            let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
        }
        None
    }
}

/// The processes that use most, as many as use so many bytes together.
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

/// Memory by process: pages of its own.
fn memory(processes: &BTreeSet<u32>) -> BTreeMap<u32, u64> {
    processes.iter().map(|pid| (*pid, processes::resident_bytes(*pid))).collect()
}

/// The same with what each held at the last full look.
fn with_held(memory: &BTreeMap<u32, u64>, held: &BTreeMap<u32, u64>) -> BTreeMap<u32, u64> {
    let held = |pid| held.get(pid).copied().unwrap_or_default();
    memory.iter().map(|(pid, bytes)| (*pid, bytes.saturating_add(held(pid)))).collect()
}

/// Memory of all processes and files together.
fn sum(used: &BTreeMap<u32, u64>, files_bytes: u64) -> u64 {
    used.values().fold(files_bytes, |sum, bytes| sum.saturating_add(*bytes))
}

/// When memory is to be looked at again: before it can have reached its limit, and not without any rest.
fn next_look(limit: u64, used: u64, growth: f64, took: Duration) -> Duration {
    #[allow(clippy::cast_precision_loss)] // bytes of one machine are far below 2^53
    let left = Duration::from_secs_f64(limit.saturating_sub(used) as f64 / growth);
    left.clamp(MEMORY_LOOK_MIN, LOOK_EVERY).max(took.min(LOOK_EVERY))
}

/// Waits until the other end of a pipe is closed; `false` when the time is up.
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
    fn memory_close_to_its_limit_is_looked_at_more_often() {
        const GROWTH: f64 = 4e9;
        let quick = Duration::from_micros(100);
        assert_eq!(next_look(4 << 30, 50 << 20, GROWTH, quick), LOOK_EVERY);
        assert_eq!(next_look(4 << 30, 4 << 30, GROWTH, quick), MEMORY_LOOK_MIN);
        let between = next_look(256 << 20, 56 << 20, GROWTH, quick);
        assert!(between > MEMORY_LOOK_MIN && between < LOOK_EVERY, "{between:?}");
        // More processors take it faster.
        assert!(next_look(256 << 20, 56 << 20, 2.0 * GROWTH, quick) < between);
        // However long a look takes, memory that is close to its limit is not left alone for longer.
        let slow = Duration::from_millis(30);
        assert_eq!(next_look(4 << 30, 4 << 30, GROWTH, slow), slow);
        assert_eq!(next_look(4 << 30, 4 << 30, GROWTH, Duration::from_secs(9)), LOOK_EVERY);
    }

    #[test]
    fn as_many_processes_are_killed_as_it_takes() {
        let used = BTreeMap::from([(1, 10), (2, 40), (3, 30), (4, 0)]);
        assert_eq!(largest(&used, 1), [2]);
        assert_eq!(largest(&used, 40), [2]);
        assert_eq!(largest(&used, 41), [2, 3]);
        assert_eq!(largest(&used, 500), [2, 3, 1, 4]);
        assert_eq!(largest(&BTreeMap::new(), 1), [0; 0]);
    }
}
