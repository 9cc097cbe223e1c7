//! The first stage, which stays outside of the sandbox and becomes its guard.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::stat::Mode;

use super::guard::Guard;
use super::{Context, confined, control, namespaces, priority};
use crate::isolation::wire::{self, FormKind, Plan};

/// OOM score adjustment: the kernel kills programs in sandboxes before the host when the machine runs out of memory.
const OOM_SCORE: &str = "800";
/// Maximum time to wait for the plan. The host sends it before it starts this process.
const PLAN_WAIT: Duration = Duration::from_secs(30);

/// Creates the sandbox and returns when it has ended. Returns the limit that it was ended for, if any.
pub(super) fn run() -> Result<Option<String>, String> {
    let control = control()?;
    if !wire::wait_readable(control.as_fd(), PLAN_WAIT).context("cannot wait for the host")? {
        return Err("the host did not send a plan".to_owned());
    }
    let received = wire::receive::<()>(control.as_fd()).context("cannot receive the plan")?;
    let mut files = received.ok_or("the host is gone")?.files.into_iter();
    let (Some(plan), Some(host_pipe)) = (files.next(), files.next()) else {
        return Err("the plan is incomplete".to_owned());
    };
    let plan: Plan = wire::read_json(plan).context("cannot read the plan")?;

    nix::sys::stat::umask(Mode::from_bits_truncate(0o022));
    // A separate process group: Ctrl-C at the terminal goes to the host, which then ends its sandboxes.
    nix::unistd::setsid().context("cannot leave the host's session")?;
    if !plan.limits.memory_is_bounded {
        priority::raise_priority();
    }
    for file in &plan.cgroup_procs {
        std::fs::write(file, "0").context(&format!("cannot join the cgroup at `{}`", file.display()))?;
    }
    // Some containers don't permit this; then the kernel is as likely to kill the host as a program in a sandbox.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);

    let guard = Guard { plan, control, host_pipe };
    match guard.plan.kind {
        FormKind::Namespaces => namespaces::run(guard),
        FormKind::Confined => confined::run(guard),
    }
}
