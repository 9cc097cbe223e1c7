//! Priorities of the guard and of programs, where the guard must measure in time how much memory programs take.

use std::collections::BTreeSet;

use rustix::process::{Pid, getpriority_process, setpriority_process};

use super::Doing;
use super::held::tasks;

/// The highest priority, which a guard gets if it may.
pub(crate) const GUARD: i32 = -20;
/// Priority of programs if the guard has the default priority 0: low enough for the guard to keep up with a hundred of
/// them, and high enough that other work on the machine doesn't bring them to a standstill.
pub(crate) const YIELDING: i32 = 10;
/// The lowest priority.
pub(crate) const LOWEST: i32 = 19;
/// Priority of this process's session, on kernels that share processors among sessions first (autogroups).
const OF_SESSION: &str = "/proc/self/autogroup";
/// Tells if the kernel does so.
const BY_SESSION: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// Raises the priority of this process, and of its session, if permitted: otherwise many busy programs would keep it
/// from measuring in time. Children inherit the priority.
pub(super) fn come_first() {
    let _ = setpriority_process(None, GUARD);
    let _ = std::fs::write(OF_SESSION, GUARD.to_string());
}

/// Returns true if [`come_first`] was permitted.
pub(super) fn comes_first() -> bool {
    getpriority_process(None) == Ok(GUARD)
}

/// Returns true if the kernel shares processors among sessions first. Then a process competes with each session of a
/// program as with a single process, regardless of their priorities.
pub(super) fn is_by_session() -> bool {
    std::fs::read_to_string(BY_SESSION).is_ok_and(|enabled| enabled.trim() == "1")
}

/// Gives this process and its session the priority of programs.
pub(super) fn come_after(priority: i32) -> Result<(), String> {
    setpriority_process(None, priority).doing("cannot set the priority of programs")?;
    let _ = std::fs::write(OF_SESSION, priority.to_string());
    Ok(())
}

/// Gives processes the lowest priority; their children inherit it.
pub(super) fn lower(processes: &BTreeSet<u32>) {
    // Each thread has its own priority.
    for task in processes.iter().flat_map(|pid| tasks(*pid)).filter_map(|task| i32::try_from(task).ok()) {
        // The thread may have ended in the meantime.
        let _ = Pid::from_raw(task).map(|task| setpriority_process(Some(task), LOWEST));
    }
}
