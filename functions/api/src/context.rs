//! What every handler works with.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bench_blobs::Blobs;
use bench_datasets::Library;
use bench_domain::RunId;
use bench_queue::Queues;
use bench_runs::{Orders, RunCreator};
use bench_sandy::Sandy;
use bench_state::State;
use bench_state::credentials::{Credentials, OwnerKey};
use bench_web::Access;
use bench_web::views::SummaryView;
use tokio::sync::Semaphore;

use crate::cache::confirmations::Confirmations;
use crate::cache::ops::Ops;
use crate::cache::places::Places;
use crate::config::ApiConfig;
use crate::views::benchmark::Stored;

/// Event streams that are open at once; who comes later gets what there is and asks again.
const STREAMS_MAX: usize = 512;
/// Summaries of closed benchmarks that are kept.
const SUMMARIES_MAX: usize = 256;

/// The API's services and settings.
pub struct Api {
    /// Runs and samples.
    pub state: State,
    /// Where messages go.
    pub queues: Queues,
    /// Prompts and answers.
    pub blobs: Blobs,
    /// Callers' keys.
    pub credentials: Credentials,
    /// What datasets there are.
    pub library: Arc<Library>,
    /// Makes runs.
    pub orders: Arc<Orders>,
    /// Tells callers apart.
    pub access: Access,
    /// Settings.
    pub config: ApiConfig,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) places: Mutex<Option<(Instant, Arc<Places>)>>,
    pub(crate) confirmations: Confirmations,
    pub(crate) stored: Mutex<Option<(Instant, Arc<Stored>)>>,
    pub(crate) ops: Ops,
    /// Hears of interrupted runs whose messages are wanted again.
    pub(crate) on_resume: Box<dyn Fn(RunId) + Send + Sync>,
    summaries: Mutex<HashMap<SummaryKey, SummaryView>>,
}

/// A closed benchmark of a run in one generation: its samples do not change any more.
pub(crate) type SummaryKey = (RunId, u32, String);

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Api {
    /// The API over these services. `owner_key` makes the hash by which the holder of a key is known.
    pub fn new(
        state: State,
        queues: Queues,
        blobs: Blobs,
        credentials: Credentials,
        library: Library,
        owner_key: Arc<OwnerKey>,
        config: ApiConfig,
    ) -> Self {
        let access =
            Access { local: config.server.local, admin_secret: config.admin_secret.clone(), owner_key };
        let library = Arc::new(library);
        let runs = RunCreator {
            state: state.clone(),
            queues: queues.clone(),
            credentials: credentials.clone(),
            config: config.runs.clone(),
        };
        let orders = Orders::new(
            runs,
            Arc::clone(&access.owner_key),
            Box::new({
                let library = Arc::clone(&library);
                move |benchmark, choice| library.check(benchmark, choice).map_err(|error| error.to_string())
            }),
            config.orders.clone(),
        );
        let ops = Ops::new(Sandy::new(config.sandy.clone()));
        Self {
            state,
            queues,
            blobs,
            credentials,
            library,
            orders: Arc::new(orders),
            access,
            config,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            places: Mutex::default(),
            confirmations: Confirmations::default(),
            stored: Mutex::default(),
            ops,
            on_resume: Box::new(|_| ()),
            summaries: Mutex::default(),
        }
    }

    /// Calls `hear` with each interrupted run whose messages are wanted again: it goes on in this process, or was
    /// canceled.
    #[must_use]
    pub fn on_resume(self, hear: impl Fn(RunId) + Send + Sync + 'static) -> Self {
        Self { on_resume: Box::new(hear), ..self }
    }

    /// Has the queue's estimate made anew for whoever asks next: a run came or went.
    pub(crate) fn forget_estimate(&self) {
        *held(&self.places) = None;
    }

    pub(crate) fn kept_summary(&self, key: &SummaryKey) -> Option<SummaryView> {
        held(&self.summaries).get(key).cloned()
    }

    pub(crate) fn keep_summary(&self, key: SummaryKey, summary: SummaryView) {
        let mut summaries = held(&self.summaries);
        if summaries.len() >= SUMMARIES_MAX {
            // They can all be made again; which ones are wanted next is not known.
            summaries.clear();
        }
        summaries.insert(key, summary);
    }
}

/// What is behind a lock that is never held across a wait. A thread that panicked with it left a whole value.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
