//! Ends sandboxes that should no longer exist.
//!
//! The worker ends a job's sandbox when the job is over, and removes it from the ledger. Sandboxes still in the
//! ledger after their lease belong to a worker that was killed or to a run that ended. This task ends only those: it
//! never touches a sandbox that isn't in our ledger. A sandbox created just before a crash, and never entered, ends
//! by the rules of its host.

use bench_domain::Timestamp;
use bench_sandy::SandyErrorKind;
use bench_state::StateError;

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
            match self.sandy.terminate(&entry.sandbox).await {
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
}
