//! What making a sandbox gives.

use std::os::fd::OwnedFd;

use super::cell::Cell;
use super::wire::Ready;

/// A sandbox that was made, and its end of the talk.
pub(crate) struct Launched {
    pub(crate) control: OwnedFd,
    pub(crate) ready: Ready,
    pub(crate) cell: Cell,
}
