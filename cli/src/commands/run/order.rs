//! From the command line to orders.

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::path::PathBuf;

use anyhow::Context;
use bench_api::default_benchmarks;
use bench_benchmarks::{Benchmark, Judge as Judging, Options, SandboxFacts};
use bench_datasets::Prepared;
use bench_domain::run::{DatasetChoice, Owner};
use bench_domain::{BenchmarkName, Price, RunId, Secret, Subset};
use bench_inference::ModelSource;
use bench_items::{ItemNames, NameProblems};
use bench_runs::{Kind, Order, Orderer, Trusted};
use clap::Args;
use clap::builder::BoolishValueParser;
use serde_json::{Map, Value, json};

use super::RunArgs;
use super::budget::{BudgetArgs, parse_price};
use super::checks::{check_judge, check_providers};
use super::models::{Model, Responses, models};
use super::responses;
use crate::client::Client;
use crate::commands::judge::{Judge, JudgeArgs, judge_key, protocols};
use crate::commands::options::{ByBenchmark, options, ordered, ordered_with};
use crate::commands::order_settings::{OrderSettings, parse_temperature, with_variable};
use crate::commands::{check_exists, find_benchmark, warn_of_ignored};
use crate::exit::Problem;
use crate::output;
use crate::progress::DatasetProgress;
use crate::views::Run;
use bench_stack::Stack;

/// Characters of a file's digest that are shown.
const DIGEST_CHARS: usize = 12;

/// Help of an option that has another default than in schedules.
const TEMPERATURE_HELP: &str =
    "Randomness of the answers, 0 to 2 [default: DEFAULT_TEMPERATURE, else the benchmark's own]";

/// What is ordered. A run that goes on has its own.
#[derive(Debug, Args)]
#[command(mut_args = with_variable, mut_arg("temperature", |arg| arg.help(TEMPERATURE_HELP)))]
pub(crate) struct OrderArgs {
    /// The model; repeat for several runs side by side [default: DEFAULT_MODEL]
    #[arg(long, short, env = "BENCH_MODEL", value_name = "MODEL")]
    pub(super) model: Vec<String>,
    /// A benchmark; repeat for several [default: the default ones of `bench benchmarks`]
    #[arg(long, short, env = "BENCH_BENCHMARK", value_name = "NAME", value_delimiter = ',')]
    pub(super) benchmark: Vec<String>,
    /// The protocol of a benchmark that is not to be run by its default one; repeat for several. The name can be
    /// left out when one benchmark is chosen
    #[arg(long, env = "BENCH_PROTOCOL", value_name = "[NAME=]PROTOCOL", value_delimiter = ',')]
    pub(super) protocol: Vec<String>,
    /// A setting that a benchmark has of its own, as `bench benchmarks NAME` lists them; repeat for several. The
    /// benchmark can be left out when one is chosen
    #[arg(long, value_name = "[BENCHMARK.]NAME=VALUE")]
    pub(super) option: Vec<String>,
    /// Only this item: by the dataset's own id, such as its question_id, or by the index of its row, from 0, as '#12';
    /// repeat for several
    #[arg(long, env = "BENCH_ITEM", value_name = "ID")]
    pub(super) item: Vec<String>,
    /// Share of each benchmark's items, 1 to 100
    #[arg(long, env = "BENCH_SUBSET_PCT", value_name = "P", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) subset_pct: Option<u32>,
    /// Number of items of each benchmark
    #[arg(long, env = "BENCH_SUBSET_COUNT", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2_147_483_647))]
    pub(super) subset_count: Option<u64>,
    /// What the choice of a subset depends on: the same seed gives the same items
    #[arg(long, env = "BENCH_SEED", value_name = "TEXT")]
    pub(super) seed: Option<String>,
    #[command(flatten)]
    pub(super) settings: OrderSettings,
    /// Where the provider answers, when that is not its usual address
    #[arg(long, env = "BENCH_BASE_URL", value_name = "URL")]
    pub(super) base_url: Option<String>,
    /// Take a benchmark's items from this parquet, JSONL or CSV file, in the dataset's own columns; can be repeated
    #[arg(long, env = "BENCH_DATASET", value_name = "NAME=FILE")]
    pub(super) dataset: Vec<String>,
    /// Use the items that come with this program; the scores then say nothing about the real benchmark
    #[arg(long, env = "BENCH_DEMO", value_parser = BoolishValueParser::new())]
    pub(super) demo: bool,
    #[command(flatten)]
    pub(super) judge: JudgeArgs,
    /// Where the judge's provider answers, when that is not its usual address
    #[arg(long, env = "BENCH_JUDGE_BASE_URL", value_name = "URL")]
    pub(super) judge_base_url: Option<String>,
    /// What the model costs: US dollars for a million tokens of prompt and of answer [default: as its provider lists it]
    #[arg(long, value_name = "IN,OUT", value_parser = parse_price)]
    pub(super) price: Option<Price>,
}

