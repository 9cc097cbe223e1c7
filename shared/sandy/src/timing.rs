//! Time limits.

use std::time::Duration;

/// Time limits of calls, and the wait before the first retry. The default follows the service's API; tests use shorter
/// ones.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Establishing a connection.
    pub connect: Duration,
    /// Creation of a sandbox.
    pub create: Duration,
    /// Minimum time limit of a command's call, whatever the command's own limit is.
    pub exec_min: Duration,
    /// Time that a command's call may take beyond the command's own limit.
    pub exec_margin: Duration,
    /// Writing a file.
    pub write: Duration,
    /// Ending a sandbox.
    pub terminate: Duration,
    /// Checking if a sandbox exists.
    pub exists: Duration,
    /// Wait before the first retry of a call; doubled before each further one.
    pub repeat_wait: Duration,
    /// Time limit of a job's short commands in the sandbox.
    pub command: Duration,
    /// Time limit of commands that move bytes: checking, joining and unpacking up to 64 MiB, or reading results.
    pub unpack: Duration,
    /// Time after which a [`crate::job::upload`] stops writing pieces and leaves the rest to the next call.
    pub upload_step: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            create: Duration::from_secs(90),
            exec_min: Duration::from_secs(60),
            exec_margin: Duration::from_secs(30),
            write: Duration::from_secs(30),
            terminate: Duration::from_secs(30),
            exists: Duration::from_secs(10),
            repeat_wait: Duration::from_secs(1),
            command: Duration::from_secs(10),
            unpack: Duration::from_secs(60),
            upload_step: Duration::from_secs(20),
        }
    }
}
