//! What is the same for all samples of a run, loaded once.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bench_benchmarks::{Benchmark, Material, Templates};
use bench_blobs::Blobs;
use bench_datasets::{SupportCache, load_item, load_templates};
use bench_domain::run::{AuthMode, ItemNaming, ModelRef, Owner, Plan};
use bench_domain::sample::Stage;
use bench_domain::{
    Answer, BenchmarkName, Code, Prompt, RunId, RunSpec, SampleRef, Secret, Spending, Timestamp, Usage,
};
use bench_inference::tokens::usage_or_estimate;
use bench_inference::{Endpoint, Failure, InferenceConfig, Keys, ProviderKind};
use bench_items::Item;
use bench_state::credentials::Credentials;
use bench_state::{State, TakenUp};
use tokio::sync::OnceCell;

use crate::answer::earlier_run::Original;
use crate::answer::recorded::Replay;
use crate::budget::ledger::{Ledger, Ledgers, Receipt};
use crate::load::material::{SUPPORT_BYTES_MAX, Supplies};
use crate::provider::refusals::Refusals;
use crate::{AskError, InHand};

/// How old the knowledge that a run is open may be.
const OPEN_FOR: Duration = Duration::from_secs(1);
/// How old the knowledge of a provider's wait may be.
const WAIT_FOR: Duration = Duration::from_secs(1);
/// Runs kept; the one unused for the longest goes first.
const RUNS_MAX: usize = 64;

/// One run, as far as one stage needs it.
pub struct RunContext {
    /// What was ordered.
    pub spec: RunSpec,
    /// Its generation when it was loaded.
    pub generation: u32,
    /// When the run was last taken up again, if it was.
    pub(crate) taken_up: Option<TakenUp>,
    /// Who is asked in this stage.
    pub party: Party,
    /// The keys in play: the run's own, its judge's and the operator's. None of them is stored in a text.
    pub keys: Keys,
    stage: Stage,
    /// What the provider refused.
    pub(crate) refusals: Arc<Refusals>,
    /// What it has spent, when it has a budget.
    pub(crate) ledger: Option<Arc<Ledger>>,
    benchmarks: BTreeMap<BenchmarkName, BenchmarkContext>,
    /// When the run was last seen open, in microseconds; 0 once it was seen over.
    seen_open: AtomicI64,
    /// When the provider's wait was last read, and its end.
    wait_read: AtomicI64,
    wait_until: AtomicI64,
    used: AtomicU64,
}

/// One benchmark of a run.
pub struct BenchmarkContext {
    /// What it is, under the protocol of the run.
    pub benchmark: &'static dyn Benchmark,
    /// How it is carried out.
    pub plan: Plan,
    /// Sort key of its record.
    pub(crate) sort: String,
    /// When progress was last told of, in microseconds.
    pub(crate) progress_at: AtomicI64,
    support: Arc<SupportCache>,
    templates: OnceCell<Templates>,
}

/// Who is asked.
pub enum Party {
    /// The dataset itself.
    Oracle,
    /// Stored responses.
    Replay(Arc<Replay>),
    /// Another run's answers.
    Stored(Original),
    /// A provider.
    Remote(Endpoint),
    /// Nobody can: the run fails with this code and sentence.
    Nobody(Code, String),
}

impl RunContext {
    /// Whether the sample belongs to a plan of this run.
    pub(crate) fn plans(&self, sample: &SampleRef) -> bool {
        self.benchmarks.get(&sample.benchmark).is_some_and(|found| found.plan.attempt == sample.plan)
    }

    /// A benchmark of the run, once it is planned.
    pub fn benchmark(&self, name: &BenchmarkName) -> Option<&BenchmarkContext> {
        self.benchmarks.get(name)
    }

    /// Number of samples planned; `None` until all benchmarks are.
    pub(crate) fn samples(&self) -> Option<u64> {
        let is_planned = self.benchmarks.len() == self.spec.benchmarks.len();
        is_planned.then(|| {
            let samples = self.benchmarks.values().map(|benchmark| benchmark.plan.samples());
            samples.fold(0, u64::saturating_add)
        })
    }

