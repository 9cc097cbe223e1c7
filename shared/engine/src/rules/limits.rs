//! Limits of containers, bodies and streams of one sandbox.

use std::time::Duration;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Limits of one sandbox.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Memory of a container that asks for none, in bytes. Swap isn't available.
    pub memory_bytes_default: u64,
    /// Maximum memory of a container, in bytes.
    pub memory_bytes_max: u64,
    /// Processors of a container that asks for none, in billionths.
    pub nano_cpus_default: u64,
    /// Maximum processors of a container, in billionths.
    pub nano_cpus_max: u64,
    /// Processes of a container that asks for no limit.
    pub pids_default: u64,
    /// Maximum processes of a container.
    pub pids_max: u64,
    /// Maximum number of containers that exist at once.
    pub containers_max: usize,
    /// Maximum number of files and folders that a container may have made for its size to be measured. Also limits how long
    /// the engine's removal of a container makes other sandboxes wait.
    pub files_max: u64,
    /// Maximum number of networks that exist at once.
    pub networks_max: usize,
    /// Maximum number of volumes that exist at once.
    pub volumes_max: usize,
    /// Maximum size of a container's log, in bytes.
    pub log_bytes_max: u64,
    /// Maximum size of a JSON body, in bytes.
    pub json_bytes_max: u64,
    /// Maximum size of a build's context before and after decompression, in bytes.
    pub context_bytes_max: u64,
    /// Maximum bytes of a stream in each direction: archives, logs, attached terminals.
    pub stream_bytes_max: u64,
    /// Maximum duration of a stream, a wait or an attached terminal.
    pub stream_time_max: Duration,
    /// Maximum duration of a build or pull.
    pub build_time_max: Duration,
    /// Maximum space on the engine's disk that a build or pull uses, in bytes. It ends when the disk has this much
    /// less free space than before, whoever uses it.
    pub build_disk_bytes_max: u64,
    /// Space on the engine's disk that no build or pull may use, in bytes.
    pub disk_reserve_bytes: u64,
    /// Maximum time for which the sandbox is the only one of its host that builds.
    pub builder_time_max: Duration,
    /// Maximum number of open connections.
    pub connections_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes_default: 2 * GIB,
            memory_bytes_max: 8 * GIB,
            nano_cpus_default: 1_000_000_000,
            nano_cpus_max: 4_000_000_000,
            pids_default: 512,
            pids_max: 4096,
            containers_max: 16,
            files_max: 2_000_000,
            networks_max: 8,
            volumes_max: 16,
            log_bytes_max: 64 * MIB,
            json_bytes_max: MIB,
            context_bytes_max: GIB,
            stream_bytes_max: 4 * GIB,
            stream_time_max: Duration::from_secs(6 * 3600),
            build_time_max: Duration::from_secs(3600),
            build_disk_bytes_max: 20 * GIB,
            disk_reserve_bytes: GIB,
            builder_time_max: Duration::from_secs(2 * 3600),
            connections_max: 64,
        }
    }
}
