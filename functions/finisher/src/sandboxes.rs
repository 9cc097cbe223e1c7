//! Sandboxes of runs that are over.

use std::collections::BTreeSet;
use std::time::Duration;

use bench_domain::RunId;
use bench_queue::Message;
use bench_state::LedgerEntry;

use crate::{FinishError, Finisher};

/// Time for which a deleted run's samples are kept because their sandboxes are still there. The scheduler ends those that
/// are left.
const WAIT_MAX: Duration = Duration::from_secs(60);

impl Finisher {
    /// Has the sandboxes of a run that is over ended now. Without this, samples that wait for their turn would keep
    /// theirs until then.
    pub(crate) async fn end_sandboxes(&self, run: RunId, generation: u32) -> Result<(), FinishError> {
        let open = self.state.sandboxes_of(run).await?;
        self.send_turns(&open, generation).await
    }

    /// Does the same for a deleted run. Returns false while its samples are needed for it.
    pub(crate) async fn has_ended_sandboxes(&self, run: RunId, generation: u32) -> Result<bool, FinishError> {
        let open = self.state.sandboxes_of(run).await?;
        let now = bench_clock::now();
        // If its turn can't end a sandbox, the scheduler does.
        for entry in open.iter().filter(|entry| entry.until > now) {
            self.state.end_sandbox_lease(&entry.sandbox, now).await?;
        }
        let waited_for: Vec<_> = open.into_iter().filter(|entry| now.since(entry.until) < WAIT_MAX).collect();
        self.send_turns(&waited_for, generation).await?;
        Ok(waited_for.is_empty())
    }

    /// Sends the turns of samples, which find that the run is over.
    async fn send_turns(&self, open: &[LedgerEntry], generation: u32) -> Result<(), FinishError> {
        // A sample has several sandboxes if some were lost.
        let mut sent = BTreeSet::new();
        for LedgerEntry { sample, .. } in open {
            if sent.insert(sample.to_string()) {
                let message = Message::Turn { sample: sample.clone(), generation };
                self.queues.send(&message, Duration::ZERO).await?;
            }
        }
        Ok(())
    }
}
