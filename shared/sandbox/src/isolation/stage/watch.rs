//! Limits that the kernel does not keep here, kept by looking.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::{Doing, folder_bytes, processes};
use crate::isolation::wire::LimitsPlan;

/// How often the guard looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A look that takes long (many files) is made less often: so many times as long is waited.
const LOOK_SHARE: u32 = 10;

/// What is watched, and until when.
pub(super) struct Watch<'a> {
    pub(super) limits: &'a LimitsPlan,
    /// The sandbox's files, where they are in no file system of their own.
    pub(super) folder: Option<&'a Path>,
    /// Processes of ours in the sandbox, from the first on: each is the child of the one before.
    pub(super) own_processes: usize,
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

impl Watch<'_> {
    /// Looks until one of them is gone, or the folder or the number of processes is over its limit. Where the processes use too much memory together,
    /// the one that uses most is killed, as the kernel would.
    pub(super) fn run(&self) -> Result<Over, String> {
        let limits = self.limits;
        let looks = self.folder.is_some() || !limits.memory_is_bounded || !limits.processes_are_bounded;
        let mut wait = LOOK_EVERY;
        loop {
            let mut waits =
                [PollFd::new(self.life, PollFlags::empty()), PollFd::new(self.ended, PollFlags::empty())];
            match poll(&mut waits, looks.then(|| timespec(wait)).as_ref()) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other.doing("the sandbox cannot be waited for")?,
            };
            if !waits[1].revents().is_empty() {
                return Ok(Over::Agent);
            }
            if !waits[0].revents().is_empty() {
                return Ok(Over::Host);
            }
            let began = Instant::now();
            if self.folder.is_some_and(|folder| folder_bytes(folder) > limits.disk_bytes) {
                return Ok(Over::Limit(
                    "the working folder held more than its limit, or what cannot be counted".to_owned(),
                ));
            }
            if !limits.processes_are_bounded {
                let own = self.own_processes as u64;
                let count = processes::threads(processes::descendants(std::process::id()));
                if count.saturating_sub(own) > limits.processes {
                    return Ok(Over::Limit("there were more processes than the limit".to_owned()));
                }
            }
            if !limits.memory_is_bounded {
                self.bound_memory();
            }
            wait = LOOK_EVERY.max(began.elapsed() * LOOK_SHARE);
        }
    }

    fn bound_memory(&self) {
        let me = std::process::id();
        let mut own = vec![me];
        for _ in 0..self.own_processes {
            own.extend(own.last().and_then(|last| processes::children(*last).into_iter().min()));
        }
        let used: Vec<(u32, u64)> = processes::descendants(me)
            .into_iter()
            .filter(|pid| !own.contains(pid))
            .map(|pid| (pid, processes::used([pid]).memory_bytes))
            .collect();
        let sum: u64 = used.iter().map(|(_, bytes)| bytes).sum();
        if sum <= self.limits.memory_bytes {
            return;
        }
        let largest = used.into_iter().max_by_key(|(_, bytes)| *bytes);
        if let Some(pid) = largest.and_then(|(pid, _)| Pid::from_raw(i32::try_from(pid).ok()?)) {
            // Gone meanwhile, perhaps; the next look finds the next.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
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
