//! Result of creating a sandbox.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::EnginePlace;
use super::resources::SandboxResources;
use super::wire::Ready;

/// A new sandbox and the host's end of its stage channel.
pub(crate) struct LaunchedSandbox {
    pub(crate) control: OwnedFd,
    pub(crate) ready: Ready,
    /// Folder of its files, if it has no file system of its own.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) engine_place: Option<EnginePlace>,
    pub(crate) resources: SandboxResources,
}
