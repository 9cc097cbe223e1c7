//! Reasons why there is no usable container engine.

use std::io;
use std::path::PathBuf;

/// Reason why there is no usable container engine.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No engine is installed.
    #[error(
        "no container engine was found: install podman (Debian, Ubuntu: `apt-get install podman runc netavark aardvark-dns`; \
         Fedora: `dnf install podman`), or start dockerd (Debian, Ubuntu: `apt-get install docker.io`; Fedora: `dnf install moby-engine`)"
    )]
    Missing,
    /// Engines were found, but none runs a container within limits.
    #[error(
        "no usable container engine: {reasons}; podman needs a runtime and a network (Debian, Ubuntu: `apt-get install \
         podman runc netavark aardvark-dns`; Fedora: `dnf install podman runc netavark aardvark-dns`)"
    )]
    Unusable {
        /// Each place with its reason.
        reasons: String,
    },
    /// The configured engine can't be used.
    #[error("the container engine at `{socket}` can't be used: {reason}")]
    Configured {
        /// Path of the socket.
        socket: String,
        /// The engine's or the system's reason.
        reason: String,
    },
    /// The configured address isn't a Unix socket.
    #[error(
        "`{address}` is not the address of a container engine on this machine: use `unix:///path/to/socket`"
    )]
    Address {
        /// The address as configured.
        address: String,
    },
    /// The private folder can't be created.
    #[error("can't create the folder `{}`: {source}", path.display())]
    RunFolder {
        /// Path of the folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The probe took too long.
    #[error("no container engine was ready within {seconds} s")]
    TimedOut {
        /// The time limit in seconds.
        seconds: u64,
    },
}

impl ProbeError {
    pub(super) fn unusable(socket: &str, reason: &str) -> Self {
        Self::Configured { socket: socket.to_owned(), reason: reason.to_owned() }
    }
}
