//! The runs that this process works on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bench_datasets::SupportCache;
use bench_domain::{RunId, SampleRef, Timestamp};
use bench_inference::{InferenceConfig, Keys};
use bench_state::State;
use bench_state::credentials::Credentials;

use crate::answer::source::AnswerSource;
use crate::budget::ledger::Ledgers;
use crate::claim::ClaimedSample;
use crate::error::PipelineError;
use crate::judge::source::JudgeSource;
use crate::load::benchmark::BenchmarkContext;
use crate::load::keys::CallerKeys;
use crate::load::material::SUPPORT_BYTES_MAX;
use crate::load::run::RunContext;
use crate::provider::Providers;

/// Maximum age of the knowledge that a run is open.
const OPEN_FOR: Duration = Duration::from_secs(1);
/// Maximum number of runs that are kept; the least recently used one goes first.
const RUNS_MAX: usize = 64;

/// The runs that this process works on.
pub(crate) struct Runs {
    state: State,
    credentials: Credentials,
    /// The providers that runs ask.
    pub(crate) providers: Providers,
    operator_keys: Keys,
    loaded: Mutex<HashMap<RunId, Arc<RunContext>>>,
    support: Arc<SupportCache>,
    /// Ledgers outlive the contexts of their runs, for as long as an attempt works on one.
    ledgers: Ledgers,
    clock: AtomicU64,
    /// One reader at a time: the others find what it has read.
    loading: tokio::sync::Mutex<()>,
}

impl Runs {
    pub(crate) fn new(
        state: State,
        credentials: Credentials,
        inference: InferenceConfig,
        operator_keys: Keys,
        ledgers: Ledgers,
    ) -> Self {
        Self {
            state,
            credentials,
            providers: Providers::new(inference),
            operator_keys,
            loaded: Mutex::default(),
            support: Arc::new(SupportCache::new(SUPPORT_BYTES_MAX)),
            ledgers,
            clock: AtomicU64::new(0),
            loading: tokio::sync::Mutex::new(()),
        }
    }

    /// Returns the run of a sample in this generation or a later one, and the sample's benchmark. `None` when the message
    /// is not needed: the run is over, or the sample is not in its plans.
    pub(crate) async fn open(
        &self,
        sample: &SampleRef,
        generation: u32,
    ) -> Result<Option<(Arc<RunContext>, Arc<BenchmarkContext>)>, PipelineError> {
        // What is known may be from before a benchmark was planned or the run was requeued: look again.
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

    /// Returns whether the run of a claimed sample is still open. Looks at most once a second.
    pub(crate) async fn is_open(&self, claimed: &ClaimedSample) -> Result<bool, PipelineError> {
        let found = self.open(&claimed.sample, claimed.run.generation).await?;
        Ok(found.is_some_and(|(run, _)| run.generation == claimed.run.generation))
    }

    /// Returns whether the answer to a question that was asked is still wanted. It is when the run was stopped by its
    /// budget or by refusals meanwhile: the answer is being paid for.
    pub(crate) async fn wants_answers(&self, run: RunId) -> Result<bool, PipelineError> {
        if let Some(known) = self.known(run)
            && self.check_open(&known).await?
        {
            return Ok(true);
        }
        // Forgotten, or of an older generation: a requeued run still needs the answer.
        let found = self.state.run(run).await?;
        Ok(found.is_some_and(|found| found.state.status().is_open() || found.state.is_stopped()))
    }

    /// Drops what is known of a run, so that it is loaded anew.
    pub(crate) fn forget(&self, run: RunId) {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }

    fn known(&self, run: RunId) -> Option<Arc<RunContext>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let found = loaded.get(&run).cloned()?;
        found.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(found)
    }

    async fn get(&self, run: RunId) -> Result<Option<Arc<RunContext>>, PipelineError> {
        if let Some(found) = self.known(run) {
            return Ok(Some(found));
        }
        let _one = self.loading.lock().await;
        if let Some(found) = self.known(run) {
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

    /// Returns whether the run is still open. Looks at most once a second; a run of another generation is loaded anew.
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
        let found = self.state.run(run.spec.id).await?;
        let open =
            found.is_some_and(|found| found.generation == run.generation && found.state.status().is_open());
        run.seen_open.store(if open { bench_clock::now().as_micros() } else { 0 }, Ordering::Relaxed);
        if !open {
            self.forget(run.spec.id);
        }
        Ok(open)
    }

    async fn load(&self, run: RunId) -> Result<Option<RunContext>, PipelineError> {
        let Some(found) = self.state.run_with_benchmarks(run).await? else { return Ok(None) };
        let record = found.run;
        if !record.state.status().is_open() {
            return Ok(None);
        }
        let CallerKeys { model, judge } = CallerKeys::load(&self.credentials, &record.spec).await?;
        let keys = self.operator_keys.and(&Keys::new(model.iter().chain(&judge)));
        let benchmarks = found.benchmarks.into_iter().filter_map(|benchmark| {
            let name = benchmark.name.clone();
            Some((name, Arc::new(BenchmarkContext::new(&record.spec, benchmark, &self.support)?)))
        });
        Ok(Some(RunContext {
            benchmarks: benchmarks.collect(),
            generation: record.generation,
            taken_up: record.taken_up,
            answers: AnswerSource::new(&record, model, &self.providers),
            judge: JudgeSource::new(&record, judge, &self.providers),
            keys,
            ledger: record.spec.budget.is_set().then(|| self.ledgers.of(run)),
            spec: record.spec,
            seen_open: AtomicI64::new(bench_clock::now().as_micros()),
            used: AtomicU64::new(0),
        }))
    }
}
