//! Context that all handlers share.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bench_blobs::Blobs;
use bench_datasets::Library;
use bench_domain::RunId;
use bench_episodes::Transcripts;
use bench_estimate::History;
use bench_queue::Queues;
use bench_runs::{Orders, RunCreator};
use bench_sandy::Sandy;
use bench_sign_in::SessionTokens;
use bench_state::State;
use bench_state::credentials::{Credentials, OwnerKey};
use bench_tasks::{AgentStore, TaskStore};
use bench_web::attempts::Attempts;
use bench_web::views::SummaryView;
use bench_web::{Access, ApiError};
use tokio::sync::Semaphore;

use crate::cache::confirmations::Confirmations;
use crate::cache::ops::Ops;
use crate::cache::queue_positions::QueuePositions;
use crate::cache::run_facts::CachedFacts;
use crate::cache::tasks::{ARCHIVES_AT_ONCE, CachedResults, CachedRunTasks, CachedStats, EpisodeCache};
use crate::config::ApiConfig;
use crate::sign_in::SignIn;
use crate::views::benchmark::StoredData;

/// Maximum number of open event streams. Further clients receive the events so far and poll again.
const STREAMS_MAX: usize = 512;
/// Maximum number of cached summaries of closed benchmarks.
const SUMMARIES_MAX: usize = 256;

/// The API's services and settings.
pub struct Api {
    /// Runs and samples.
    pub state: State,
    /// Queues that messages are sent to.
    pub queues: Queues,
    /// Store of prompts and answers.
    pub blobs: Blobs,
    /// Store of callers' keys.
    pub credentials: Credentials,
    /// Available datasets.
    pub library: Arc<Library>,
    /// Creates runs.
    pub orders: Arc<Orders>,
    /// Identifies callers.
    pub access: Access,
    /// Settings.
    pub config: ApiConfig,
    /// The sign-in; `None` if the server has none.
    pub(crate) sign_in: Option<SignIn>,
    /// Access tokens of sessions.
    pub(crate) tokens: SessionTokens,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) queue_positions: Mutex<Option<(Instant, Arc<QueuePositions>)>>,
    /// Facts about runs, for searches.
    pub(crate) run_facts: Mutex<CachedFacts>,
    /// True once the owners' lists of runs were seen to be complete, which they stay.
    has_owner_lists: AtomicBool,
    /// Averages of earlier runs, for estimates.
    pub(crate) history: Mutex<Option<(Instant, Arc<History>)>>,
    pub(crate) confirmations: Confirmations,
    /// Sign-ins that were begun, counted by the caller's address.
    pub(crate) sign_ins: Attempts,
    pub(crate) stored: Mutex<Option<(Instant, Arc<StoredData>)>>,
    pub(crate) ops: Ops,
    /// Uploaded terminal tasks.
    pub tasks: TaskStore,
    /// Uploaded custom agents.
    pub agents: AgentStore,
    /// Places for archives that are received.
    pub(crate) archives: Arc<Semaphore>,
    /// Facts of episodes that are over.
    pub(crate) episodes: Mutex<EpisodeCache>,
    /// Transcripts of episodes that are running.
    pub(crate) transcripts: Transcripts,
    /// Results of tasks in runs that are over.
    pub(crate) task_results: Mutex<CachedResults>,
    /// Names of the tasks of runs.
    pub(crate) run_tasks: Mutex<CachedRunTasks>,
    /// Counts of tasks of the last caller.
    pub(crate) task_stats: Mutex<CachedStats>,
    /// Called with each interrupted run that continues or was canceled.
    pub(crate) on_resume: ResumeCallback,
    summaries: Mutex<HashMap<SummaryKey, SummaryView>>,
}

/// Callback for an interrupted run whose messages are needed again.
type ResumeCallback = Box<dyn Fn(RunId) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Key of a cached summary: run, generation and benchmark. Samples of a closed benchmark don't change within a generation.
pub(crate) type SummaryKey = (RunId, u32, String);

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Api {
    /// Creates the API from its services. `owner_key` hashes callers' keys into owner names.
    pub fn new(
        state: State,
        queues: Queues,
        blobs: Blobs,
        credentials: Credentials,
        library: Library,
        owner_key: Arc<OwnerKey>,
        config: ApiConfig,
    ) -> Self {
        let access = Access {
            admin_subjects: config.runs.policy.admin_subjects.clone(),
            own_origin: config.own_origin.clone(),
            ..Access::new(config.server.local, config.admin_secret.clone(), owner_key)
        };
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
        let sign_in = config.sign_in.clone().map(SignIn::new);
        let provider = sign_in.as_ref().map(|sign_in| Arc::clone(sign_in.provider()));
        let tokens = SessionTokens::new(state.clone(), credentials.clone(), provider);
        let ops = Ops::new(Sandy::new(config.sandy.clone()));
        let agents = AgentStore::new(state.clone(), blobs.clone());
        let tasks = TaskStore::new(state.clone(), blobs.clone(), Arc::clone(&library), config.tasks.clone());
        Self {
            state,
            queues,
            blobs,
            credentials,
            library,
            orders: Arc::new(orders),
            access,
            config,
            sign_in,
            tokens,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            queue_positions: Mutex::default(),
            run_facts: Mutex::default(),
            has_owner_lists: AtomicBool::new(false),
            history: Mutex::default(),
            confirmations: Confirmations::default(),
            sign_ins: Attempts::default(),
            stored: Mutex::default(),
            ops,
            tasks,
            agents,
            archives: Arc::new(Semaphore::new(ARCHIVES_AT_ONCE)),
            episodes: Mutex::default(),
            transcripts: Transcripts::default(),
            task_results: Mutex::default(),
            run_tasks: Mutex::default(),
            task_stats: Mutex::default(),
            on_resume: Box::new(|_| Box::pin(async {})),
            summaries: Mutex::default(),
        }
    }

    /// Sets the callback for interrupted runs whose messages are needed again, because the run continues or was
    /// canceled.
    #[must_use]
    pub fn on_resume<F, Fut>(self, hear: F) -> Self
    where
        F: Fn(RunId) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self { on_resume: Box::new(move |run| Box::pin(hear(run))), ..self }
    }

    /// Returns true if the owners' lists have all runs, also those of older versions.
    ///
    /// # Errors
    /// If the table can't be read.
    pub(crate) async fn has_owner_lists(&self) -> Result<bool, ApiError> {
        if self.has_owner_lists.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let is_complete = self.state.are_owner_lists_complete().await?;
        self.has_owner_lists.store(is_complete, Ordering::Relaxed);
        Ok(is_complete)
    }

    /// Clears the cached queue estimate after a run was added or removed; the next request recomputes it.
    pub(crate) fn clear_queue_positions(&self) {
        *lock(&self.queue_positions) = None;
    }

    pub(crate) fn cached_summary(&self, key: &SummaryKey) -> Option<SummaryView> {
        lock(&self.summaries).get(key).cloned()
    }

    pub(crate) fn cache_summary(&self, key: SummaryKey, summary: SummaryView) {
        let mut summaries = lock(&self.summaries);
        if summaries.len() >= SUMMARIES_MAX {
            // Summaries can be recomputed, and their next use is unknown, so all are dropped.
            summaries.clear();
        }
        summaries.insert(key, summary);
    }
}

/// Locks a mutex that is never held across an `await`. Ignores poisoning: a thread that panicked left a consistent value.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
