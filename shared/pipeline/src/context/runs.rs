//! Loads a run once for all of its samples, and checks whether it is still open.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bench_domain::{BenchmarkName, ModelRole, RunId, RunSpec, SampleRef, Secret, Spending, Timestamp};
use bench_inference::Keys;
use bench_state::credentials::Credentials;
use bench_state::{Resumption, State, StateError};

use super::benchmark::{BenchmarkContext, DatasetCaches};
use super::claimed::ClaimedSample;
use super::ledger::{Ledger, Ledgers, Receipt};
use super::provider_wait::ProviderWaits;
use super::source::{AnswerSource, JudgeSource, UserSource};
use crate::error::PipelineError;

/// Maximum age of a check that a run is open.
const OPEN_FOR: Duration = Duration::from_secs(1);
/// Maximum number of runs kept in memory. The least recently used one is dropped first.
const RUNS_MAX: usize = 64;

/// One run, loaded once for all of its samples.
pub(crate) struct RunContext {
    /// The order.
    pub(crate) spec: RunSpec,
    /// Its generation when it was loaded.
    pub(crate) generation: u32,
    /// Time at which the run was last requeued or resumed, if it was.
    pub(crate) resumption: Option<Resumption>,
    /// Keys provided by the caller.
    pub(crate) caller_keys: CallerKeys,
    /// Source of its answers, once stage `answer` has made it.
    pub(crate) answers: OnceLock<AnswerSource>,
    /// Source of its judge's replies, once stage `judge` has made it.
    pub(crate) judge: OnceLock<JudgeSource>,
    /// Source of its simulated users' messages, once a conversation has made it.
    pub(crate) user: OnceLock<UserSource>,
    /// Keys to remove from every stored text: the run's own, those of its judge and user model, and the operator's.
    pub(crate) keys: Keys,
    /// Ledger of its spending, if it has a budget.
    pub(crate) ledger: Option<Arc<Ledger>>,
    /// Waits for its providers, as views and events show them.
    pub(crate) waits: ProviderWaits,
    /// Time at which it was ordered or last requeued or resumed, in microseconds.
    opened_at: AtomicI64,
    /// Planned benchmarks.
    benchmarks: BTreeMap<BenchmarkName, Arc<BenchmarkContext>>,
    /// Time at which the run was last seen open, in microseconds. 0 once it was seen to be over.
    seen_open: AtomicI64,
    /// Sequence number of its last use among the runs of this process.
    used: AtomicU64,
}

impl RunContext {
    /// Returns the benchmark of a sample, if the sample belongs to its current plan.
    fn benchmark_of(&self, sample: &SampleRef) -> Option<&Arc<BenchmarkContext>> {
        self.benchmarks.get(&sample.benchmark).filter(|found| found.plan.attempt == sample.plan)
    }

    /// Returns the number of planned samples; `None` until all benchmarks are planned.
    pub(crate) fn samples(&self) -> Option<u64> {
        let is_planned = self.benchmarks.len() == self.spec.benchmarks.len();
        is_planned.then(|| {
            let samples = self.benchmarks.values().map(|benchmark| benchmark.plan.samples());
            samples.fold(0, u64::saturating_add)
        })
    }

    /// Returns the time at which the run was ordered or last requeued or resumed.
    pub(crate) fn opened_at(&self) -> Timestamp {
        Timestamp::from_micros(self.opened_at.load(Ordering::Relaxed))
    }

    /// Returns the time at which the run was last requeued or resumed, if it was.
    pub(crate) fn resumed_at(&self) -> Option<Timestamp> {
        Some(self.opened_at()).filter(|opened_at| *opened_at > self.spec.created_at)
    }

    /// Counts the tokens of an answer as soon as it is received, if the run has a budget.
    pub(crate) fn receive(&self, spent: Spending) -> Option<Receipt<'_>> {
        self.ledger.as_ref().map(|ledger| ledger.receive(spent))
    }
}