    /// Counts tokens of an answer from its receipt on, where the run has a budget.
    pub fn receive(&self, usage: Usage) -> Option<Receipt<'_>> {
        let spent = match self.stage {
            Stage::Answer => Spending::from(usage),
            Stage::Judge | Stage::Sandbox => Spending::of_judge(usage),
        };
        self.ledger.as_ref().map(|ledger| ledger.receive(spent))
    }

    /// Tokens that an answer of this stage cost: none where no provider was asked.
    pub fn spent_on(&self, prompt: &Prompt, answer: &Answer) -> Usage {
        match self.party {
            Party::Remote(_) => usage_or_estimate(prompt, answer),
            _ => Usage::default(),
        }
    }

    /// The model that is asked in this stage; `None` where there is no judge.
    pub fn asked(&self) -> Option<&ModelRef> {
        match self.stage {
            Stage::Answer => Some(&self.spec.model),
            Stage::Judge | Stage::Sandbox => self.spec.judge.as_ref().map(|judge| &judge.model),
        }
    }

    /// By which the provider's waits are shared: never a key.
    fn credential(&self) -> String {
        let of_owner = || match &self.spec.owner {
            Owner::Key(hash) => hash.as_str(),
            Owner::Local => "local",
        };
        match (self.stage, &self.spec.judge) {
            (Stage::Judge, Some(judge)) => match judge.auth {
                AuthMode::System => "system".to_owned(),
                // The owner is known by the other key; this one goes with it.
                AuthMode::ApiKey => format!("judge:{}", of_owner()),
            },
            _ => match self.spec.auth {
                AuthMode::System => "system".to_owned(),
                AuthMode::ApiKey => of_owner().to_owned(),
            },
        }
    }

    /// The model with its address, by which waits are shared.
    fn asked_name(&self) -> String {
        self.asked().map_or_else(String::new, |model| {
            format!("{}@{}", model.qualified(), model.base_url.as_deref().unwrap_or_default())
        })
    }
}

impl BenchmarkContext {
    /// Whether nobody but the run's owner and the operator may see what its items say.
    pub fn is_private(&self) -> bool {
        let name = self.benchmark.name().parse();
        name.is_ok_and(|name| bench_benchmarks::is_private(&name, Some(&self.plan.dataset)))
    }

    /// A failure as it can be told: causes are logged, and shown in events and as the error of the run, which
    /// anybody may read. One that quotes an item of a gated dataset is not kept.
    pub fn told(&self, prompt: &Prompt, failure: Failure) -> Failure {
        if !self.is_private() || !prompt.is_quoted_in(&failure.cause) {
            return failure;
        }
        let status = failure.status.map(|status| format!("HTTP {status}: ")).unwrap_or_default();
        let id = failure.request_id.as_ref().map(|id| format!(" (request_id={id})")).unwrap_or_default();
        let cause = format!(
            "{status}the provider's message quotes the item, whose dataset is gated, and is not kept{id}"
        );
        Failure { cause, ..failure }
    }

    /// The item of a sample in hand, as this sample asks it.
    ///
    /// # Errors
    /// When the store fails or has it no more.
    pub async fn item(&self, blobs: &Blobs, hand: &InHand<'_>) -> Result<Item, AskError> {
        let record = &hand.claimed.record;
        let stored = load_item(blobs, &self.plan.dataset.data_key, record.offset, record.length).await?;
        // Some have many megabytes: only a protocol that changes its items makes another one.
        let changed = match self.benchmark.of_sample(&stored, hand.sample.position.sample) {
            Cow::Owned(changed) => Some(changed),
            Cow::Borrowed(_) => None,
        };
        Ok(changed.unwrap_or(stored))
    }

    /// What an item's prompt needs besides it: a value that the dataset does not have is null.
    ///
    /// # Errors
    /// When the store fails or has a value no more.
    pub async fn material(&self, blobs: &Blobs, item: &Item) -> Result<Material, AskError> {
        let templates = self.templates(blobs).await?;
        let supplies = Supplies { blobs, cache: &self.support, dataset: &self.plan.dataset, templates };
        Ok(supplies.material(self.benchmark, item).await?)
    }

    /// The official texts that the plan was made with, loaded once.
    ///
    /// # Errors
    /// When the store fails or has one no more.
    pub async fn templates(&self, blobs: &Blobs) -> Result<&Templates, AskError> {
        let load = || async { Ok(load_templates(blobs, &self.plan.templates).await?) };
        self.templates.get_or_try_init(load).await
    }
}

/// The keys that callers gave for a run.
#[derive(Debug, Default)]
struct OwnKeys {
    /// For the model that is measured.
    model: Option<Secret>,
    /// For the judge.
    judge: Option<Secret>,
}

