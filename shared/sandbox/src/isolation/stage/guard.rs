//! What the first stage holds while it guards the sandbox.

use std::os::fd::OwnedFd;

use super::Doing;
use crate::isolation::wire::Plan;

/// What the guard holds on to.
pub(super) struct Guard {
    pub(super) plan: Plan,
    /// To the host; for the second stage.
    pub(super) control: OwnedFd,
    /// Its other end is held by the host alone, and is closed when the host is gone.
    pub(super) life: OwnedFd,
}

/// Gives up the socket to the host, so that it is closed when the second stage is gone.
pub(super) fn leave_control(control: OwnedFd) -> Result<(), String> {
    drop(control);
    let null = std::fs::File::open("/dev/null").doing("/dev/null cannot be opened")?;
    rustix::stdio::dup2_stdin(null).doing("the standard input cannot be closed")
}
