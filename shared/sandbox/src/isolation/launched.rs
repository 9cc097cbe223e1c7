//! Result of creating a sandbox.

use std::os::fd::OwnedFd;

use super::resources::SandboxResources;
use super::wire::Ready;

/// A new sandbox and the host's end of its stage channel.
pub(crate) struct LaunchedSandbox {
    pub(crate) control: OwnedFd,
    pub(crate) ready: Ready,
    pub(crate) resources: SandboxResources,
}
