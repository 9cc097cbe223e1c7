//! Rules of one sandbox: owner, folders, images, limits and network.

mod folders;
mod images;
mod limits;
mod pins;

pub use self::folders::{FolderError, SharedFolder};
pub(crate) use self::folders::{Folders, Pin};
pub use self::images::ImageRules;
pub(crate) use self::images::{full_name, is_image_id, tagged_name};
pub use self::limits::Limits;
pub(crate) use self::pins::{Pins, release_all};
use crate::labels::Owner;

/// Network of a sandbox's containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// No network. Where nftables work, containers of the sandbox may have networks among themselves. With podman they
    /// have no names there, because its name server would answer for names outside, too.
    None,
    /// Public IPv4 addresses, without this machine, private networks and metadata services. Needs nftables. Networks
    /// that the sandbox makes as internal ones are closed like those of [`NetworkPolicy::None`].
    Public,
    /// The engine's usual network: everything that the machine reaches, including the machine itself and its local
    /// network.
    Unfiltered,
}

/// Rules by which a proxy filters the requests of one sandbox.
#[derive(Debug, Clone)]
pub struct SandboxRules {
    /// Owner of everything that the sandbox creates.
    pub owner: Owner,
    /// Folders that the sandbox may mount into containers.
    pub folders: Vec<SharedFolder>,
    /// Images that the sandbox may use and name.
    pub images: ImageRules,
    /// Limits of containers, bodies and streams.
    pub limits: Limits,
    /// Network of containers and builds.
    pub network: NetworkPolicy,
}

impl SandboxRules {
    /// Creates rules without shared folders and without a network. Images are those of Docker Hub.
    #[must_use]
    pub fn new(owner: Owner) -> Self {
        let images = ImageRules::of_sandbox(owner.sandbox());
        Self { owner, folders: Vec::new(), images, limits: Limits::default(), network: NetworkPolicy::None }
    }
}
