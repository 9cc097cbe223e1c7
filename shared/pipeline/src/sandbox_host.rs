//! The host of the sandboxes that run answers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bench_sandy::job::JobName;
use bench_sandy::{Sandy, SandyConfig};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The host that creates sandboxes.
#[derive(Debug)]
pub struct SandboxHost {
    pub(crate) sandy: Sandy,
    /// Name of the job in its sandbox. Each sandbox has one job.
    pub(crate) job: JobName,
    /// Name of the host in the ledger of sandboxes.
    pub(crate) name: String,
    /// Time for which an attempt polls a job that it has just started, before it leaves the job to later
    /// attempts.
    pub(crate) linger: Duration,
    /// Folder that all sandboxes of this host can read, with large files named by their SHA-256. `None` if
    /// the host is on another machine.
    pub(crate) files: Option<PathBuf>,
    /// Number of queues whose messages find no place. Turns that only wait leave theirs then.
    pub(crate) places_wanted: Arc<AtomicUsize>,
    /// Requests for sandboxes of episodes that may wait for the host at once.
    requests: Arc<Semaphore>,
}

impl SandboxHost {
    /// Creates a host for a sandbox service on any machine. An attempt polls a new job for two seconds, since
    /// waiting on Lambda costs money.
    pub fn new(config: SandyConfig) -> Self {
        let name = config.host().unwrap_or_default();
        Self {
            sandy: Sandy::new(config),
            job: JobName::default(),
            name,
            linger: Duration::from_secs(2),
            files: None,
            places_wanted: Arc::default(),
            requests: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        }
    }

    /// Marks the host as running on this machine, where waiting costs nothing. `files` is a folder that its
    /// sandboxes can read.
    #[must_use]
    pub fn on_this_machine(self, files: PathBuf) -> Self {
        Self { linger: Duration::from_secs(20), files: Some(files), ..self }
    }

    /// Ends the polling of a running operation early while the count isn't zero: other messages find no place then.
    #[must_use]
    pub fn with_places_wanted(self, places_wanted: Arc<AtomicUsize>) -> Self {
        Self { places_wanted, ..self }
    }

    /// Limits the requests for sandboxes of episodes that wait for the host at once, so that episodes that have a sandbox
    /// find places in this process.
    #[must_use]
    pub fn with_requests_max(self, requests_max: usize) -> Self {
        Self { requests: Arc::new(Semaphore::new(requests_max.max(1))), ..self }
    }

    /// Returns the right to request a sandbox, until it is dropped; `None` if too many requests wait.
    pub(crate) fn request(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.requests).try_acquire_owned().ok()
    }

    /// Returns true if other messages find no place.
    pub(crate) fn is_place_wanted(&self) -> bool {
        self.places_wanted.load(Ordering::Relaxed) > 0
    }

    /// Sets the time for which an attempt polls a running operation, and goes on with an agent's next turn.
    #[must_use]
    pub fn with_linger(self, linger: Duration) -> Self {
        Self { linger, ..self }
    }
}
