//! From the command line to orders.

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::path::PathBuf;

use anyhow::Context;
use bench_api::default_benchmarks;
use bench_benchmarks::{Benchmark, Judge as Judging, Options, SandboxFacts};
use bench_datasets::Prepared;
use bench_domain::run::{DatasetChoice, Owner};
use bench_domain::{BenchmarkName, Generation, Price, RunId, Secret, Subset};
use bench_inference::{ModelName, ProviderKind};
use bench_items::{ItemNames, NameProblems};
use bench_pipeline::RecordedResponses;
use bench_runs::{Kind, Order, Orderer, Trusted};
use serde_json::{Map, Value, json};

use super::RunArgs;
use super::budget::BudgetArgs;
use super::checks::{check_judge, check_providers};
use super::responses;
use crate::client::Client;
use crate::commands::judge::{Judge, judge_key, protocols};
use crate::commands::options::{ByBenchmark, options, ordered, ordered_with};
use crate::commands::{check_exists, find_benchmark, warn_of_ignored};
use crate::exit::Problem;
use crate::output;
use crate::progress::DatasetProgress;
use crate::views::Run;
use bench_stack::Stack;

/// Arguments that say what is ordered: a run that goes on has its own.
const ORDER_ARGS: [&str; 20] = [
    "model",
    "benchmark",
    "item",
    "subset_pct",
    "subset_count",
    "seed",
    "samples",
    "temperature",
    "max_tokens",
    "base_url",
    "dataset",
    "demo",
    "price",
    "protocol",
    "option",
    "judge_model",
    "judge_base_url",
    "judge_temperature",
    "judge_seed",
    "judge_max_tokens",
];
/// Characters of a file's digest that are shown.
const DIGEST_CHARS: usize = 12;
/// Longest file of stored responses, in bytes: written as JSON it has at most twice as many.
const REPLAY_BYTES_MAX: u64 = bench_blobs::OBJECT_BYTES_MAX as u64 / 2;

/// What was ordered, checked as far as that goes without opening anything.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) models: Vec<Model>,
    /// Empty: those that a server preselects.
    pub(super) benchmarks: Vec<String>,
    pub(super) items: Vec<String>,
    pub(super) subset: Subset,
    pub(super) samples: Option<u32>,
    generation: Generation,
    pub(super) base_url: Option<String>,
    datasets: Vec<(BenchmarkName, PathBuf)>,
    /// Whether demo data was asked for.
    pub(super) demo: bool,
    budget: BudgetArgs,
    price: Option<Price>,
    /// The protocols that were chosen, by benchmark.
    protocols: BTreeMap<String, String>,
    /// The benchmarks' own settings that were given.
    options: ByBenchmark,
    pub(super) judge: Judge,
    pub(super) judge_base_url: Option<String>,
}

/// A model, with the stored responses that stand in for it.
#[derive(Debug)]
pub(super) struct Model {
    /// As it was given, without the path of a file.
    pub(super) name: String,
    /// `None` for a server's own name of a model.
    pub(super) provider: Option<ProviderKind>,
    /// Its name at the provider.
    slug: String,
    pub(super) replay: Option<Responses>,
}

/// Stored responses: as they are kept, and read.
#[derive(Debug)]
pub(super) struct Responses {
    /// Name of their file.
    pub(super) file: String,
    text: String,
    pub(super) replay: RecordedResponses,
}

impl Model {
    fn is_remote(&self) -> bool {
        self.provider.is_some_and(ProviderKind::is_remote)
    }
}

/// A checked command line.
pub(super) struct Resolved {
    pub(super) plan: Plan,
    /// The key that `--api-key-env` names.
    pub(super) key: Option<Secret>,
    /// The key for the judge.
    pub(super) judge_key: Option<Secret>,
}

/// Reads a temperature.
pub(crate) fn parse_temperature(text: &str) -> Result<f64, String> {
    let temperature = text.trim().parse::<f64>().ok().filter(|temperature| (0.0..=2.0).contains(temperature));
    temperature.ok_or_else(|| "it must be a number from 0 to 2".to_owned())
}

/// Refuses arguments that would change what was ordered.
pub(super) fn refuse_changes(run: RunId, given: &[String]) -> anyhow::Result<()> {
    let Some(id) = given.iter().find(|id| ORDER_ARGS.contains(&id.as_str())) else { return Ok(()) };
    let flag = id.replace('_', "-");
    let problem =
        Problem::usage(format!("--resume goes on with what was ordered: --{flag} cannot be given with it"));
    if id.starts_with("judge_") {
        return Err(problem
            .hint(format!(
                "another judge, or the same one elsewhere: `bench rejudge {run} --judge-model PROVIDER/MODEL \
                 --judge-base-url URL`"
            ))
            .into());
    }
    Err(problem.into())
}

