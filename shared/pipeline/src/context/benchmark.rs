//! Loads a benchmark of a run: its items and the other inputs of its prompts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use bench_benchmarks::{Benchmark, Material, Templates};
use bench_blobs::Blobs;
use bench_datasets::{DatasetError, ItemCache, SupportCache, load_templates};
use bench_domain::run::{DatasetUse, Plan};
use bench_domain::{Prompt, RunSpec};
use bench_inference::Failure;
use bench_items::Item;
use bench_state::{BenchmarkRecord, SampleRecord};
use tokio::sync::OnceCell;

use crate::error::PipelineError;

/// One benchmark of a run, loaded once for all of its samples.
pub(crate) struct BenchmarkContext {
    /// The benchmark under the protocol of the run.
    pub(crate) benchmark: &'static dyn Benchmark,
    /// The plan of this benchmark.
    pub(crate) plan: Plan,
    /// Sort key of its record.
    pub(crate) sort: String,
    /// Time of the last progress event, in microseconds.
    pub(crate) progress_at: AtomicI64,
    caches: Arc<DatasetCaches>,
    templates: OnceCell<Templates>,
}

/// Caches of datasets' parts, shared by all runs of a process.
pub(super) struct DatasetCaches {
    items: ItemCache,
    support: SupportCache,
}

impl Default for DatasetCaches {
    fn default() -> Self {
        Self { items: ItemCache::new(ITEM_BYTES_MAX), support: SupportCache::new(SUPPORT_BYTES_MAX) }
    }
}

impl BenchmarkContext {
    /// Returns `None` for a benchmark that isn't planned yet or that this program doesn't know.
    pub(super) fn new(spec: &RunSpec, record: BenchmarkRecord, caches: &Arc<DatasetCaches>) -> Option<Self> {
        Some(Self {
            benchmark: bench_benchmarks::find_for_run(spec, &record.name)?,
            sort: record.sort(),
            plan: record.plan?,
            progress_at: AtomicI64::new(0),
            caches: Arc::clone(caches),
            templates: OnceCell::new(),
        })
    }

    /// Returns true if only the run's owner and the operator may see its items.
    pub(crate) fn is_private(&self) -> bool {
        let name = self.benchmark.name().parse();
        name.is_ok_and(|name| bench_benchmarks::is_private(&name, Some(&self.plan.dataset)))
    }

    /// Removes quotes of a gated item from a failure. Causes are logged, and shown in events and as the error
    /// of the run, which anyone may read.
    pub(crate) fn without_quotes(&self, prompt: &Prompt, failure: Failure) -> Failure {
        if !self.is_private() || !prompt.is_quoted_in(&failure.cause) {
            return failure;
        }
        let status = failure.status.map(|status| format!("HTTP {status}: ")).unwrap_or_default();
        let id = failure.request_id.as_ref().map(|id| format!(" (request_id={id})")).unwrap_or_default();
        let cause = format!(
            "{status}the provider's message quotes the item, whose dataset is gated, and is not kept{id}"
        );
        Failure { cause, ..failure }
    }

    /// Loads the item of a sample's record, in the form that its n-th sample asks.
    pub(crate) async fn item(
        &self,
        blobs: &Blobs,
        record: &SampleRecord,
        sample: u32,
    ) -> Result<Item, PipelineError> {
        let data_key = &self.plan.dataset.data_key;
        let stored = self.caches.items.load(blobs, data_key, record.offset, record.length).await?;
        // Some items have many megabytes, so only a protocol that changes its items makes a copy.
        let changed = match self.benchmark.item_for_sample(&stored, sample) {
            Cow::Owned(changed) => Some(changed),
            Cow::Borrowed(_) => None,
        };
        Ok(changed.unwrap_or(stored))
    }

    /// Loads the other inputs of an item's prompt.
    pub(crate) async fn material(&self, blobs: &Blobs, item: &Item) -> Result<Material, PipelineError> {
        let templates = self.templates(blobs).await?;
        let loader =
            MaterialLoader { blobs, cache: &self.caches.support, dataset: &self.plan.dataset, templates };
        Ok(loader.load(self.benchmark, item).await?)
    }

    /// Loads the official texts that the plan was made with, once.
    pub(crate) async fn templates(&self, blobs: &Blobs) -> Result<&Templates, PipelineError> {
        let load = || async { Ok(load_templates(blobs, &self.plan.templates).await?) };
        self.templates.get_or_try_init(load).await
    }
}

/// Maximum size in bytes of the documents cached for prompts, for all runs together: enough for more than a
/// hundred prompts of 100,000 tokens.
pub const SUPPORT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Maximum size in bytes of the parts of datasets that are kept for the next items, for all runs together.
const ITEM_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Loads the inputs that the prompts of a dataset need besides their items.
pub struct MaterialLoader<'a> {
    /// Store with the dataset's values.
    pub blobs: &'a Blobs,
    /// Cache of loaded values.
    pub cache: &'a SupportCache,
    /// The dataset.
    pub dataset: &'a DatasetUse,
    /// The official texts.
    pub templates: &'a Templates,
}

impl MaterialLoader<'_> {
    /// Loads the inputs that the prompt of `item` needs. A value that the dataset doesn't have is null.
    ///
    /// # Errors
    /// Fails if the store fails or no longer has a value.
    pub async fn load(&self, benchmark: &dyn Benchmark, item: &Item) -> Result<Material, DatasetError> {
        let mut support = BTreeMap::new();
        for name in benchmark.support_names(item) {
            let value = self.cache.get(self.blobs, self.dataset, &name).await?;
            support.insert(name, value.unwrap_or_default());
        }
        Ok(Material { support, templates: self.templates.clone() })
    }
}
