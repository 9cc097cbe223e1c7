//! Services and settings that orders are resolved with.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bench_benchmarks::Benchmark;
use bench_catalog::SyncError;
use bench_domain::run::DatasetChoice;
use bench_inference::{ChatClient, ModelName};
use bench_state::credentials::OwnerKey;
use bench_state::{ModelRecord, StateError};

use crate::RunCreator;

/// Checks whether the items of a benchmark are available, as far as that is known without a request. The error is a
/// sentence.
pub type DatasetCheck = Box<dyn Fn(&dyn Benchmark, &DatasetChoice) -> Result<(), String> + Send + Sync>;

/// Model lists of gateways, by the hash of the key.
pub(crate) type OfferedModels = HashMap<String, (Instant, Arc<HashSet<String>>)>;

/// Settings of orders.
#[derive(Debug, Clone)]
pub struct OrdersConfig {
    /// Models in addition to the catalog.
    pub models: Vec<ModelName>,
    /// Minimum coverage for a score, 0 to 1.
    pub coverage_min: f64,
    /// True if providers' model lists are synchronized.
    pub sync_models: bool,
    /// Maximum wait of an order for a provider's model list.
    pub availability_wait: Duration,
}

/// Resolves orders and creates their runs.
pub struct Orders {
    /// Creates the runs.
    pub runs: RunCreator,
    /// Client for providers' model lists.
    pub chat: ChatClient,
    /// Computes the keyed hashes that identify holders of keys.
    pub(crate) owner_key: Arc<OwnerKey>,
    /// Settings.
    pub config: OrdersConfig,
    pub(crate) datasets: DatasetCheck,
    pub(crate) offers: Mutex<OfferedModels>,
    pub(crate) synced: Mutex<Option<Instant>>,
}

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orders").field("runs", &self.runs).finish_non_exhaustive()
    }
}

impl Orders {
    /// Creates orders whose runs are created by `runs`.
    pub fn new(
        runs: RunCreator,
        owner_key: Arc<OwnerKey>,
        datasets: DatasetCheck,
        config: OrdersConfig,
    ) -> Self {
        let chat = ChatClient::new(runs.config.inference.http_options());
        Self { runs, chat, owner_key, config, datasets, offers: Mutex::default(), synced: Mutex::default() }
    }

    /// Returns the models of the catalog, the built-in ones, and the configured ones.
    ///
    /// # Errors
    /// If the catalog can't be read.
    pub async fn models(&self) -> Result<Vec<ModelRecord>, StateError> {
        bench_catalog::all_models(&self.runs.state, &self.config.models).await
    }

    /// Imports the provider's public model list, and prices of the configured models. Returns the number of models in
    /// the list. Models that are no longer in it become inactive.
    ///
    /// # Errors
    /// If the list can't be read, or the catalog can't be written. Then no model becomes inactive.
    pub async fn sync_models(&self) -> Result<usize, SyncError> {
        let (state, inference) = (&self.runs.state, &self.runs.config.inference);
        let now = bench_clock::now();
        bench_catalog::sync_prices(state, &self.chat, inference, &self.config.models, now).await?;
        bench_catalog::sync_models(state, &self.chat, inference).await
    }
}

/// Locks a mutex that is never held across an await. If a thread panicked while holding it, the value is still valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
