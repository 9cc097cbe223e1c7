//! What prompts need besides their items.

use std::collections::BTreeMap;

use bench_benchmarks::{Benchmark, Material, Templates};
use bench_blobs::Blobs;
use bench_datasets::{DatasetError, SupportCache};
use bench_domain::run::DatasetUse;
use bench_items::Item;
use serde_json::Value;

/// Maximum size in bytes of the documents that prompts need besides their items, kept for all runs together: those of
/// more than a hundred prompts of 100,000 tokens.
pub const SUPPORT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Loads what the prompts of a dataset need besides their items.
pub struct MaterialLoader<'a> {
    /// The store with the dataset's values.
    pub blobs: &'a Blobs,
    /// Values that were loaded.
    pub cache: &'a SupportCache,
    /// The dataset.
    pub dataset: &'a DatasetUse,
    /// The official texts.
    pub templates: &'a Templates,
}

impl MaterialLoader<'_> {
    /// Loads what the prompt of `item` needs. A value that the dataset doesn't have is null.
    ///
    /// # Errors
    /// When the store fails or has a value no more.
    pub async fn load(&self, benchmark: &dyn Benchmark, item: &Item) -> Result<Material, DatasetError> {
        let mut support = BTreeMap::new();
        for name in benchmark.support_of(item) {
            let value = self.cache.get(self.blobs, self.dataset, &name).await?;
            support.insert(name, value.map_or(Value::Null, |value| (*value).clone()));
        }
        Ok(Material { support, templates: self.templates.clone() })
    }
}
