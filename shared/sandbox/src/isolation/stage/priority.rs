//! Who gets the processors first, where a guard must see in time how much memory programs take.

use std::collections::BTreeSet;

use rustix::process::{Pid, getpriority_process, setpriority_process};

use super::Doing;
use super::held::tasks;

/// The highest priority, which a guard has where it may.
pub(crate) const GUARD: i32 = -20;
/// Priority of programs beside a guard of the usual priority, 0: enough for it to look in time beside a hundred of them, and
/// not so little that whatever else the machine does brings them to a standstill.
pub(crate) const YIELDING: i32 = 10;
/// The lowest priority.
pub(crate) const LOWEST: i32 = 19;
/// Where the kernel shares processors out among sessions first, the priority of this process' session.
const OF_SESSION: &str = "/proc/self/autogroup";
/// Tells whether it does.
const BY_SESSION: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// Raises the priority of this process, and of its session, where that is allowed: many programs at work would keep it from
/// looking in time. What it starts inherits its own.
pub(super) fn come_first() {
    let _ = setpriority_process(None, GUARD);
    let _ = std::fs::write(OF_SESSION, GUARD.to_string());
}

/// Whether that was allowed.
pub(super) fn comes_first() -> bool {
    getpriority_process(None) == Ok(GUARD)
}

/// Whether the kernel shares processors out among sessions first: there a process competes with each session of a program
/// as with one process, whatever their priorities.
pub(super) fn is_by_session() -> bool {
    std::fs::read_to_string(BY_SESSION).is_ok_and(|enabled| enabled.trim() == "1")
}

/// Gives this process, and its session, the priority of programs.
pub(super) fn come_after(priority: i32) -> Result<(), String> {
    setpriority_process(None, priority).doing("the priority of programs cannot be set")?;
    let _ = std::fs::write(OF_SESSION, priority.to_string());
    Ok(())
}

/// Gives processes the lowest priority; what they start inherits it.
pub(super) fn lower(processes: &BTreeSet<u32>) {
    // Each thread has its own.
    for task in processes.iter().flat_map(|pid| tasks(*pid)).filter_map(|task| i32::try_from(task).ok()) {
        // Gone meanwhile, perhaps.
        let _ = Pid::from_raw(task).map(|task| setpriority_process(Some(task), LOWEST));
    }
}
