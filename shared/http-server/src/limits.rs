//! Limits of a listener, and of the process's open files.

use std::net::IpAddr;
use std::time::Duration;

/// Default maximum number of connections.
pub const CONNECTIONS_DEFAULT: usize = 1024;
/// Open files reserved for databases, sandboxes and exports.
const OPEN_FILES_RESERVED: u64 = 256;
/// Minimum number of connections: a server with fewer isn't usable.
const CONNECTIONS_MIN: usize = 16;
/// Maximum limit on open files to request: some programs that this process starts visit every possible file descriptor.
const OPEN_FILES_MAX: u64 = 65_536;
/// Limit on open files to assume where the system doesn't report one.
#[cfg(not(unix))]
const OPEN_FILES_ASSUMED: u64 = 8_192;

/// Timeouts and limits of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections.
    pub connections_max: usize,
    /// Maximum number of connections from one IPv4 address or one IPv6 /64 network.
    pub connections_per_address_max: usize,
    /// Maximum number of connections from this machine. It is larger, since behind a reverse proxy all connections are local.
    pub connections_from_loopback_max: usize,
    /// Maximum time for the header of a request, counted from the connection or from the previous response,
    /// so it also ends idle kept-alive connections. Longer than the pause between two polls of `bench`.
    pub header_timeout: Duration,
    /// Maximum time without a byte of a body that is being read.
    pub body_stall_timeout: Duration,
    /// Minimum average rate of a body, once its handler has waited for it longer than `body_stall_timeout`.
    pub body_bytes_per_second_min: u64,
    /// Maximum total time that a handler waits for a body.
    pub body_timeout: Duration,
    /// Maximum time for which a client may take no bytes of its response.
    pub response_stall_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self::with_connections(CONNECTIONS_DEFAULT)
    }
}

impl Limits {
    /// Creates the default limits for this number of connections: an eighth of them per address, three
    /// quarters from loopback.
    pub fn with_connections(connections_max: usize) -> Self {
        let connections_max = connections_max.max(1);
        Self {
            connections_max,
            connections_per_address_max: (connections_max / 8).max(1),
            connections_from_loopback_max: (connections_max - connections_max / 4).max(1),
            header_timeout: Duration::from_secs(15),
            body_stall_timeout: Duration::from_secs(10),
            body_bytes_per_second_min: 8 * 1024,
            body_timeout: Duration::from_secs(20 * 60),
            response_stall_timeout: Duration::from_secs(60),
        }
    }

    /// Creates limits with the configured number of connections, or the default, but at most half of the open
    /// files that remain after the process needs `others` of them for itself.
    pub fn for_open_files(asked: Option<usize>, open_files: u64, others: usize) -> Self {
        let left = open_files.saturating_sub(OPEN_FILES_RESERVED).saturating_sub(others as u64) / 2;
        let most = usize::try_from(left).unwrap_or(usize::MAX).max(CONNECTIONS_MIN);
        Self::with_connections(asked.unwrap_or(CONNECTIONS_DEFAULT).min(most))
    }

    /// Creates limits for a listener that only this process and its children know.
    pub fn within_this_machine(connections_max: usize) -> Self {
        let limits = Self::with_connections(connections_max);
        Self { connections_from_loopback_max: limits.connections_max, ..limits }
    }

    pub(crate) fn for_address(&self, address: IpAddr) -> usize {
        if address.is_loopback() {
            self.connections_from_loopback_max
        } else {
            self.connections_per_address_max
        }
    }
}

/// Raises the limit on this process's open files as far as the system allows, and returns it.
#[cfg(unix)]
pub fn raise_open_files_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(u64::MAX).min(OPEN_FILES_MAX);
    if limit.current.is_some_and(|current| current < wanted)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit })
    {
        tracing::debug!(%error, "The limit on open files stays as it is: {error}");
    }
    open_files_limit()
}

/// Raises the limit on this process's open files as far as the system allows, and returns it.
#[cfg(not(unix))]
pub fn raise_open_files_limit() -> u64 {
    open_files_limit()
}

/// Returns the limit on this process's open files.
#[cfg(unix)]
pub fn open_files_limit() -> u64 {
    use rustix::process::{Resource, getrlimit};

    getrlimit(Resource::Nofile).current.unwrap_or(OPEN_FILES_MAX)
}

/// Returns the limit on this process's open files.
#[cfg(not(unix))]
pub fn open_files_limit() -> u64 {
    OPEN_FILES_ASSUMED
}
