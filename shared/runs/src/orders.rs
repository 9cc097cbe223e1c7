//! What orders are resolved with.

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

/// Tells whether the items of a benchmark can be had, as far as that is known without a request; a sentence if not.
pub type DatasetCheck = Box<dyn Fn(&dyn Benchmark, &DatasetChoice) -> Result<(), String> + Send + Sync>;

/// Lists of models that a gateway offers, by the key's hash.
pub(crate) type Offers = HashMap<String, (Instant, Arc<HashSet<String>>)>;

/// Settings of orders.
#[derive(Debug, Clone)]
pub struct OrdersConfig {
    /// Models that there are besides the catalogue.
    pub models: Vec<ModelName>,
    /// Judge of runs that name none.
    pub judge_model: Option<ModelName>,
    /// Coverage below which a benchmark has no score, 0 to 1.
    pub coverage_min: f64,
    /// Whether providers' lists of models are asked for.
    pub sync_models: bool,
    /// How long an order waits for a provider's list of models.
    pub availability_wait: Duration,
}

/// Turns orders into runs.
pub struct Orders {
    /// Where the runs are made.
    pub runs: RunCreator,
    /// Asks providers for their lists.
    pub chat: ChatClient,
    /// Makes the hash by which the holder of a key is known.
    pub(crate) owner_key: Arc<OwnerKey>,
    /// Settings.
    pub config: OrdersConfig,
    pub(crate) datasets: DatasetCheck,
    pub(crate) offers: Mutex<Offers>,
    pub(crate) synced: Mutex<Option<Instant>>,
}

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orders").field("runs", &self.runs).finish_non_exhaustive()
    }
}

impl Orders {
    /// Orders whose runs are made by `runs`.
    pub fn new(
        runs: RunCreator,
        owner_key: Arc<OwnerKey>,
        datasets: DatasetCheck,
        config: OrdersConfig,
    ) -> Self {
        let chat = ChatClient::new(runs.config.inference.http_options());
        Self { runs, chat, owner_key, config, datasets, offers: Mutex::default(), synced: Mutex::default() }
    }

    /// The catalogue of models, and what is always or by configuration there besides.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn models(&self) -> Result<Vec<ModelRecord>, StateError> {
        bench_catalog::all_models(&self.runs.state, &self.config.models).await
    }

    /// Takes over the provider's public list of models, and prices of the configured ones; tells how many the list has.
    /// Models that it has no more become inactive.
    ///
    /// # Errors
    /// When the list cannot be read, or the catalogue cannot be written. Nothing is made inactive then.
    pub async fn sync_models(&self) -> Result<usize, SyncError> {
        let (state, inference) = (&self.runs.state, &self.runs.config.inference);
        let now = bench_clock::now();
        bench_catalog::sync_prices(state, &self.chat, inference, &self.config.models, now).await?;
        bench_catalog::sync_models(state, &self.chat, inference).await
    }
}

/// What is behind a lock that is never held across a wait. A thread that panicked with it left a whole value.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
