//! Orders of runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bench_benchmarks::TerminalTasks;
use bench_datasets::NoProgress;
use bench_domain::run::{AuthMode, DatasetChoice, JudgeSpec, ModelRef, Owner, RejudgedRun};
use bench_domain::{
    BenchmarkName, Budget, Generation, Price, RunId, RunLimits, RunSpec, RunTemplate, Secret, testing,
};
use bench_queue::Message;
use bench_runs::CallerKeys;
use bench_state::{EventKind, NewEvent};
use bench_tasks::{TaskUpload, UploadedArchive};
use bench_tests::model_server::JUDGE;
use bench_tests::scripted_host::task::{self, TaskKind};

use super::World;
use super::data;

/// An order: number of items by benchmark, and the source of answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    mmlu_pro: usize,
    aime_2025: usize,
    gpqa_diamond: usize,
    aa_omniscience: usize,
    livecodebench: usize,
    scicode: usize,
    tasks: usize,
    /// Kind of the terminal tasks.
    kind: TaskKind,
    /// Rows of Terminal-Bench Hard.
    terminal_bench: Option<PathBuf>,
    /// Rows of programming tasks for an agent.
    code_agent: Option<PathBuf>,
    /// Rows of conversations with a simulated user.
    conversations: Option<PathBuf>,
    /// Rows of repositories in images.
    repositories: Option<PathBuf>,
    /// True if the order has no user simulator.
    has_no_user: bool,
    /// Source of answers that asks no model; the model server without one.
    source: Option<&'static str>,
    options: BTreeMap<String, String>,
    samples: Option<u32>,
    judge: Option<JudgeSpec>,
    judge_key: Option<String>,
    user_key: Option<String>,
    rejudges: Option<RejudgedRun>,
    key: Option<String>,
    budget: Budget,
    limits: RunLimits,
    price: Option<Price>,
}

impl Order {
    /// Orders this number of items in MMLU-Pro's form, one sample each, from the model server.
    pub(crate) fn mmlu_pro(items: usize) -> Self {
        Self { mmlu_pro: items, ..Self::default() }
    }

    /// Orders this number of items in AA-Omniscience's form, one sample each, from the model server, which is also
    /// the judge.
    pub(crate) fn aa_omniscience(items: usize, world: &World) -> Self {
        let judge = JudgeSpec {
            model: ModelRef { slug: JUDGE.into(), ..model(world) },
            auth: AuthMode::System,
            generation: Generation { seed: Some(7), ..Generation::default() },
            price: None,
        };
        Self { aa_omniscience: items, judge: Some(judge), ..Self::default() }
    }

    /// Orders this number of items in LiveCodeBench's form, one sample each, from the model server.
    pub(crate) fn livecodebench(items: usize) -> Self {
        Self { livecodebench: items, samples: Some(1), ..Self::default() }
    }

    /// Orders this number of problems in SciCode's form, one sample each, from the model server.
    pub(crate) fn scicode(items: usize) -> Self {
        Self { scicode: items, samples: Some(1), ..Self::default() }
    }

    /// Orders the tasks in a file with rows of Terminal-Bench Hard for an agent, with options of the benchmark.
    pub(crate) fn terminal_bench(path: PathBuf, agent: &str, options: &[(&str, &str)]) -> Self {
        let source = source_of(agent);
        let named = source.is_none().then_some(("agent", agent));
        let options = options.iter().copied().chain(named);
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { terminal_bench: Some(path), source, options, samples: Some(1), ..Self::default() }
    }

    /// Orders the programming tasks in a file with rows for the agent `bash` with these options, from the model server.
    pub(crate) fn code_agent(path: PathBuf, options: &[(&str, &str)]) -> Self {
        let own = options.iter().map(|(name, value)| (format!("agent.{name}"), (*value).to_owned()));
        let options = own.chain([("agent".to_owned(), "bash".to_owned())]).collect();
        Self { code_agent: Some(path), options, samples: Some(1), ..Self::default() }
    }

    /// Orders the conversations in a file with rows of τ²-bench telecom, one sample each. The model server is the user simulator,
    /// too, under the name [`USER`].
    pub(crate) fn conversations(path: PathBuf) -> Self {
        Self { conversations: Some(path), samples: Some(1), ..Self::default() }
    }

    /// Orders the repositories in a file with rows of SWE-bench Pro for the agent `bash`, one sample each.
    pub(crate) fn repositories(path: PathBuf) -> Self {
        let options = [("agent".to_owned(), "bash".to_owned())].into();
        Self { repositories: Some(path), options, samples: Some(1), ..Self::default() }
    }

    /// Removes the user simulator.
    pub(crate) fn without_user(self) -> Self {
        Self { has_no_user: true, ..self }
    }

    /// Takes the answers from a source that asks no model.
    pub(crate) fn with_source(self, source: &'static str) -> Self {
        Self { source: Some(source), options: BTreeMap::new(), ..self }
    }

