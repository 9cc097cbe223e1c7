//! The Unix socket of a data directory: other processes of the same user reach the services of its owner there.
//!
//! A data directory has one owner at a time, the process that holds its lock. The owner listens on a socket in the
//! directory. Requests to the host `local.invalid` are calls of the AWS SDK, which [`crate::http`] answers; the owner
//! answers all other requests with a router of its own. Only the user of the directory may connect.

mod address;
mod attached;
mod client;

pub use address::SocketListener;
pub(crate) use attached::{Attached, AttachedConnector};
pub use client::{SocketClient, SocketError};

use std::time::Duration;

/// Name of the socket in a data directory.
pub const SOCKET_FILE: &str = "socket";

/// Path at which the owner's router describes its process.
pub const OWNER_PATH: &str = "/local/owner";

/// Wait between two attempts to lock a data directory or to connect to its owner.
pub const RETRY_WAIT: Duration = Duration::from_millis(25);

/// Maximum time for which a process that holds the lock may have no socket: it is starting or ending.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);