/// Keys that callers provided for a run.
#[derive(Debug, Default)]
pub(crate) struct CallerKeys {
    /// For the model that is measured.
    pub(crate) model: Option<Secret>,
    /// For the judge.
    pub(crate) judge: Option<Secret>,
    /// For the user model.
    pub(crate) user: Option<Secret>,
}

impl CallerKeys {
    /// Loads all keys regardless of the stage, since all must be redacted from stored texts.
    async fn load(credentials: &Credentials, spec: &RunSpec) -> Result<Self, StateError> {
        let stored = async |role| match spec.uses_callers_key(role) {
            true => credentials.get(spec.id, role).await,
            false => Ok(None),
        };
        Ok(Self {
            model: stored(ModelRole::Model).await?,
            judge: stored(ModelRole::Judge).await?,
            user: stored(ModelRole::UserModel).await?,
        })
    }

    /// Returns the key for the model in this role.
    pub(crate) const fn of(&self, role: ModelRole) -> Option<&Secret> {
        match role {
            ModelRole::Model => self.model.as_ref(),
            ModelRole::Judge => self.judge.as_ref(),
            ModelRole::UserModel => self.user.as_ref(),
        }
    }
}

/// The runs that this process works on.
pub(crate) struct RunCache {
    state: State,
    credentials: Credentials,
    operator_keys: Keys,
    loaded: Mutex<HashMap<RunId, Arc<RunContext>>>,
    datasets: Arc<DatasetCaches>,
    /// Outlive the contexts of their runs, for as long as an attempt works on one.
    ledgers: Ledgers,
    clock: AtomicU64,
    /// Allows one loader at a time; the others use the run that it has loaded.
    loading: tokio::sync::Mutex<()>,
}

impl RunCache {
    pub(crate) fn new(state: State, credentials: Credentials, operator_keys: Keys, ledgers: Ledgers) -> Self {
        Self {
            state,
            credentials,
            operator_keys,
            loaded: Mutex::default(),
            datasets: Arc::default(),
            ledgers,
            clock: AtomicU64::new(0),
            loading: tokio::sync::Mutex::new(()),
        }
    }

    /// Returns the run of a sample in this generation or a later one, and the sample's benchmark. `None` if
    /// the message isn't needed: the run is over, or the sample isn't in its plans.
    pub(crate) async fn open(
        &self,
        sample: &SampleRef,
        generation: u32,
    ) -> Result<Option<(Arc<RunContext>, Arc<BenchmarkContext>)>, PipelineError> {
        // The loaded run may be from before a benchmark was planned or the run was requeued, so it is
        // reloaded once.
        for _ in 0..2 {
            let Some(run) = self.get(sample.run).await? else { return Ok(None) };
            if run.generation >= generation
                && let Some(benchmark) = run.benchmark_of(sample).cloned()
                && self.check_open(&run).await?
            {
                return Ok(Some((run, benchmark)));
            }
            self.forget(sample.run);
        }
        Ok(None)
    }

    /// Returns true if the run of a claimed sample is still open. Checks at most once a second.
    pub(crate) async fn is_open(&self, claimed: &ClaimedSample) -> Result<bool, PipelineError> {
        let found = self.open(&claimed.sample, claimed.run.generation).await?;
        Ok(found.is_some_and(|(run, _)| run.generation == claimed.run.generation))
    }

    /// Returns true if the answer to a question already asked is still needed. That includes a run that was
    /// stopped by its budget, by refusals or by failures meanwhile, since the answer is being paid for.
    pub(crate) async fn wants_answers(&self, run: RunId) -> Result<bool, PipelineError> {
        if let Some(known) = self.cached(run)
            && self.check_open(&known).await?
        {
            return Ok(true);
        }
        // The run is no longer loaded, or was loaded in an older generation. A requeued run still needs the
        // answer.
        let found = self.state.run(run).await?;
        Ok(found.is_some_and(|found| found.state.status().is_open() || found.state.is_stopped()))
    }