/// Whose key pays for the requests to a model.
#[derive(Debug)]
enum Key {
    /// The operator's.
    Operator,
    /// One that the caller gave.
    Own(Secret),
    /// One that should be there and is not, and how that is told.
    Missing(Code, &'static str),
}

/// The runs that this process knows.
pub struct Contexts {
    stage: Stage,
    state: State,
    blobs: Blobs,
    credentials: Credentials,
    inference: InferenceConfig,
    /// The operator's keys.
    keys: Keys,
    runs: Mutex<HashMap<RunId, Arc<RunContext>>>,
    support: Arc<SupportCache>,
    /// Ledgers outlive what is known of their runs, for as long as anybody works on one.
    ledgers: Ledgers,
    /// So do refusals, by run and generation: a request that is under way belongs to them.
    refusals: Mutex<HashMap<(RunId, u32), Weak<Refusals>>>,
    clock: AtomicU64,
    /// One reader at a time: the others find what it has read.
    loading: tokio::sync::Mutex<()>,
}

impl Contexts {
    pub(crate) fn new(
        stage: Stage,
        state: State,
        blobs: Blobs,
        credentials: Credentials,
        inference: InferenceConfig,
        keys: Keys,
        ledgers: Ledgers,
    ) -> Self {
        Self {
            stage,
            state,
            blobs,
            credentials,
            inference,
            keys,
            runs: Mutex::default(),
            support: Arc::new(SupportCache::new(SUPPORT_BYTES_MAX)),
            ledgers,
            refusals: Mutex::default(),
            clock: AtomicU64::new(0),
            loading: tokio::sync::Mutex::new(()),
        }
    }

    fn known(&self, run: RunId) -> Option<Arc<RunContext>> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let found = runs.get(&run).cloned()?;
        found.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(found)
    }

    /// The run of a sample in this generation or a later one, open and with the sample in its plans; `None` when the
    /// message is not needed.
    pub(crate) async fn open(
        &self,
        sample: &SampleRef,
        generation: u32,
    ) -> Result<Option<Arc<RunContext>>, AskError> {
        // What is known may be from before a benchmark was planned or the run was requeued: look again.
        for _ in 0..2 {
            let Some(run) = self.get(sample.run).await? else { return Ok(None) };
            if run.generation >= generation && run.plans(sample) && self.is_open(&run).await? {
                return Ok(Some(run));
            }
            self.forget(sample.run);
        }
        Ok(None)
    }

    async fn get(&self, run: RunId) -> Result<Option<Arc<RunContext>>, AskError> {
        if let Some(found) = self.known(run) {
            return Ok(Some(found));
        }
        let _one = self.loading.lock().await;
        if let Some(found) = self.known(run) {
            return Ok(Some(found));
        }
        let Some(loaded) = self.load(run).await? else { return Ok(None) };
        let loaded = Arc::new(loaded);
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() >= RUNS_MAX {
            let oldest =
                runs.iter().min_by_key(|(_, known)| known.used.load(Ordering::Relaxed)).map(|(id, _)| *id);
            oldest.map(|id| runs.remove(&id));
        }
        runs.insert(run, Arc::clone(&loaded));
        Ok(Some(loaded))
    }