    /// Orders this number of terminal tasks, one sample each, for an agent with these options.
    pub(crate) fn tasks(tasks: usize, agent: &str, options: &[(&str, &str)]) -> Self {
        let own = options.iter().map(|(name, value)| (format!("agent.{name}"), (*value).to_owned()));
        let source = source_of(agent);
        // The files of a custom agent are its option.
        let is_named = source.is_none() || agent == "custom";
        let named = is_named.then(|| ("agent".to_owned(), agent.to_owned()));
        let options = own.chain(named).collect();
        Self { tasks, source, options, samples: Some(1), ..Self::default() }
    }

    /// Sets the kind of the terminal tasks.
    pub(crate) fn of_kind(self, kind: TaskKind) -> Self {
        Self { kind, ..self }
    }

    /// Removes the judge.
    pub(crate) fn without_judge(self) -> Self {
        Self { judge: None, ..self }
    }

    /// Uses the oracle as the judge, which compares with the gold answer.
    pub(crate) fn with_oracle_judge(self) -> Self {
        let oracle = |judge: JudgeSpec| JudgeSpec { model: testing::model("oracle/oracle"), ..judge };
        Self { judge: self.judge.map(oracle), ..self }
    }

    /// Pays for the judge with this caller's key.
    pub(crate) fn with_judge_key(self, key: &str) -> Self {
        let judge = self.judge.map(|judge| JudgeSpec { auth: AuthMode::ApiKey, ..judge });
        Self { judge, judge_key: Some(key.to_owned()), ..self }
    }

    /// Pays for the user simulator with this caller's key.
    pub(crate) fn with_user_key(self, key: &str) -> Self {
        Self { user_key: Some(key.to_owned()), ..self }
    }

    /// Sets the price of the judge.
    pub(crate) fn with_judge_price(self, price: Price) -> Self {
        Self { judge: self.judge.map(|judge| JudgeSpec { price: Some(price), ..judge }), ..self }
    }

    /// Takes the answers of another run.
    pub(crate) fn rejudging(self, run: RunId) -> Self {
        Self { rejudges: Some(RejudgedRun { run, version: 2 }), ..self }
    }

    /// Adds this number of items in AIME's form, four samples each, after the other benchmarks.
    pub(crate) fn with_aime(self, items: usize) -> Self {
        Self { aime_2025: items, ..self }
    }

    /// Orders this number of items in GPQA Diamond's form, four samples each.
    pub(crate) fn gpqa_diamond(items: usize) -> Self {
        Self { gpqa_diamond: items, ..Self::default() }
    }

    /// Pays with this caller's key.
    pub(crate) fn with_key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    /// Sets the budget to this number of tokens.
    pub(crate) fn with_budget_tokens(self, tokens: u64) -> Self {
        Self { budget: Budget { tokens: Some(tokens), ..self.budget }, ..self }
    }

