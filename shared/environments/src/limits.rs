//! Limits of containers and builds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits of each container of an environment. A task can have lower ones, not higher ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ContainerLimits {
    /// Number of processors.
    pub cpus: f64,
    /// Memory in bytes, without swap.
    pub memory_bytes: u64,
    /// Number of processes and threads.
    pub pids: u32,
}

impl Default for ContainerLimits {
    fn default() -> Self {
        Self { cpus: 1.0, memory_bytes: 2 << 30, pids: 1_024 }
    }
}

/// Limits of the builds of one environment together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildLimits {
    /// Time limit of all builds and pulls, without the wait for the host's builder.
    pub time: Duration,
    /// Maximum time to wait while other environments of the host are built.
    pub lock_wait: Duration,
    /// Memory of each command of a build, in bytes. BuildKit ignores it: its host must limit it.
    pub memory_bytes: u64,
    /// Maximum size of a built image, in bytes. A larger one is removed again.
    pub image_bytes_max: u64,
}

impl Default for BuildLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(600),
            lock_wait: Duration::from_hours(2),
            memory_bytes: 4 << 30,
            image_bytes_max: 20 << 30,
        }
    }
}