    pub(crate) fn forget(&self, run: RunId) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }

    /// Whether the run is still open. Looks at most once a second; what changed its plans is loaded anew.
    pub(crate) async fn is_open(&self, run: &Arc<RunContext>) -> Result<bool, AskError> {
        let fresh = |seen: i64| Timestamp::now().since(Timestamp::from_micros(seen)) < OPEN_FOR;
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
        run.seen_open.store(if open { Timestamp::now().as_micros() } else { 0 }, Ordering::Relaxed);
        if !open {
            self.forget(run.spec.id);
        }
        Ok(open)
    }

    /// Whether the answer to a question that was asked is still wanted. It is when the run was stopped by its
    /// budget or by refusals meanwhile: the answer is being paid for.
    pub(crate) async fn wants_answers(&self, run: RunId) -> Result<bool, AskError> {
        if let Some(known) = self.known(run)
            && self.is_open(&known).await?
        {
            return Ok(true);
        }
        // Forgotten, or of an older generation: a requeued run still needs the answer.
        let found = self.state.run(run).await?;
        Ok(found.is_some_and(|found| found.state.status().is_open() || found.state.is_stopped()))
    }

    /// Before when the run's provider must not be asked.
    pub(crate) async fn not_before(&self, run: &RunContext) -> Result<Timestamp, AskError> {
        let now = Timestamp::now();
        let read = Timestamp::from_micros(run.wait_read.load(Ordering::Relaxed));
        if now.since(read) >= WAIT_FOR {
            run.wait_read.store(now.as_micros(), Ordering::Relaxed);
            let until =
                self.state.not_before(&run.credential(), &run.asked_name()).await?.unwrap_or_default();
            run.wait_until.store(until.as_micros(), Ordering::Relaxed);
        }
        Ok(Timestamp::from_micros(run.wait_until.load(Ordering::Relaxed)))
    }

    /// How long a provider is left alone that is busy and does not say for how long.
    pub(crate) const fn rate_limit_sleep(&self) -> Duration {
        self.inference.rate_limit_sleep
    }

    /// Lets everybody with the run's credential wait.
    pub(crate) async fn wait_for(&self, run: &RunContext, wait: Duration) -> Result<(), AskError> {
        let now = Timestamp::now();
        run.wait_until.fetch_max(now.plus(wait).as_micros(), Ordering::Relaxed);
        Ok(self.state.wait_for(&run.credential(), &run.asked_name(), now, wait).await?)
    }

    /// What the provider refused of a run in one of its generations.
    fn refusals(&self, run: RunId, generation: u32) -> Arc<Refusals> {
        let mut all = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&(run, generation)).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, refusals| refusals.strong_count() > 0);
        let refusals = Arc::default();
        all.insert((run, generation), Arc::downgrade(&refusals));
        refusals
    }

    async fn load(&self, run: RunId) -> Result<Option<RunContext>, AskError> {
        let Some(found) = self.state.run_with_benchmarks(run).await? else { return Ok(None) };
        if !found.run.state.status().is_open() {
            return Ok(None);
        }
        let own = self.own_keys(&found.run.spec).await?;
        let keys = self.keys.and(&Keys::new(own.model.iter().chain(&own.judge)));
        let party = match self.stage {
            Stage::Answer => self.model(&found.run.spec, own.model).await?,
            Stage::Judge | Stage::Sandbox => self.judge(&found.run.spec, own.judge).await?,
        };
        let spec = found.run.spec;
        let benchmarks = found.benchmarks.into_iter().filter_map(|record| {
            let context = BenchmarkContext {
                benchmark: bench_benchmarks::of_run(&spec, &record.name)?,
                sort: record.sort(),
                plan: record.plan?,
                progress_at: AtomicI64::new(0),
                support: Arc::clone(&self.support),
                templates: OnceCell::new(),
            };
            Some((record.name, context))
        });
        let benchmarks = benchmarks.collect();
        Ok(Some(RunContext {
            generation: found.run.generation,
            taken_up: found.run.taken_up,
            ledger: spec.budget.is_set().then(|| self.ledgers.of(run)),
            party,
            keys,
            stage: self.stage,
            refusals: self.refusals(run, found.run.generation),
            benchmarks,
            spec,
            seen_open: AtomicI64::new(Timestamp::now().as_micros()),
            wait_read: AtomicI64::new(0),
            wait_until: AtomicI64::new(0),
            used: AtomicU64::new(0),
        }))
    }

    /// The keys that callers gave for a run. Both are loaded in every stage: neither may be in a stored text.
    async fn own_keys(&self, spec: &RunSpec) -> Result<OwnKeys, AskError> {
        let mut own = OwnKeys::default();
        if spec.auth == AuthMode::ApiKey {
            own.model = self.credentials.get(spec.id).await?;
        }
        if spec.judge.as_ref().is_some_and(|judge| judge.auth == AuthMode::ApiKey) {
            own.judge = self.credentials.judge(spec.id).await?;
        }
        Ok(own)
    }

    /// Who answers.
    async fn model(&self, spec: &RunSpec, own: Option<Secret>) -> Result<Party, AskError> {
        if let Some(rejudges) = &spec.rejudges {
            // A deleted run has no answers any more.
            return Ok(match self.state.run_with_benchmarks(rejudges.run).await? {
                Some(found) => Party::Stored(Original::of(&found)),
                None => {
                    let why = format!("run {}, whose answers were to be judged, is gone", rejudges.run);
                    Party::Nobody(Code::RunDeleted, why)
                }
            });
        }
        if let Some(why) = outdated_responses(spec) {
            return Ok(Party::Nobody(Code::StoredDataMissing, why.to_owned()));
        }
        let key = match (spec.auth, own) {
            (AuthMode::System, _) => Key::Operator,
            (AuthMode::ApiKey, Some(key)) => Key::Own(key),
            (AuthMode::ApiKey, None) => Key::Missing(Code::KeyRequired, "Run is missing API key credentials"),
        };
        self.party(&spec.model, key).await
    }

    /// Who judges.
    async fn judge(&self, spec: &RunSpec, own: Option<Secret>) -> Result<Party, AskError> {
        let Some(judge) = &spec.judge else {
            return Ok(Party::Nobody(Code::JudgeMissing, "the run has no judge".to_owned()));
        };
        let key = match (judge.auth, own) {
            (AuthMode::System, _) => Key::Operator,
            (AuthMode::ApiKey, Some(key)) => Key::Own(key),
            (AuthMode::ApiKey, None) => {
                Key::Missing(Code::JudgeKeyRequired, "Run is missing API key credentials of its judge")
            }
        };
        self.party(&judge.model, key).await
    }

    /// The party behind a model, with the key that pays for it.
    async fn party(&self, model: &ModelRef, key: Key) -> Result<Party, AskError> {
        let nobody = |code, why: String| Ok(Party::Nobody(code, why));
        let Some(kind) = ProviderKind::from_name(&model.provider) else {
            return nobody(Code::UnsupportedProvider, format!("provider `{}` is unknown", model.provider));
        };
        match kind {
            ProviderKind::Oracle => return Ok(Party::Oracle),
            ProviderKind::Replay => {
                let key = model.replay_key.as_deref().unwrap_or_default();
                let Some(text) = self.blobs.get_json::<String>(key).await? else {
                    return nobody(
                        Code::StoredDataMissing,
                        "the stored responses of this run are gone".to_owned(),
                    );
                };
                return match Replay::parse(&text) {
                    Ok(replay) => Ok(Party::Replay(Arc::new(replay))),
                    Err(error) => nobody(Code::StoredDataMissing, error.to_string()),
                };
            }
            _ => {}
        }
        let key = match key {
            Key::Operator => None,
            Key::Own(key) => Some(key),
            Key::Missing(code, why) => return nobody(code, why.to_owned()),
        };
        let endpoint = match (&model.base_url, key) {
            // An address of the command line's: the operator's key belongs to another one.
            (Some(base_url), key) => Endpoint::new(kind, base_url, key),
            (None, Some(key)) => self.inference.endpoint_with_key(kind, key),
            (None, None) => self.inference.endpoint(kind),
        };
        match endpoint {
            Ok(endpoint) => Ok(Party::Remote(endpoint)),
            Err(error) => nobody(Code::ProviderNotConfigured, error.to_string()),
        }
    }
}

