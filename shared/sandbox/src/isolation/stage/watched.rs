//! What the guard watches over.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::processes;
use crate::isolation::wire::LimitsPlan;

/// How often the guard looks.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Memory above its limit by more than this share of it is taken faster than it is freed by killing process after process:
/// the sandbox ends.
const RUNAWAY_SHARE: u64 = 2;

/// What is watched.
#[derive(Clone)]
pub(super) struct Watch {
    pub(super) limits: LimitsPlan,
    /// The sandbox's files, where they are in no file system of their own.
    pub(super) folder: Option<PathBuf>,
    /// File systems of the sandbox's own that are in memory, as its processes see them.
    pub(super) in_memory: &'static [&'static str],
    /// The user that the sandbox is, where this process is another.
    pub(super) user: Option<u32>,
    /// Processes of ours in the sandbox, from the first on: each is the child of the one before.
    pub(super) own_processes: usize,
}

impl Watch {
    /// Processes of ours, and those of the sandbox's programs.
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

    /// From so many bytes on, the sandbox ends.
    pub(super) fn runaway_bytes(&self) -> u64 {
        let limit = self.limits.memory_bytes;
        limit.saturating_add(limit / RUNAWAY_SHARE)
    }
}
