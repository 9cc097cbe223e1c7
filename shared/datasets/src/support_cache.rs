//! Bounded in-memory cache of support values.

use std::sync::Arc;

use bench_blobs::Blobs;
use bench_domain::run::DatasetUse;
use serde_json::Value;

use crate::bounded_cache::BoundedCache;
use crate::error::DatasetError;
use crate::index::load_support;

/// Caches support values by dataset and name. Callers that request a value while it is being loaded wait for that load.
/// The least recently used values are evicted first.
#[derive(Debug)]
pub struct SupportCache(BoundedCache<(String, String), Option<Arc<Value>>>);

impl SupportCache {
    /// Creates a cache that holds about `limit_bytes` in total. A larger value is returned but not cached.
    pub fn new(limit_bytes: usize) -> Self {
        Self(BoundedCache::new(limit_bytes))
    }

    /// Returns the value of that name, loading it if necessary; `None` if the dataset has none.
    ///
    /// # Errors
    /// Returns an error if the blob store fails; nothing is cached then.
    pub async fn get(
        &self,
        blobs: &Blobs,
        used: &DatasetUse,
        name: &str,
    ) -> Result<Option<Arc<Value>>, DatasetError> {
        let key = (used.data_key.clone(), name.to_owned());
        let load = async { Ok(load_support(blobs, used, name).await?.map(Arc::new)) };
        let bytes =
            |value: &Option<Arc<Value>>| key.0.len() + key.1.len() + value.as_deref().map_or(0, value_bytes);
        self.0.get_or_load(&key, load, bytes).await
    }
}

fn value_bytes(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(value_bytes).sum(),
            Value::Object(values) => values.iter().map(|(name, value)| name.len() + value_bytes(value)).sum(),
            _ => 0,
        }
}