/// Checks the command line.
pub(super) fn resolve(args: &RunArgs) -> anyhow::Result<Resolved> {
    let key = args.server.named_key()?;
    let plan = plan(args)?;
    let judge_key = judge_key();
    if args.server.server().is_none() {
        check_providers(&plan, key.as_ref())?;
        check_judge(&plan, key.as_ref(), judge_key.as_ref())?;
    }
    Ok(Resolved { plan, key, judge_key })
}

/// What was ordered. Whether model and judge can be asked is another question.
pub(super) fn plan(args: &RunArgs) -> anyhow::Result<Plan> {
    let remote = args.server.server().is_some();
    let datasets = datasets(&args.dataset)?;
    if remote
        && let Some((flag, _)) = [
            ("--base-url", args.base_url.is_some()),
            ("--dataset", !datasets.is_empty()),
            ("--price", args.price.is_some()),
            ("--judge-base-url", args.judge_base_url.is_some()),
        ]
        .into_iter()
        .find(|(_, is_given)| *is_given)
    {
        let message = format!(
            "{flag} cannot be sent to a server: files, addresses and prices are taken from the command line only"
        );
        return Err(Problem::usage(message).hint("leave --server out").into());
    }
    if args.demo && !datasets.is_empty() {
        return Err(Problem::usage("--demo and --dataset exclude each other").into());
    }
    let benchmarks = benchmarks(&args.benchmark, &datasets, remote)?;
    let protocols = protocols(&args.protocol, &benchmarks, remote)?;
    let plan = Plan {
        options: options(&args.option, &benchmarks, &protocols, remote)?,
        protocols,
        judge: args.judge.judge_or_variable(remote)?,
        judge_base_url: args.judge_base_url.clone().filter(|url| !url.trim().is_empty()),
        benchmarks,
        items: args.item.iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect(),
        subset: subset(args)?,
        samples: args.samples,
        generation: Generation {
            temperature: temperature(args.temperature)?,
            max_tokens: args.max_tokens,
            ..Generation::default()
        },
        base_url: args.base_url.clone().filter(|url| !url.trim().is_empty()),
        models: models(args, remote)?,
        datasets,
        demo: args.demo,
        budget: args.budget,
        price: args.price,
    };
    if !plan.items.is_empty() && (plan.subset.count.is_some() || plan.subset.pct != 100) {
        return Err(Problem::usage("--item and a subset exclude each other").into());
    }
    Ok(plan)
}

fn models(args: &RunArgs, remote: bool) -> anyhow::Result<Vec<Model>> {
    let mut names: Vec<String> = args.model.iter().filter(|name| !name.trim().is_empty()).cloned().collect();
    if names.is_empty() {
        names.extend(env::var("DEFAULT_MODEL").ok().filter(|name| !name.trim().is_empty()));
    }
    if names.is_empty() && !args.dry_run {
        return Err(Problem::usage("no model was given")
            .hint("give one with --model, or set DEFAULT_MODEL; `--model oracle --demo` needs no account")
            .into());
    }
    names.iter().map(|name| model(name, remote)).collect()
}

