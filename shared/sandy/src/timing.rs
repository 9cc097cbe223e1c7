//! How long calls may take.

use std::time::Duration;

/// Time limits of the calls, and the first wait before a repeat. The default is what the service's API asks for; tests
/// have shorter ones.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Until a connection is there.
    pub connect: Duration,
    /// Creation of a sandbox.
    pub create: Duration,
    /// Least limit of a command, whatever its own is.
    pub exec_least: Duration,
    /// What a command's call may take beyond the command's own limit.
    pub exec_margin: Duration,
    /// Writing a file.
    pub write: Duration,
    /// Ending a sandbox.
    pub terminate: Duration,
    /// Whether a sandbox is there.
    pub exists: Duration,
    /// Before the first repeat of a call; doubled before each further one.
    pub repeat_wait: Duration,
    /// A short command of a job's steps, in the sandbox.
    pub command: Duration,
    /// A command that moves bytes: checking, joining and unpacking up to 64 MiB, or reading results.
    pub unpack: Duration,
    /// How long one [`crate::job::upload`] goes on writing pieces before it leaves the rest to the next.
    pub upload_step: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            create: Duration::from_secs(90),
            exec_least: Duration::from_secs(60),
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