    /// Limits requests, answers and failures.
    pub(crate) fn with_limits(self, limits: RunLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the budget to this number of dollars at this price.
    pub(crate) fn with_budget_usd(self, usd: f64, price: Price) -> Self {
        Self { budget: Budget { usd: Some(usd), ..self.budget }, price: Some(price), ..self }
    }

    fn datasets(&self, world: &World) -> Vec<(&'static str, PathBuf)> {
        let dir = world.files();
        let mut datasets = Vec::new();
        if self.mmlu_pro > 0 {
            datasets.push(("mmlu_pro", data::mmlu_pro(dir, self.mmlu_pro)));
        }
        if self.aime_2025 > 0 {
            datasets.push(("aime_2025", data::aime_2025(dir, self.aime_2025)));
        }
        if self.gpqa_diamond > 0 {
            datasets.push(("gpqa_diamond", data::gpqa_diamond(dir, self.gpqa_diamond)));
        }
        if self.aa_omniscience > 0 {
            datasets.push(("aa_omniscience", data::aa_omniscience(dir, self.aa_omniscience)));
        }
        if self.livecodebench > 0 {
            datasets.push(("livecodebench", data::livecodebench(dir, self.livecodebench)));
        }
        if self.scicode > 0 {
            datasets.push(("scicode", data::scicode(dir, self.scicode)));
        }
        datasets.extend(self.terminal_bench.clone().map(|path| (TERMINAL_BENCH_HARD, path)));
        datasets.extend(self.code_agent.clone().map(|path| (CODE_LAB, path)));
        datasets.extend(self.conversations.clone().map(|path| (TAU_BENCH_TELECOM, path)));
        datasets.extend(self.repositories.clone().map(|path| (SWE_BENCH_PRO, path)));
        datasets
    }

    async fn import_datasets(
        &self,
        world: &World,
    ) -> (Vec<BenchmarkName>, BTreeMap<BenchmarkName, DatasetChoice>) {
        let mut datasets = BTreeMap::new();
        let mut benchmarks: Vec<BenchmarkName> = Vec::new();
        for (name, path) in self.datasets(world) {
            let benchmark = bench_benchmarks::find(name).unwrap();
            // Retried, since injected faults apply here, too.
            let taken = world
                .retry_until_ok("take in a dataset", || {
                    world.stack.library.import_local(benchmark, &path, &NoProgress)
                })
                .await;
            benchmarks.push(name.parse().unwrap());
            datasets.insert(name.parse().unwrap(), DatasetChoice::Local { revision: taken.used.revision });
        }
        if self.tasks > 0 {
            let name: BenchmarkName = "terminal_tasks".parse().unwrap();
            benchmarks.push(name.clone());
            datasets.insert(name, Box::pin(self.import_tasks(world)).await);
        }
        (benchmarks, datasets)
    }

    async fn import_tasks(&self, world: &World) -> DatasetChoice {
        let store = &world.stack.api.tasks;
        let mut tasks = Vec::new();
        for number in 0..self.tasks {
            let archive = UploadedArchive::from_bytes(&task::archive_of(self.kind, number).unwrap()).unwrap();
            let upload = TaskUpload {
                name: format!("task-{number}"),
                file_name: "task.zip".to_owned(),
                model: "m".to_owned(),
                agent: "terminus-2".to_owned(),
                harness: "harbor".to_owned(),
                num_runs: 1,
                unlisted: true,
                owner: Owner::Local,
            };
            tasks.push(store.add(archive, upload).await.unwrap().0);
        }
        store.dataset(&tasks, &TerminalTasks::DEFAULT).await.unwrap()
    }

    /// Imports the datasets and returns the order for a schedule.
    pub(crate) async fn template(&self, world: &World) -> RunTemplate {
        let (benchmarks, datasets) = self.import_datasets(world).await;
        RunTemplate {
            price: None,
            budget: Budget::default(),
            ..self.template_of(world, benchmarks, datasets)
        }
    }

    fn template_of(
        &self,
        world: &World,
        benchmarks: Vec<BenchmarkName>,
        datasets: BTreeMap<BenchmarkName, DatasetChoice>,
    ) -> RunTemplate {
        RunTemplate {
            model: match self.source {
                Some(source) => testing::model(&format!("{source}/{source}")),
                None => model(world),
            },
            samples: self.samples,
            judge: self.judge.clone(),
            user: (self.conversations.is_some() && !self.has_no_user).then(|| JudgeSpec {
                model: ModelRef { slug: USER.into(), ..model(world) },
                auth: if self.user_key.is_some() { AuthMode::ApiKey } else { AuthMode::System },
                generation: Generation::default(),
                price: Price::new(1.0, 1.0),
            }),
            price: self.price,
            budget: self.budget,
            limits: self.limits,
            protocols: match self.code_agent {
                Some(_) => BTreeMap::from([(CODE_LAB.parse().unwrap(), "agent".to_owned())]),
                None => BTreeMap::new(),
            },
            options: match self.options.is_empty() {
                true => BTreeMap::new(),
                false => benchmarks.iter().cloned().map(|name| (name, self.options.clone())).collect(),
            },
            benchmarks,
            datasets,
            ..testing::template("openai-compatible/m", "mmlu_pro")
        }
    }

    /// Imports the datasets and writes the run. Sends no message.
    pub(crate) async fn create(&self, world: &World) -> RunId {
        let (benchmarks, datasets) = self.import_datasets(world).await;
        let id = RunId::random();
        let key = self.key.as_ref().and_then(Secret::new);
        let spec = RunSpec {
            id,
            template: self.template_of(world, benchmarks, datasets),
            rejudges: self.rejudges,
            owner: key.as_ref().map_or(Owner::Local, |key| world.stack.api.access.owner_of(key)),
            auth: if key.is_some() { AuthMode::ApiKey } else { AuthMode::System },
            schedule: None,
            session: None,
            software: "test".into(),
            created_at: bench_clock::now(),
        };
        let event = NewEvent::new(EventKind::RunCreated, "Run created");
        let state = &world.stack.state;
        let judge = self.judge_key.as_ref().and_then(Secret::new);
        let user = self.user_key.as_ref().and_then(Secret::new);
        let keys = CallerKeys { own: key, judge, user };
        let sealed = keys.seal(&world.stack.credentials, id, 1).await.unwrap();
        let make = || state.create_run_with(&spec, &event, None, spec.created_at, sealed.clone());
        world.retry_until_ok("create the run", make).await;
        id
    }

    /// Creates the run and sends its message.
    pub(crate) async fn place(&self, world: &World) -> RunId {
        // Boxed: tests place orders deep in their own calls.
        let run = Box::pin(self.create(world)).await;
        let plan = Message::Plan { run, generation: 1 };
        world.retry_until_ok("send the plan", || world.stack.queues.send(&plan, Duration::ZERO)).await;
        run
    }
}

const TERMINAL_BENCH_HARD: &str = "terminal_bench_hard";
const CODE_LAB: &str = "code_lab";
const SWE_BENCH_PRO: &str = "swe_bench_pro";
const TAU_BENCH_TELECOM: &str = "tau_bench_telecom";
/// Name of the user simulator's model.
pub(crate) const USER: &str = "user-simulator";

/// Returns the source of answers that an agent is, if it asks no model.
fn source_of(agent: &str) -> Option<&'static str> {
    ["oracle", "nop", "custom"].into_iter().find(|source| *source == agent)
}

/// Returns the model of the world's model server.
fn model(world: &World) -> ModelRef {
    ModelRef { base_url: Some(world.model.base_url()), ..testing::model("openai-compatible/m") }
}
