//! A claimed sample with everything that its stages need.

use std::sync::{Arc, OnceLock};

use bench_blobs::Blobs;
use bench_domain::{SampleRef, Stage, Timestamp};
use bench_items::Item;
use bench_lambda::Deadline;
use bench_queue::Message;
use bench_state::{ClaimedRecord, SampleRecord};
use tokio::sync::OnceCell;

use super::benchmark::BenchmarkContext;
use super::runs::RunContext;
use crate::error::PipelineError;

/// A sample that this attempt may work on until its deadline, with its run and benchmark.
pub(crate) struct ClaimedSample {
    pub(crate) run: Arc<RunContext>,
    /// The benchmark under the settings of the run.
    pub(crate) benchmark: Arc<BenchmarkContext>,
    pub(crate) sample: SampleRef,
    /// Record of the sample after the claim.
    pub(crate) record: SampleRecord,
    /// Number of the attempt, which is the fencing token of every write.
    pub(crate) attempt: u32,
    /// End of the lease.
    pub(crate) deadline: Deadline,
    /// Time at which this attempt took the probe of its provider's wait, if it did.
    pub(crate) probed_at: OnceLock<Timestamp>,
    item: OnceCell<Item>,
}

impl ClaimedSample {
    pub(crate) fn new(
        run: Arc<RunContext>,
        benchmark: Arc<BenchmarkContext>,
        sample: SampleRef,
        claimed: ClaimedRecord,
        deadline: Deadline,
    ) -> Self {
        let ClaimedRecord { record, attempt } = claimed;
        Self {
            run,
            benchmark,
            sample,
            record,
            attempt,
            deadline,
            probed_at: OnceLock::new(),
            item: OnceCell::new(),
        }
    }

    /// Loads the item in the form that this sample asks, once per attempt.
    pub(crate) async fn item(&self, blobs: &Blobs) -> Result<&Item, PipelineError> {
        let load = || self.benchmark.item(blobs, &self.record, self.sample.position.sample);
        self.item.get_or_try_init(load).await
    }

    /// Builds this sample's message for a stage.
    pub(crate) fn message(&self, stage: Stage) -> Message {
        Message::for_stage(stage, self.sample.clone(), self.run.generation)
    }
}
