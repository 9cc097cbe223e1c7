//! In-memory cache with a limit on its size.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

/// Caches values up to a total size. Callers that request a value while it is being loaded wait for that load. The least
/// recently used values are evicted first; a value above the limit is returned but not kept.
#[derive(Debug)]
pub(crate) struct BoundedCache<K, V> {
    limit_bytes: usize,
    state: Mutex<CacheState<K, V>>,
}

#[derive(Debug)]
struct CacheState<K, V> {
    entries: HashMap<K, Entry<V>>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    cell: Arc<OnceCell<V>>,
    /// Size in bytes, set once the value is loaded.
    bytes: Option<usize>,
    last_used: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> BoundedCache<K, V> {
    /// Creates a cache that holds about `limit_bytes` in total.
    pub(crate) fn new(limit_bytes: usize) -> Self {
        let state = CacheState { entries: HashMap::new(), bytes: 0, clock: 0 };
        Self { limit_bytes, state: Mutex::new(state) }
    }

    /// Returns the value of `key`, loading it if necessary. `size` returns the bytes of a loaded value with its key.
    ///
    /// # Errors
    /// Returns the error of the load; nothing is cached then.
    pub(crate) async fn get_or_load<E>(
        &self,
        key: &K,
        load: impl Future<Output = Result<V, E>>,
        size: impl FnOnce(&V) -> usize,
    ) -> Result<V, E> {
        let cell = self.cell(key);
        if let Some(value) = cell.get() {
            return Ok(value.clone());
        }
        let loaded = cell.get_or_try_init(|| load).await.cloned();
        self.record_load(key, &cell, loaded.as_ref().ok().map(|value| size_of::<Entry<V>>() + size(value)));
        loaded
    }

    fn lock(&self) -> MutexGuard<'_, CacheState<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cell(&self, key: &K) -> Arc<OnceCell<V>> {
        let mut state = self.lock();
        state.clock += 1;
        let clock = state.clock;
        if let Some(entry) = state.entries.get_mut(key) {
            entry.last_used = clock;
            return Arc::clone(&entry.cell);
        }
        let cell = Arc::default();
        let entry = Entry { cell: Arc::clone(&cell), bytes: None, last_used: clock };
        state.entries.insert(key.clone(), entry);
        cell
    }

    /// Records the size of a loaded value, or removes one that failed to load, and evicts values above the limit.
    fn record_load(&self, key: &K, cell: &Arc<OnceCell<V>>, bytes: Option<usize>) {
        let mut state = self.lock();
        let state = &mut *state;
        let own = state.entries.get_mut(key).filter(|entry| Arc::ptr_eq(&entry.cell, cell));
        match (own, bytes) {
            (Some(entry), Some(bytes)) if entry.bytes.is_none() => {
                entry.bytes = Some(bytes);
                state.bytes += bytes;
            }
            (Some(entry), None) if entry.bytes.is_none() => {
                state.entries.remove(key);
            }
            _ => {}
        }
        while state.bytes > self.limit_bytes {
            let loaded = state.entries.iter().filter(|(_, entry)| entry.bytes.is_some());
            let oldest = loaded.min_by_key(|(_, entry)| entry.last_used).map(|(key, _)| key.clone());
            let Some(evicted) = oldest.and_then(|oldest| state.entries.remove(&oldest)) else { return };
            state.bytes -= evicted.bytes.unwrap_or_default();
        }
    }
}
