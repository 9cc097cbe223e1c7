//! Differences from the usual form of a request, learned from servers' refusals.

use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Endpoint;
use crate::protocols::Dialect;

/// Pairs of endpoint and model that are remembered at most.
const REMEMBERED_MAX: usize = 1024;

/// The dialects met so far, by endpoint and model.
#[derive(Debug, Default)]
pub(crate) struct Dialects {
    /// Most processes never meet one: spares them the lock.
    any: AtomicBool,
    known: RwLock<HashMap<String, Dialect>>,
}

impl Dialects {
    pub(crate) fn of(&self, endpoint: &Endpoint, model: &str) -> Dialect {
        if !self.any.load(Ordering::Acquire) {
            return Dialect::default();
        }
        let known = self.known.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.get(&key(endpoint, model)).copied().unwrap_or_default()
    }

    /// Stores a dialect; returns true if it is new. Calls under way at the same time learn the same.
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
    // A URL contains no space.
    format!("{} {model}", endpoint.base_url())
}
