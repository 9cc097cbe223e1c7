//! Which keys providers have confirmed, and which they have not.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use bench_inference::Provider;
use bench_web::attempts::Attempts;
use tokio::sync::Semaphore;

/// Keys that providers are asked about at the same time.
const ASKED_AT_ONCE: usize = 8;

/// What is known of callers' keys.
#[derive(Debug)]
pub(crate) struct Confirmations {
    /// Keys that their providers confirmed lately, by provider and keyed hash.
    pub(crate) confirmed: Mutex<HashMap<(&'static Provider, String), Instant>>,
    /// Keys that no provider confirmed, by address.
    pub(crate) refused: Attempts,
    /// Permits to ask providers.
    pub(crate) asking: Semaphore,
}

impl Default for Confirmations {
    fn default() -> Self {
        Self {
            confirmed: Mutex::default(),
            refused: Attempts::default(),
            asking: Semaphore::new(ASKED_AT_ONCE),
        }
    }
}
