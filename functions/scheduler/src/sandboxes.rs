//! Ends sandboxes that should no longer exist.
//!
//! The worker ends a job's sandbox when the job is over, and removes it from the ledger. Sandboxes still in the
//! ledger after their lease belong to a worker that was killed or to a run that ended. This task ends only those: it
//! never touches a sandbox that isn't in our ledger. A sandbox created just before a crash, and never entered, ends
//! by the rules of its host.

use bench_domain::{SampleRef, Timestamp};
use bench_environments::{EngineHost, EnvironmentError, ErrorKind, Labels};
use bench_sandy::job::JobError;
use bench_sandy::{NewSandbox, SandyError, SandyErrorKind};
use bench_state::{LedgerEntry, StateError};

use crate::scheduler::Scheduler;

/// Maximum number of sandboxes ended per pass.
const SANDBOXES_MAX: usize = 200;

impl Scheduler {
    /// Ends the sandboxes of the ledger whose lease is over, and returns the number that no longer exist. A sandbox
    /// that can't be ended stays in the ledger, and so does one of another host.
    ///
    /// # Errors
    /// Fails if the state fails. The next call continues.
    pub async fn end_overdue_sandboxes(&self, now: Timestamp) -> Result<u64, StateError> {
        let Some(host) = self.config.sandy.host() else { return Ok(0) };
        let mut ended = 0;
        for entry in self.state.overdue_sandboxes(now, SANDBOXES_MAX).await? {
            if entry.host != host {
                continue;
            }
            match self.end_overdue(&entry).await? {
                Ok(()) => {
                    tracing::warn!(run.id = %entry.sample.run, "A sandbox of sample {} was left over and is ended", entry.sample);
                    self.state.forget_sandbox(&entry.sandbox).await?;
                    ended += 1;
                }
                Err(error) => {
                    tracing::warn!(%error, "A sandbox that was left over could not be ended: {error}");
                    if matches!(
                        error.kind(),
                        SandyErrorKind::Transient | SandyErrorKind::Busy | SandyErrorKind::Refused
                    ) {
                        // The others would fail as well now.
                        break;
                    }
                }
            }
        }
        Ok(ended)
    }

    /// Ends a sandbox, after what its sample has at its container engine: a host may keep that when the sandbox ends.
    async fn end_overdue(&self, entry: &LedgerEntry) -> Result<Result<(), SandyError>, StateError> {
        if entry.has_engine
            // An open sample may be in another sandbox by now. It removes what its earlier ones left by itself.
            && self.is_over(&entry.sample).await?
            && let Err(error) = self.remove_environments(entry).await
        {
            tracing::warn!(%error, "Containers of sample {} were not removed: {error}", entry.sample);
        }
        Ok(self.sandy.terminate(&entry.sandbox).await)
    }

    async fn is_over(&self, sample: &SampleRef) -> Result<bool, StateError> {
        let run = self.state.run(sample.run).await?;
        if !run.is_some_and(|run| run.state.status().is_open()) {
            return Ok(true);
        }
        Ok(self.state.sample(sample).await?.is_none_or(|found| found.finished.is_some()))
    }

    /// Removes what a sample has at its engine, through another sandbox of the host if its own was lost.
    async fn remove_environments(&self, entry: &LedgerEntry) -> Result<(), EnvironmentError> {
        let labels = Labels::of_sample(&entry.sample);
        let removed = EngineHost::new(&self.sandy, &entry.sandbox).remove_labeled(&labels, None).await;
        match removed {
            Err(error) if error.kind() == ErrorKind::SandboxLost => {}
            other => return other,
        }
        let new = NewSandbox { docker_socket: true, preemptable: false, ..NewSandbox::default() };
        let other = self.sandy.create(&new).await.map_err(JobError::from)?;
        let removed = EngineHost::new(&self.sandy, &other).remove_labeled(&labels, None).await;
        if let Err(error) = self.sandy.terminate(&other).await {
            tracing::warn!(%error, "A sandbox could not be ended now: {error}");
        }
        removed
    }
}