fn model(given: &str, remote: bool) -> anyhow::Result<Model> {
    let name = match ModelName::parse(given) {
        Ok(name) => name,
        // A server knows models by id and by slug, too.
        Err(_) if remote => {
            let name = given.trim().to_owned();
            return Ok(Model { slug: name.clone(), name, provider: None, replay: None });
        }
        Err(error) => return Err(Problem::usage(format!("--model: {error}")).into()),
    };
    if name.provider != ProviderKind::Replay {
        return Ok(Model {
            name: name.to_string(),
            provider: Some(name.provider),
            slug: name.slug,
            replay: None,
        });
    }
    if remote {
        return Err(Problem::usage("stored responses cannot be sent to a server")
            .hint("leave --server out")
            .into());
    }
    let path = PathBuf::from(&name.slug);
    let shown = path.display();
    let metadata = std::fs::metadata(&path)
        .map_err(|error| Problem::usage(format!("--model: could not read {shown}: {error}")))?;
    if metadata.is_dir() {
        return Err(Problem::usage(format!("--model: `{shown}` is a folder; name a file in it")).into());
    }
    if metadata.len() > REPLAY_BYTES_MAX {
        return Err(Problem::failure(format!("{shown} is larger than {REPLAY_BYTES_MAX} bytes")).into());
    }
    let text = std::fs::read(&path).with_context(|| format!("could not read {shown}"))?;
    let text = String::from_utf8(text).map_err(|_| Problem::failure(format!("{shown} is not UTF-8")))?;
    let replay =
        RecordedResponses::parse(&text).map_err(|error| Problem::failure(format!("{shown}, {error}")))?;
    if replay.is_empty() {
        return Err(Problem::failure(format!("{shown} holds no responses")).into());
    }
    // Results are handed on: where the file lies on this machine is nobody's business.
    let slug = path.file_name().map_or_else(|| name.slug.clone(), |file| file.to_string_lossy().into_owned());
    let name = ModelName { provider: ProviderKind::Replay, slug: slug.clone() }.to_string();
    let replay = Responses { file: shown.to_string(), text, replay };
    Ok(Model { name, provider: Some(ProviderKind::Replay), slug, replay: Some(replay) })
}

