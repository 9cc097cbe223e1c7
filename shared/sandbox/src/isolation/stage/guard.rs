//! State of the first stage while it guards the sandbox.

use std::os::fd::OwnedFd;

use super::Context;
use crate::isolation::wire::Plan;

/// State of the guard.
pub(super) struct Guard {
    pub(super) plan: Plan,
    /// Socket to the host, which the second stage inherits.
    pub(super) control: OwnedFd,
    /// Pipe from the host, which alone holds the other end; it closes when the host is gone.
    pub(super) host_pipe: OwnedFd,
}

/// Closes the guard's copies of the socket to the host, so that the socket closes when the second stage is gone.
pub(super) fn leave_control(control: OwnedFd) -> Result<(), String> {
    drop(control);
    let null = std::fs::File::open("/dev/null").context("cannot open /dev/null")?;
    rustix::stdio::dup2_stdin(null).context("cannot close the standard input")
}