    /// Drops a loaded run, so that its next use reloads it.
    pub(crate) fn forget(&self, run: RunId) {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }

    fn cached(&self, run: RunId) -> Option<Arc<RunContext>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let found = loaded.get(&run).cloned()?;
        found.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(found)
    }

    async fn get(&self, run: RunId) -> Result<Option<Arc<RunContext>>, PipelineError> {
        if let Some(found) = self.cached(run) {
            return Ok(Some(found));
        }
        let _one = self.loading.lock().await;
        if let Some(found) = self.cached(run) {
            return Ok(Some(found));
        }
        let Some(context) = self.load(run).await? else { return Ok(None) };
        let context = Arc::new(context);
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.len() >= RUNS_MAX {
            let oldest =
                loaded.iter().min_by_key(|(_, known)| known.used.load(Ordering::Relaxed)).map(|(id, _)| *id);
            oldest.map(|id| loaded.remove(&id));
        }
        loaded.insert(run, Arc::clone(&context));
        Ok(Some(context))
    }

    /// Returns true if the run is still open. Checks at most once a second; a run of another generation is
    /// reloaded.
    async fn check_open(&self, run: &Arc<RunContext>) -> Result<bool, PipelineError> {
        let fresh = |seen: i64| bench_clock::now().since(Timestamp::from_micros(seen)) < OPEN_FOR;
        match run.seen_open.load(Ordering::Relaxed) {
            0 => return Ok(false),
            seen if fresh(seen) => return Ok(true),
            _ => {}
        }
        let _one = self.loading.lock().await;
        if fresh(run.seen_open.load(Ordering::Relaxed)) {
            return Ok(true);
        }
        // The time before the read: the run may end while the response is on its way.
        let now = bench_clock::now().as_micros();
        let found = self.state.run(run.spec.id).await?;
        let found =
            found.filter(|found| found.generation == run.generation && found.state.status().is_open());
        let open = found.is_some();
        if let Some(found) = found {
            run.opened_at.store(opened_at(&found.spec, found.resumption).as_micros(), Ordering::Relaxed);
            run.waits.update(found.provider_wait);
        }
        run.seen_open.store(if open { now } else { 0 }, Ordering::Relaxed);
        if !open {
            self.forget(run.spec.id);
        }
        Ok(open)
    }

    async fn load(&self, run: RunId) -> Result<Option<RunContext>, PipelineError> {
        let now = bench_clock::now().as_micros();
        let Some(found) = self.state.run_with_benchmarks(run).await? else { return Ok(None) };
        let record = found.run;
        if !record.state.status().is_open() {
            return Ok(None);
        }
        let caller_keys = CallerKeys::load(&self.credentials, &record.spec).await?;
        let CallerKeys { model, judge, user } = &caller_keys;
        let keys = self.operator_keys.merged_with(&Keys::new(model.iter().chain(judge).chain(user)));
        let benchmarks = found.benchmarks.into_iter().filter_map(|benchmark| {
            let name = benchmark.name.clone();
            Some((name, Arc::new(BenchmarkContext::new(&record.spec, benchmark, &self.datasets)?)))
        });
        Ok(Some(RunContext {
            benchmarks: benchmarks.collect(),
            generation: record.generation,
            resumption: record.resumption,
            caller_keys,
            answers: OnceLock::new(),
            judge: OnceLock::new(),
            user: OnceLock::new(),
            keys,
            ledger: record.spec.budget.is_set().then(|| self.ledgers.get_or_create(run)),
            waits: ProviderWaits::new(record.provider_wait),
            opened_at: AtomicI64::new(opened_at(&record.spec, record.resumption).as_micros()),
            spec: record.spec,
            seen_open: AtomicI64::new(now),
            used: AtomicU64::new(0),
        }))
    }
}

/// Returns the time at which a run was ordered or last requeued or resumed.
fn opened_at(spec: &RunSpec, resumption: Option<Resumption>) -> Timestamp {
    resumption.map_or(spec.created_at, |resumption| resumption.at)
}
