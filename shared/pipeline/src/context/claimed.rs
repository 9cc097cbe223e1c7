//! A claimed sample with everything that its stages need.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bench_blobs::Blobs;
use bench_datasets::ItemCache;
use bench_domain::{SampleRef, Stage, Timestamp, Usage};
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
    /// Tokens of the sample's model calls so far, if its answer comes from an episode.
    paid: Mutex<Option<Usage>>,
    /// Tokens of the calls of its user simulator so far.
    user_paid: Mutex<Option<Usage>>,
    /// True once this attempt has a record of its own of the agent's last step.
    has_record: AtomicBool,
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
            paid: Mutex::default(),
            user_paid: Mutex::default(),
            has_record: AtomicBool::new(false),
            item: OnceCell::new(),
        }
    }

    /// Loads the item in the form that this sample asks, once per attempt.
    pub(crate) async fn item(&self, blobs: &Blobs) -> Result<&Item, PipelineError> {
        let load = || self.benchmark.item(blobs, &self.record, self.sample.position.sample);
        self.item.get_or_try_init(load).await
    }

    /// Loads the item without keeping a large one for later calls: answers take long, and meanwhile the large items of many
    /// samples would fill the memory. The tests of a programming problem can have many megabytes.
    pub(crate) async fn unkept_item(&self, blobs: &Blobs) -> Result<Cow<'_, Item>, PipelineError> {
        if self.item.initialized() || !ItemCache::is_large(self.record.length) {
            return Ok(Cow::Borrowed(self.item(blobs).await?));
        }
        let item = self.benchmark.item(blobs, &self.record, self.sample.position.sample).await?;
        Ok(Cow::Owned(item))
    }

    /// Notes the tokens of the episode's model calls so far.
    pub(crate) fn note_paid(&self, paid: Option<Usage>) {
        *self.paid.lock().unwrap_or_else(PoisonError::into_inner) = paid;
    }

    /// Returns the tokens of the episode's model calls so far.
    pub(crate) fn paid(&self) -> Option<Usage> {
        *self.paid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the tokens of the user simulator's calls so far.
    pub(crate) fn note_user_paid(&self, paid: Option<Usage>) {
        *self.user_paid.lock().unwrap_or_else(PoisonError::into_inner) = paid;
    }

    /// Returns the tokens of the user simulator's calls so far.
    pub(crate) fn user_paid(&self) -> Option<Usage> {
        *self.user_paid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the agent's last step is known to this attempt.
    pub(crate) fn note_record(&self) {
        self.has_record.store(true, Ordering::Relaxed);
    }

    /// Returns true if an earlier attempt may have stored a step that the checkpoint doesn't name.
    pub(crate) fn looks_for_record(&self) -> bool {
        !self.has_record.swap(true, Ordering::Relaxed)
    }

    /// Builds this sample's message for a stage.
    pub(crate) fn message(&self, stage: Stage) -> Message {
        Message::for_stage(stage, self.sample.clone(), self.run.generation)
    }
}
