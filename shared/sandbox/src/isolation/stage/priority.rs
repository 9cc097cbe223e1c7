//! Scheduling priorities. The guard needs a higher priority than programs where it measures their memory, since it must
//! notice in time that they exceed the limit.

use std::collections::BTreeSet;

use rustix::process::{Pid, getpriority_process, setpriority_process};

use super::Context;
use super::held_resources::threads;

/// The highest priority. The guard takes it if the kernel permits.
pub(crate) const GUARD: i32 = -20;
/// Priority of programs if the guard has the default priority 0: low enough for the guard to keep up with a hundred of
/// them, and high enough that other work on the machine doesn't bring them to a standstill.
pub(crate) const YIELDING: i32 = 10;
/// The lowest priority.
pub(crate) const LOWEST: i32 = 19;
/// File with the priority of this process's session, on kernels that share processors among sessions first
/// (autogroups).
const SESSION_PRIORITY: &str = "/proc/self/autogroup";
/// File that says if autogroups are enabled.
const AUTOGROUP_ENABLED: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// Raises the priority of this process and of its session, if permitted, so that many busy programs can't delay its
/// measurements. Children inherit the priority.
pub(super) fn raise_priority() {
    let _ = setpriority_process(None, GUARD);
    let _ = std::fs::write(SESSION_PRIORITY, GUARD.to_string());
}

/// Returns true if [`raise_priority`] was permitted.
pub(super) fn has_raised_priority() -> bool {
    getpriority_process(None) == Ok(GUARD)
}

/// Returns true if the kernel shares processors among sessions first. Then each session of a program gets as much time as
/// this process, regardless of their priorities.
pub(super) fn is_scheduled_by_session() -> bool {
    std::fs::read_to_string(AUTOGROUP_ENABLED).is_ok_and(|enabled| enabled.trim() == "1")
}

/// Gives this process and its session the priority of programs.
pub(super) fn set_program_priority(priority: i32) -> Result<(), String> {
    setpriority_process(None, priority).context("cannot set the priority of programs")?;
    let _ = std::fs::write(SESSION_PRIORITY, priority.to_string());
    Ok(())
}

/// Gives processes the lowest priority; their children inherit it.
pub(super) fn lower(processes: &BTreeSet<u32>) {
    // Each thread has its own priority.
    for thread in
        processes.iter().flat_map(|pid| threads(*pid)).filter_map(|thread| i32::try_from(thread).ok())
    {
        // The thread may have ended in the meantime.
        let _ = Pid::from_raw(thread).map(|thread| setpriority_process(Some(thread), LOWEST));
    }
}
