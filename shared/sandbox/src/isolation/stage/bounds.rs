//! Limits of each process (`setrlimit`), below those of the sandbox.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::Doing;
use crate::isolation::wire::AgentPlan;

/// Sets the limits of this process and of all that it starts. A limit is never raised above the one that holds already.
pub(super) fn apply(plan: &AgentPlan) -> Result<(), String> {
    let limits = &plan.limits;
    let mut all = vec![
        // 0 would still run a program that the machine has for core dumps; 1 is the kernel's word for none at all.
        (Resource::RLIMIT_CORE, 1),
        (Resource::RLIMIT_FSIZE, limits.disk_bytes),
        (Resource::RLIMIT_NOFILE, limits.open_files),
        (Resource::RLIMIT_NPROC, plan.processes_max),
        (Resource::RLIMIT_MSGQUEUE, 0),
    ];
    // Address space is not memory: where a cgroup counts what is really used, programs that reserve more may run.
    if !limits.memory_is_bounded {
        all.push((Resource::RLIMIT_AS, limits.memory_bytes));
    }
    for (resource, limit) in all {
        let (_, hard) = getrlimit(resource).doing("a limit cannot be told")?;
        let limit = limit.min(hard);
        setrlimit(resource, limit, limit)
            .doing(&format!("the limit {resource:?} cannot be set to {limit}"))?;
    }
    Ok(())
}
