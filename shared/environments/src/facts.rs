//! Facts about the engine of a sandbox.

use serde::{Deserialize, Serialize};

/// Name of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// Docker.
    Docker,
    /// Podman's service.
    Podman,
}

/// Builder of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageBuilder {
    /// The engine's own builder. Dockerfiles can't have heredocs.
    Classic,
    /// BuildKit.
    Buildkit,
}

/// Facts about the engine of a sandbox. They don't change while the sandbox exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineFacts {
    /// Name of the engine.
    pub engine: EngineName,
    /// Version of the engine.
    pub version: String,
    /// Architecture of the engine's host as Docker names it, such as `amd64`; empty if the engine doesn't say.
    #[serde(default)]
    pub architecture: String,
    /// Version of compose.
    pub compose: String,
    /// Builder to use.
    pub builder: ImageBuilder,
    /// False if no container can have a network.
    #[serde(default = "yes")]
    pub has_network: bool,
    /// Working folder of the sandbox.
    pub workspace: String,
    /// The same folder as the engine's host sees it (`SANDY_HOST_VOLUME`).
    pub host_workspace: String,
}

fn yes() -> bool {
    true
}
