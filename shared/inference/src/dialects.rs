//! Differences from the usual form of a request, learned from refusals by servers.

use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Endpoint;
use crate::protocols::Dialect;

/// Maximum number of pairs of endpoint and model to remember.
const REMEMBERED_MAX: usize = 1024;

/// Dialects learned so far, by endpoint and model.
#[derive(Debug, Default)]
pub(crate) struct Dialects {
    /// False while no dialect is known, as in most processes, so that they can skip the lock.
    any: AtomicBool,
    known: RwLock<HashMap<String, Dialect>>,
}

impl Dialects {
    pub(crate) fn get(&self, endpoint: &Endpoint, model: &str) -> Dialect {
        if !self.any.load(Ordering::Acquire) {
            return Dialect::default();
        }
        let known = self.known.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.get(&key(endpoint, model)).copied().unwrap_or_default()
    }

    /// Stores a dialect. Returns true if it is new, since concurrent calls may learn the same one.
    pub(crate) fn remember(&self, endpoint: &Endpoint, model: &str, dialect: Dialect) -> bool {
        let mut known = self.known.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = key(endpoint, model);
        if known.len() >= REMEMBERED_MAX && !known.contains_key(&key) {
            return true;
        }
        let is_new = known.insert(key, dialect) != Some(dialect);
        self.any.store(true, Ordering::Release);
        is_new
    }
}

fn key(endpoint: &Endpoint, model: &str) -> String {
    // A URL contains no space, so the key is unambiguous.
    format!("{} {model}", endpoint.base_url())
}
