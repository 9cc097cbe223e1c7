//! Configuration of the guard's watch.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::processes;
use crate::isolation::wire::LimitsPlan;

/// Interval between scans.
pub(super) const SCAN_INTERVAL: Duration = Duration::from_millis(200);
/// If memory exceeds its limit by more than `limit / RUNAWAY_SHARE`, programs allocate it faster than killing processes
/// frees it, and the sandbox ends.
const RUNAWAY_SHARE: u64 = 2;

/// A sandbox to watch.
#[derive(Clone)]
pub(super) struct Watcher {
    pub(super) limits: LimitsPlan,
    /// Folder of the sandbox's files, if it has no file system of its own.
    pub(super) folder: Option<PathBuf>,
    /// The sandbox's own file systems in memory, as paths inside.
    pub(super) in_memory: &'static [&'static str],
    /// Uid of the sandbox, if it differs from this process's.
    pub(super) user: Option<u32>,
    /// Number of our own processes in the sandbox, from the first on: each is the child of the one before.
    pub(super) own_processes: usize,
}

impl Watcher {
    /// Returns our own processes, and those of the sandbox's programs.
    pub(super) fn processes(&self) -> (Vec<u32>, BTreeSet<u32>) {
        let me = std::process::id();
        let mut own = vec![me];
        for _ in 0..self.own_processes {
            own.extend(own.last().and_then(|last| processes::children(*last).into_iter().min()));
        }
        let mut others = processes::descendants(me);
        others.retain(|pid| !own.contains(pid));
        (own, others)
    }

    /// Returns the amount of memory above which the sandbox ends, in bytes.
    pub(super) fn runaway_bytes(&self) -> u64 {
        let limit = self.limits.memory_bytes;
        limit.saturating_add(limit / RUNAWAY_SHARE)
    }
}