/// Why stored responses that an older program took in are not used: their ids were taken for indices of rows, so that part
/// of the run may be graded against other items than the rest would be.
fn outdated_responses(spec: &RunSpec) -> Option<&'static str> {
    let is_outdated = spec.model.replay_key.is_some() && spec.item_naming == ItemNaming::RowIndex;
    is_outdated.then_some(
        "this run was ordered by an older version, which took the ids of stored responses for indices of rows: order it \
         again",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_responses_of_an_older_program_are_not_used() {
        let spec = |replay_key: Option<&str>, item_naming: Option<&str>| -> RunSpec {
            let mut spec = json!({
                "id": RunId::random(), "benchmarks": ["mmlu_pro"], "selected_benchmarks": null,
                "model": {
                    "id": bench_domain::ModelId::of("replay", "a.jsonl"), "provider": "replay", "slug": "a.jsonl",
                    "replay_key": replay_key,
                },
                "subset": bench_domain::Subset::default(), "owner": Owner::Local, "auth": AuthMode::System,
                "coverage_min": 0.9, "software": "0.1.0", "created_at": Timestamp::default(),
            });
            if let Some(naming) = item_naming {
                spec["item_naming"] = naming.into();
            }
            serde_json::from_value(spec).unwrap()
        };
        let why = outdated_responses(&spec(Some("uploads/a"), None)).unwrap();
        assert!(why.ends_with("order it again"), "{why}");
        assert_eq!(outdated_responses(&spec(Some("uploads/a"), Some("source-id"))), None);
        assert_eq!(outdated_responses(&spec(None, None)), None, "a model that is asked");
    }
}
