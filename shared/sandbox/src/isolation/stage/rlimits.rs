//! Resource limits of each process (`setrlimit`).

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::Context;
use crate::isolation::wire::AgentPlan;

/// Sets the limits of this process and of everything that it starts. Never raises a limit above the current hard limit.
pub(super) fn apply(plan: &AgentPlan) -> Result<(), String> {
    let limits = &plan.limits;
    let mut all = vec![
        // With 0, the kernel would still run a core-dump handler of the machine; 1 disables core dumps altogether.
        (Resource::RLIMIT_CORE, 1),
        (Resource::RLIMIT_FSIZE, limits.disk_bytes),
        (Resource::RLIMIT_NOFILE, limits.open_files),
        (Resource::RLIMIT_NPROC, plan.processes_max),
        (Resource::RLIMIT_MSGQUEUE, 0),
    ];
    // Address space isn't memory: where a cgroup counts the memory in use, programs may reserve more.
    if !limits.memory_is_bounded {
        all.push((Resource::RLIMIT_AS, limits.memory_bytes));
    }
    for (resource, limit) in all {
        let (_, hard) = getrlimit(resource).context("cannot read a limit")?;
        let limit = limit.min(hard);
        setrlimit(resource, limit, limit)
            .context(&format!("cannot set the limit {resource:?} to {limit}"))?;
    }
    Ok(())
}
