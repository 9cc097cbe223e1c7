//! Bounded in-memory cache of support values.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bench_blobs::Blobs;
use bench_domain::run::DatasetUse;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::error::DatasetError;
use crate::index::load_support;

/// Caches support values by dataset and name. Callers that request a value while it is being loaded wait for that load.
/// The least recently used values are evicted first.
#[derive(Debug)]
pub struct SupportCache {
    limit_bytes: usize,
    state: Mutex<CacheState>,
}

type Key = (String, String);
type Cell = Arc<OnceCell<Option<Arc<Value>>>>;

#[derive(Debug, Default)]
struct CacheState {
    values: HashMap<Key, Entry>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    cell: Cell,
    /// Size in bytes, set once the value is loaded.
    bytes: Option<usize>,
    last_used: u64,
}

impl SupportCache {
    /// Creates a cache that holds about `limit_bytes` in total. A larger value is returned but not cached.
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, state: Mutex::default() }
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
        let cell = self.cell(&key);
        let loaded = cell
            .get_or_try_init(|| async { Ok(load_support(blobs, used, name).await?.map(Arc::new)) })
            .await
            .cloned();
        self.record_load(&key, &cell, loaded.as_ref().ok().map(|value| entry_bytes(&key, value.as_deref())));
        loaded
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cell(&self, key: &Key) -> Cell {
        let mut state = self.lock();
        state.clock += 1;
        let clock = state.clock;
        let new = || Entry { cell: Cell::default(), bytes: None, last_used: clock };
        let entry = state.values.entry(key.clone()).or_insert_with(new);
        entry.last_used = clock;
        Arc::clone(&entry.cell)
    }

    /// Records the size of a loaded value, or removes one that failed to load, and evicts values above the limit.
    fn record_load(&self, key: &Key, cell: &Cell, bytes: Option<usize>) {
        let mut state = self.lock();
        let state = &mut *state;
        let own = state.values.get_mut(key).filter(|entry| Arc::ptr_eq(&entry.cell, cell));
        match (own, bytes) {
            (Some(entry), Some(bytes)) if entry.bytes.is_none() => {
                entry.bytes = Some(bytes);
                state.bytes += bytes;
            }
            (Some(entry), None) if entry.bytes.is_none() => {
                state.values.remove(key);
            }
            _ => {}
        }
        while state.bytes > self.limit_bytes {
            let loaded = state.values.iter().filter(|(_, entry)| entry.bytes.is_some());
            let oldest = loaded.min_by_key(|(_, entry)| entry.last_used).map(|(key, _)| key.clone());
            let Some(evicted) = oldest.and_then(|oldest| state.values.remove(&oldest)) else { return };
            state.bytes -= evicted.bytes.unwrap_or_default();
        }
    }
}

/// Approximate bytes of an entry, including its key.
fn entry_bytes((dataset, name): &Key, value: Option<&Value>) -> usize {
    size_of::<Entry>() + dataset.len() + name.len() + value.map_or(0, value_bytes)
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
