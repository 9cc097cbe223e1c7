//! Removes everything that belongs to a deleted run.

use bench_blobs::{bodies_prefix, exports_prefix, indexes_prefix};
use bench_domain::RunId;
use bench_queue::Message;
use bench_state::RunWithBenchmarks;

use crate::{FinishError, Finisher, LOOK_AGAIN, PAGE};

impl Finisher {
    /// Removes the stored data of a deleted run now, instead of when its message is handled. Does nothing if the run
    /// wasn't deleted, or is gone.
    ///
    /// # Errors
    /// Fails if a service failed. The run's message is still in the queue, and repeats this.
    pub async fn clear_up_deleted(&self, run: RunId) -> Result<(), FinishError> {
        match self.state.any_run_with_benchmarks(run).await? {
            Some(found) if found.run.deleted => self.clear_up(&found).await,
            _ => Ok(()),
        }
    }

    /// Removes everything that belongs to a deleted run. Its record is removed last.
    pub(crate) async fn clear_up(&self, found: &RunWithBenchmarks) -> Result<(), FinishError> {
        let (run, generation) = (found.run.spec.id, found.run.generation);
        if self.has_samples_in_hand(found).await? {
            // A run can be deleted right after it was canceled. An attempt that stores its answer after the removal
            // would leave it behind.
            return Ok(self.queues.send(&Message::Finish { run, generation }, LOOK_AGAIN).await?);
        }
        if !self.has_ended_sandboxes(run, generation).await? {
            return Ok(self.queues.send(&Message::Finish { run, generation }, LOOK_AGAIN).await?);
        }
        self.credentials.delete(run).await?;
        self.blobs.delete_prefix(&bodies_prefix(run)).await?;
        self.blobs.delete_prefix(&exports_prefix(run)).await?;
        self.blobs.delete_prefix(&indexes_prefix(run)).await?;
        // Stored responses belong to one order. A rejudged run names them, too, but reads the first run's bodies.
        if let (Some(responses), None) = (&found.run.spec.model.replay_key, &found.run.spec.rejudges) {
            self.blobs.delete(responses).await?;
        }
        Ok(self.state.purge_run(run).await?)
    }

    /// Returns true if an attempt may still be working on a sample of the run.
    async fn has_samples_in_hand(&self, found: &RunWithBenchmarks) -> Result<bool, FinishError> {
        for benchmark in &found.benchmarks {
            let planned = benchmark.plan.as_ref().map_or(0, |plan| plan.samples());
            let mut offset = 0;
            while offset < planned {
                let page = self.state.samples_page(found.run.spec.id, benchmark, offset, PAGE).await?;
                if page.iter().any(|sample| self.is_in_hand(sample)) {
                    return Ok(true);
                }
                offset += PAGE;
            }
        }
        Ok(false)
    }
}
