//! The first stage: outside of the sandbox, and its guard.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::stat::Mode;

use super::guard::Guard;
use super::{Doing, confined, control, priority, spaces};
use crate::isolation::wire::{self, Kind, Plan};

/// Programs in sandboxes are killed before the host when the machine has no memory left.
const OOM_SCORE: &str = "800";
/// The host sends the plan before it starts us.
const PLAN_WAIT: Duration = Duration::from_secs(30);

/// Makes the sandbox and stays until it is over. Gives the limit that it was ended for, if it was.
pub(super) fn run() -> Result<Option<String>, String> {
    let control = control()?;
    if !wire::wait_readable(control.as_fd(), PLAN_WAIT).doing("the host is not to be heard")? {
        return Err("the host gave no plan".to_owned());
    }
    let parcel = wire::receive::<()>(control.as_fd()).doing("the plan cannot be received")?;
    let mut files = parcel.ok_or("the host is gone")?.files.into_iter();
    let (Some(plan), Some(life)) = (files.next(), files.next()) else {
        return Err("the plan is not whole".to_owned());
    };
    let plan: Plan = wire::read_json(plan).doing("the plan cannot be read")?;

    nix::sys::stat::umask(Mode::from_bits_truncate(0o022));
    // A group of its own: a Ctrl-C at the terminal is for the host, which then ends its sandboxes.
    nix::unistd::setsid().doing("the session of the host cannot be left")?;
    if !plan.limits.memory_is_bounded {
        priority::come_first();
    }
    for file in &plan.joins {
        std::fs::write(file, "0").doing(&format!("the cgroup at {} cannot be joined", file.display()))?;
    }
    // Not allowed in some containers; then the host is as likely to be killed as a program in a sandbox.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);

    let guard = Guard { plan, control, life };
    match guard.plan.kind {
        Kind::Namespaces => spaces::run(guard),
        Kind::Confined => confined::run(guard),
    }
}