fn benchmarks(
    given: &[String],
    datasets: &[(BenchmarkName, PathBuf)],
    remote: bool,
) -> anyhow::Result<Vec<String>> {
    let given: Vec<&str> = given.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    let mut names: Vec<String> = Vec::new();
    for name in &given {
        let name = match find_benchmark(name) {
            Ok(benchmark) => benchmark.name().to_owned(),
            // A server may know others.
            Err(_) if remote => (*name).to_owned(),
            Err(error) => return Err(error),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if given.is_empty() && !remote {
        names = default_benchmarks();
        for (name, _) in datasets {
            if !names.iter().any(|known| known == name.as_str()) {
                names.push(name.to_string());
            }
        }
    }
    if let Some((name, _)) =
        datasets.iter().find(|(name, _)| !names.iter().any(|known| known == name.as_str()))
    {
        return Err(Problem::usage(format!("--dataset: {name} is not among the benchmarks to run")).into());
    }
    Ok(names)
}

fn datasets(given: &[String]) -> anyhow::Result<Vec<(BenchmarkName, PathBuf)>> {
    let mut datasets: Vec<(BenchmarkName, PathBuf)> = Vec::new();
    for text in given.iter().filter(|text| !text.trim().is_empty()) {
        let (name, file) = text
            .split_once('=')
            .filter(|(_, file)| !file.is_empty())
            .ok_or_else(|| Problem::usage(format!("--dataset: `{text}` is not NAME=FILE")))?;
        let name: BenchmarkName =
            find_benchmark(name)?.name().parse().context("a benchmark's name cannot be used")?;
        if datasets.iter().any(|(known, _)| *known == name) {
            return Err(Problem::usage(format!("--dataset: {name} is given twice")).into());
        }
        let file = PathBuf::from(file);
        check_exists("--dataset", &file)?;
        datasets.push((name, file));
    }
    Ok(datasets)
}

/// What stands on the command line wins over what a variable says.
fn subset(args: &RunArgs) -> anyhow::Result<Subset> {
    let given = |id: &str| args.given.iter().any(|given| given == id);
    let (pct, count) = match (given("subset_pct"), given("subset_count")) {
        (true, true) => {
            return Err(Problem::usage("--subset-pct and --subset-count exclude each other").into());
        }
        (true, false) => (args.subset_pct, None),
        (false, true) => (None, args.subset_count),
        (false, false) => (args.subset_pct, args.subset_count),
    };
    let subset = Subset::new(pct.unwrap_or(100), count, args.seed.as_deref());
    subset.map_err(|error| Problem::usage(error.to_string()).into())
}

fn temperature(given: Option<f64>) -> anyhow::Result<Option<f64>> {
    let default = || env::var("DEFAULT_TEMPERATURE").ok().filter(|text| !text.trim().is_empty());
    match (given, default()) {
        (Some(temperature), _) => Ok(Some(temperature)),
        (None, None) => Ok(None),
        (None, Some(text)) => {
            let parsed = parse_temperature(&text);
            parsed.map(Some).map_err(|error| Problem::usage(format!("DEFAULT_TEMPERATURE: {error}")).into())
        }
    }
}

impl Plan {
    /// The first benchmark whose answers are judged, and how.
    pub(super) fn judged(&self) -> Option<(&str, &'static dyn Judging)> {
        self.benchmarks.iter().find_map(|name| {
            let benchmark = self.ordered(name).ok()?;
            Some((name.as_str(), benchmark.judge()?))
        })
    }

    /// The benchmarks whose answers are run in sandboxes, and how.
    pub(super) fn executed(&self) -> impl Iterator<Item = (&str, &'static SandboxFacts)> {
        self.benchmarks.iter().filter_map(|name| {
            let benchmark = self.ordered(name).ok()?;
            Some((name.as_str(), benchmark.sandbox()?.facts()))
        })
    }

    /// The benchmark under its protocol and with its options.
    pub(super) fn ordered(&self, name: &str) -> anyhow::Result<&'static dyn Benchmark> {
        ordered(name, &self.protocols, &self.options)
    }

    /// The same, and those of its options that are not the default ones.
    pub(super) fn ordered_with(&self, name: &str) -> anyhow::Result<(&'static dyn Benchmark, Options)> {
        ordered_with(name, &self.protocols, &self.options)
    }

    /// Says before a run is made that a dataset lacks items that were named.
    fn check_items(&self, benchmark: &dyn Benchmark, dataset: &Prepared) -> anyhow::Result<()> {
        if self.items.is_empty() {
            return Ok(());
        }
        let names = ItemNames::of(&dataset.index.items);
        let mut problems = NameProblems::default();
        for item in &self.items {
            if let Err(error) = names.find(item) {
                problems.add(item, 1, &error);
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        let told = problems.of_items(self.items.len() as u64, benchmark.name());
        let problem = Problem::usage(format!("--item: {told}; its items are from {}", dataset.used.id));
        Err(match problems.hint(benchmark) {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
        .into())
    }

    /// Takes in the files that were given, and says what they lack.
    pub(super) async fn take_in(
        &self,
        stack: &Stack,
        progress: &DatasetProgress,
    ) -> anyhow::Result<BTreeMap<BenchmarkName, DatasetChoice>> {
        let mut datasets = BTreeMap::new();
        for (name, file) in &self.datasets {
            let benchmark = self.ordered(name.as_str())?;
            let prepared = stack.library.take_in(benchmark, file, progress).await?;
            let revision = prepared.used.revision.clone();
            self.check_items(benchmark, &prepared)?;
            if let Some(beside) = beside(&prepared) {
                output::note(&format!("{name}: items from {}, with {beside}", prepared.used.id));
            }
            datasets.insert(name.clone(), DatasetChoice::Local { revision });
        }
        if self.demo && !self.items.is_empty() {
            for name in &self.benchmarks {
                let benchmark = self.ordered(name)?;
                let prepared = stack.library.prepare(benchmark, &DatasetChoice::Demo, progress).await?;
                self.check_items(benchmark, &prepared)?;
            }
        }
        Ok(datasets)
    }

    /// Orders the runs in this process: files are taken in first.
    pub(super) async fn order_here(
        &self,
        stack: &Stack,
        key: Option<Secret>,
        judge_key: Option<Secret>,
        progress: &DatasetProgress,
    ) -> anyhow::Result<Vec<RunId>> {
        let datasets = self.take_in(stack, progress).await?;
        responses::check(self, stack, &datasets, progress).await?;
        let local = Orderer { judge_key, ..Orderer::local() };
        let orderer = Orderer { owner: Owner::Local, api_key: key, ..local.clone() };
        let mut runs = Vec::with_capacity(self.models.len());
        for model in &self.models {
            let replay_key = match &model.replay {
                None => None,
                Some(Responses { text, .. }) => {
                    let object = format!("uploads/{}.json.zst", RunId::random());
                    stack.blobs.put_json(&object, text).await?;
                    Some(object)
                }
            };
            let is_remote = model.is_remote();
            let order = Order {
                model: model.name.clone(),
                subset: self.subset.clone(),
                benchmarks: Some(self.benchmarks.clone()),
                items: self.items.clone(),
                samples: self.samples,
                generation: self.generation.clone(),
                demo: self.demo,
                budget: self.budget.budget(),
                protocols: self.protocols.clone(),
                options: self.options.clone(),
                judge: self.judge.order(),
                trusted: Trusted {
                    base_url: self.base_url.clone().filter(|_| is_remote),
                    judge_base_url: self.judge_base_url.clone(),
                    replay_key,
                    datasets: datasets.clone(),
                    coverage_min: None,
                    price: self.price.filter(|_| is_remote),
                },
                ..Order::default()
            };
            // A key is for a provider: none is asked for the others.
            let orderer = if is_remote { orderer.clone() } else { local.clone() };
            let created = stack.api.orders.create(order, orderer).await;
            let created = created.map_err(|error| {
                let message = format!("{}: {error}", model.name);
                match error.kind() {
                    Kind::Invalid | Kind::NotFound | Kind::OutOfBounds => Problem::usage(message),
                    _ => Problem::failure(message),
                }
            })?;
            let run = created.run.run.spec.id;
            output::note(&format!("Run {run}: {} on {}", model.name, self.benchmarks.join(", ")));
            runs.push(run);
        }
        Ok(runs)
    }

    /// Orders the runs at a server. `own_key` says that the caller's key is to be used at the provider.
    pub(super) async fn order_at(&self, client: &Client, own_key: bool) -> anyhow::Result<Vec<RunId>> {
        let path = if own_key { "/api/runs/api" } else { "/api/runs" };
        let benchmarks = match self.benchmarks.is_empty() {
            true => preselected(client).await?,
            false => self.benchmarks.clone(),
        };
        let mut runs = Vec::with_capacity(self.models.len());
        for model in &self.models {
            let created: Value =
                client.post(path, Some(&self.body(model, &benchmarks))).await.context(model.name.clone())?;
            warn_of_ignored(&created);
            let created: Run =
                serde_json::from_value(created).context("the server's answer is not the one expected")?;
            let run: RunId = created.id.parse().context("the server's answer names no run")?;
            let at = client.address().unwrap_or_default();
            let named = created.benchmarks.iter().map(|benchmark| benchmark.benchmark_name.as_str());
            let named = named.collect::<Vec<_>>().join(", ");
            output::note(&format!("Run {run} at {at}: {} on {named}", created.model()));
            runs.push(run);
        }
        Ok(runs)
    }

    fn body(&self, model: &Model, benchmarks: &[String]) -> Value {
        let mut body = Map::new();
        body.insert("model_id".into(), json!(model.slug));
        body.insert("selected_benchmarks".into(), json!(benchmarks));
        let mut optional = |name: &str, value: Value| {
            if !matches!(&value, Value::Null | Value::Bool(false)) && value != json!([]) {
                body.insert(name.to_owned(), value);
            }
        };
        optional("provider", json!(model.provider.map(ProviderKind::as_str)));
        // A server takes all items where nothing is said, and warns of a share that something else replaces.
        optional("subset_pct", json!((self.subset.pct != 100).then_some(self.subset.pct)));
        optional("subset_count", json!(self.subset.count));
        optional("subset_seed", json!(self.subset.seed));
        optional("samples", json!(self.samples));
        optional("temperature", json!(self.generation.temperature));
        optional("max_tokens", json!(self.generation.max_tokens));
        optional("items", json!(self.items));
        optional("demo", json!(self.demo));
        optional("protocols", json!((!self.protocols.is_empty()).then_some(&self.protocols)));
        optional("benchmark_options", json!((!self.options.is_empty()).then_some(&self.options)));
        optional("judge", json!(self.judge.body()));
        optional("budget_usd", json!(self.budget.budget_usd));
        optional("budget_tokens", json!(self.budget.budget_tokens));
        Value::Object(body)
    }
}

/// The files that were taken in beside the items, each with the beginning of its digest.
fn beside(dataset: &Prepared) -> Option<String> {
    let taken: HashSet<&str> = dataset.used.attachments.values().map(|file| file.sha256.as_str()).collect();
    let files = dataset.index.files.iter().filter(|file| taken.contains(file.sha256.as_str()));
    let named = files.map(|file| {
        format!("{} (SHA-256 {}…)", file.name, file.sha256.get(..DIGEST_CHARS).unwrap_or(&file.sha256))
    });
    Some(named.collect::<Vec<_>>().join(", ")).filter(|named| !named.is_empty())
}

/// The benchmarks that are run when none is named.
pub(crate) async fn preselected(client: &Client) -> anyhow::Result<Vec<String>> {
    let answer: Value = client.get("/api/benchmarks").await?;
    let all = answer.get("benchmarks").and_then(Value::as_array).into_iter().flatten();
    let is_preselected = |benchmark: &&Value| benchmark.get("default_selected") == Some(&Value::Bool(true));
    let names = all.filter(is_preselected).filter_map(|benchmark| benchmark.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}