/// What was ordered, checked as far as that goes without opening anything.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) models: Vec<Model>,
    /// Empty: those that a server preselects.
    pub(super) benchmarks: Vec<String>,
    pub(super) items: Vec<String>,
    pub(super) subset: Subset,
    pub(super) settings: OrderSettings,
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

/// A checked command line.
pub(super) struct Resolved {
    pub(super) plan: Plan,
    /// The key that `--api-key-env` names.
    pub(super) key: Option<Secret>,
    /// The key for the judge.
    pub(super) judge_key: Option<Secret>,
}

/// Refuses arguments that would change what was ordered.
pub(super) fn refuse_changes(run: RunId, given: &[String]) -> anyhow::Result<()> {
    let order = OrderArgs::augment_args(clap::Command::new("order"));
    let is_order = |id: &&String| order.get_arguments().any(|arg| arg.get_id() == id.as_str());
    let Some(id) = given.iter().find(is_order) else { return Ok(()) };
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
    let datasets = datasets(&args.order.dataset)?;
    if remote
        && let Some((flag, _)) = [
            ("--base-url", args.order.base_url.is_some()),
            ("--dataset", !datasets.is_empty()),
            ("--price", args.order.price.is_some()),
            ("--judge-base-url", args.order.judge_base_url.is_some()),
        ]
        .into_iter()
        .find(|(_, is_given)| *is_given)
    {
        let message = format!(
            "{flag} cannot be sent to a server: files, addresses and prices are taken from the command line only"
        );
        return Err(Problem::usage(message).hint("leave --server out").into());
    }
    if args.order.demo && !datasets.is_empty() {
        return Err(Problem::usage("--demo and --dataset exclude each other").into());
    }
    let benchmarks = benchmarks(&args.order.benchmark, &datasets, remote)?;
    let protocols = protocols(&args.order.protocol, &benchmarks, remote)?;
    let plan = Plan {
        options: options(&args.order.option, &benchmarks, &protocols, remote)?,
        protocols,
        judge: args.order.judge.judge_or_variable(remote)?,
        judge_base_url: args.order.judge_base_url.clone().filter(|url| !url.trim().is_empty()),
        benchmarks,
        items: args
            .order
            .item
            .iter()
            .map(|item| item.trim().to_owned())
            .filter(|item| !item.is_empty())
            .collect(),
        subset: subset(args)?,
        settings: OrderSettings {
            temperature: temperature(args.order.settings.temperature)?,
            ..args.order.settings.clone()
        },
        base_url: args.order.base_url.clone().filter(|url| !url.trim().is_empty()),
        models: models(&args.order.model, args.dry_run, remote)?,
        datasets,
        demo: args.order.demo,
        budget: args.budget,
        price: args.order.price,
    };
    if !plan.items.is_empty() && (plan.subset.count.is_some() || plan.subset.pct != 100) {
        return Err(Problem::usage("--item and a subset exclude each other").into());
    }
    Ok(plan)
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
        (true, false) => (args.order.subset_pct, None),
        (false, true) => (None, args.order.subset_count),
        (false, false) => (args.order.subset_pct, args.order.subset_count),
    };
    let subset = Subset::new(pct.unwrap_or(100), count, args.order.seed.as_deref());
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
            let prepared = stack.library.import_local(benchmark, file, progress).await?;
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
            let mut order = Order {
                model: model.name.clone(),
                subset: self.subset.clone(),
                benchmarks: Some(self.benchmarks.clone()),
                items: self.items.clone(),
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
            self.settings.set_in(&mut order);
            // A key is for a provider: none is asked for the others.
            let orderer = if is_remote { orderer.clone() } else { local.clone() };
            let created = stack.orders.create(order, orderer).await;
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
        optional("provider", json!(model.source.map(ModelSource::as_str)));
        // A server takes all items where nothing is said, and warns of a share that something else replaces.
        optional("subset_pct", json!((self.subset.pct != 100).then_some(self.subset.pct)));
        optional("subset_count", json!(self.subset.count));
        optional("subset_seed", json!(self.subset.seed));
        optional("items", json!(self.items));
        optional("demo", json!(self.demo));
        optional("protocols", json!((!self.protocols.is_empty()).then_some(&self.protocols)));
        optional("benchmark_options", json!((!self.options.is_empty()).then_some(&self.options)));
        optional("judge", json!(self.judge.body()));
        optional("budget_usd", json!(self.budget.budget_usd));
        optional("budget_tokens", json!(self.budget.budget_tokens));
        body.extend(self.settings.fields());
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
