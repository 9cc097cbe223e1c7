//! Cache of provider keys that were confirmed or refused.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use bench_inference::Provider;
use bench_web::attempts::Attempts;
use tokio::sync::Semaphore;

/// Maximum number of keys that are being confirmed at the same time.
const CONCURRENT_CONFIRMATIONS: usize = 8;

/// Cache of callers' keys and limits on confirming new ones.
#[derive(Debug)]
pub(crate) struct Confirmations {
    /// Keys that their providers confirmed recently, with the time, by provider and keyed hash.
    pub(crate) confirmed: Mutex<HashMap<(&'static Provider, String), Instant>>,
    /// Refused keys, counted by the caller's address.
    pub(crate) refused: Attempts,
    /// Permits for concurrent confirmations.
    pub(crate) asking: Semaphore,
}

impl Default for Confirmations {
    fn default() -> Self {
        Self {
            confirmed: Mutex::default(),
            refused: Attempts::default(),
            asking: Semaphore::new(CONCURRENT_CONFIRMATIONS),
        }
    }
}
