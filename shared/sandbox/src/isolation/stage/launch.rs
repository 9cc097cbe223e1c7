//! The first stage, which stays outside of the sandbox and becomes its guard.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::stat::Mode;

use super::guard::Guard;
use super::{Doing, confined, control, priority, spaces};
use crate::isolation::wire::{self, Kind, Plan};

/// OOM score adjustment: the kernel kills programs in sandboxes before the host when the machine runs out of memory.
const OOM_SCORE: &str = "800";
/// Maximum time to wait for the plan. The host sends it before it starts this process.
const PLAN_WAIT: Duration = Duration::from_secs(30);

/// Creates the sandbox and returns when it has ended. Returns the limit that it was ended for, if any.
pub(super) fn run() -> Result<Option<String>, String> {
    let control = control()?;
    if !wire::wait_readable(control.as_fd(), PLAN_WAIT).doing("cannot wait for the host")? {
        return Err("the host did not send a plan".to_owned());
    }
    let parcel = wire::receive::<()>(control.as_fd()).doing("cannot receive the plan")?;
    let mut files = parcel.ok_or("the host is gone")?.files.into_iter();
    let (Some(plan), Some(life)) = (files.next(), files.next()) else {
        return Err("the plan is incomplete".to_owned());
    };
    let plan: Plan = wire::read_json(plan).doing("cannot read the plan")?;

    nix::sys::stat::umask(Mode::from_bits_truncate(0o022));
    // A separate process group: Ctrl-C at the terminal goes to the host, which then ends its sandboxes.
    nix::unistd::setsid().doing("cannot leave the host's session")?;
    if !plan.limits.memory_is_bounded {
        priority::come_first();
    }
    for file in &plan.joins {
        std::fs::write(file, "0").doing(&format!("cannot join the cgroup at `{}`", file.display()))?;
    }
    // Some containers don't permit this; then the kernel is as likely to kill the host as a program in a sandbox.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);

    let guard = Guard { plan, control, life };
    match guard.plan.kind {
        Kind::Namespaces => spaces::run(guard),
        Kind::Confined => confined::run(guard),
    }
}
