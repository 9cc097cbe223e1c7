//! Sandboxes that should be gone.
//!
//! Whoever has a job run ends its sandbox when the job is over, and takes it out of the ledger. What is left there past
//! its lease was made by somebody who was killed, or belongs to a run that ended. This ends those, and only those: a
//! sandbox that is in no ledger of ours is never touched. One that was made in the moment before a crash and never
//! entered ends by the rules of its host.

use bench_domain::Timestamp;
use bench_sandy::SandyErrorKind;
use bench_state::StateError;

use crate::scheduler::Scheduler;

/// Sandboxes ended in one go.
const SANDBOXES_MAX: usize = 200;

impl Scheduler {
    /// Ends the sandboxes of the ledger whose lease is over; tells how many are gone now. One that cannot be ended stays
    /// in the ledger, and so does one of another host.
    ///
    /// # Errors
    /// When the state failed. The next one goes on.
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
                        // The others would fare no better now.
                        break;
                    }
                }
            }
        }
        Ok(ended)
    }
}
