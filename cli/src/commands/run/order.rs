//! Conversion of the command line to orders.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use anyhow::Context;
use bench_api::default_benchmarks;
use bench_benchmarks::{
    Benchmark, DialogueProtocol, Judge as Judging, Options, SandboxMetadata, is_agent_option, task_variables,
};
use bench_domain::run::DatasetChoice;
use bench_domain::{BenchmarkName, OmittedSetting, Price, RunLabels, Secret, Subset};
use bench_runs::{CustomAgentProblem, TERMINAL_TASKS};
use clap::Args;
use clap::builder::BoolishValueParser;

use super::RunArgs;
use super::budget::{BudgetArgs, parse_price};
use super::checks::{check_judge, check_providers, check_user_model};
use super::models::{Model, ThinkingLevel, models};
use super::tasks;
use crate::agent_archive::{self, AgentArchive};
use crate::commands::judge::{Judge, JudgeArgs, parse_protocols};
use crate::commands::labels::LabelArgs;
use crate::commands::options::{
    OptionsByBenchmark, check_agent_options, configured, configured_with_options, parse_options,
};
use crate::commands::order_settings::{OrderSettings, parse_temperature, with_variable};
use crate::commands::user_model::UserModelArgs;
use crate::commands::{check_exists, find_benchmark};
use crate::exit::Problem;
use crate::helper_keys::HelperKeys;
use crate::run_ref::RunRef;
use crate::task_archive::{self, GivenTask};

/// Help of an option whose default differs from that in schedules.
const TEMPERATURE_HELP: &str =
    "Temperature of the model, 0 to 2 [default: $DEFAULT_TEMPERATURE, else the benchmark's own]";

/// Order of a run. A resumed run keeps its own.
#[derive(Debug, Args)]
#[command(mut_args = with_variable, mut_arg("temperature", |arg| arg.help(TEMPERATURE_HELP)))]
pub(crate) struct OrderArgs {
    /// Model to run; repeat for several runs side by side [default: $DEFAULT_MODEL]
    #[arg(long, short, env = "BENCH_MODEL", value_name = "MODEL")]
    pub(super) model: Vec<String>,
    /// Thinking level of the models: base (the provider's own), an effort such as low or high, or a number of tokens; repeat
    /// for a run of each model at each level
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', conflicts_with_all = ["reasoning_effort", "thinking_budget"])]
    pub(super) thinking_level: Vec<ThinkingLevel>,
    /// Benchmark to run; repeat for several [default: those marked as default in `bench benchmarks`]
    #[arg(long, short, env = "BENCH_BENCHMARK", value_name = "NAME", value_delimiter = ',')]
    pub(super) benchmark: Vec<String>,
    /// Terminal task to run: a folder, a folder of tasks, a ZIP archive, or the id or name of a stored task; repeat for
    /// several. They are the items of `terminal_tasks`
    #[arg(long, env = "BENCH_TASK", value_name = "PATH|TASK")]
    pub(super) task: Vec<PathBuf>,
    /// Agent that works on the terminal tasks, or on those of `terminal_bench_hard`: `terminus-2` lets the model type into a
    /// terminal, `bash` runs its commands one by one, `oracle` runs the task's own solution, `nop` does nothing, `custom` is
    /// the program in --agent-folder [default: terminus-2 if a model is given]
    #[arg(long, env = "BENCH_AGENT", value_name = "NAME")]
    pub(super) agent: Option<String>,
    /// Option of the agent, such as max_turns=50, max_cost_usd=2 or parser_name=xml; repeat for several
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) agent_option: Vec<String>,
    /// Folder of the agent `custom`: `agent.toml` with `name` and `run`, an optional install script, and other files. They
    /// are run in the task's container, without a key or a model of this program
    #[arg(long, value_name = "DIR")]
    pub(super) agent_folder: Option<PathBuf>,
    /// Protocol of a benchmark instead of its default one; repeat for several benchmarks. The name is optional if only
    /// one benchmark is run
    #[arg(long, env = "BENCH_PROTOCOL", value_name = "[NAME=]PROTOCOL", value_delimiter = ',')]
    pub(super) protocol: Vec<String>,
    /// Setting of one benchmark, as listed by `bench benchmarks NAME`; repeat for several. The benchmark is optional if
    /// only one is run
    #[arg(long, value_name = "[BENCHMARK.]NAME=VALUE")]
    pub(super) option: Vec<String>,
    /// Run only this item, given by the dataset's own id, such as its question_id, or by the index of its row, from 0, as
    /// '#12'; repeat for several
    #[arg(long, env = "BENCH_ITEM", value_name = "ID")]
    pub(super) item: Vec<String>,
    /// Percentage of each benchmark's items to run, 1 to 100 [default: 100]
    #[arg(long, env = "BENCH_SUBSET_PCT", value_name = "P", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) subset_pct: Option<u32>,
    /// Number of items to run of each benchmark, which --seed selects [default: all]
    #[arg(long, visible_alias = "limit", env = "BENCH_SUBSET_COUNT", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2_147_483_647))]
    pub(super) subset_count: Option<u64>,
    /// Seed of the subset: the same seed selects the same items [default: another one for each run]
    #[arg(long, env = "BENCH_SEED", value_name = "TEXT")]
    pub(super) seed: Option<String>,
    #[command(flatten)]
    pub(super) settings: OrderSettings,
    /// Base URL of the provider's API [default: the provider's own]
    #[arg(long, env = "BENCH_BASE_URL", value_name = "URL", help_heading = None)]
    pub(super) base_url: Option<String>,
    /// Read a benchmark's items from this Parquet, JSONL or CSV file with the dataset's own columns; repeat for several
    #[arg(long, env = "BENCH_DATASET", value_name = "NAME=FILE", help_heading = None)]
    pub(super) dataset: Vec<String>,
    /// Run the demo items that are bundled with this program; their scores say nothing about the real benchmark
    #[arg(long, env = "BENCH_DEMO", value_parser = BoolishValueParser::new(), help_heading = None)]
    pub(super) demo: bool,
    #[command(flatten)]
    pub(super) judge: JudgeArgs,
    /// Base URL of the API of the judge's provider [default: the provider's own]
    #[arg(long, env = "BENCH_JUDGE_BASE_URL", value_name = "URL", help_heading = "Judge")]
    pub(super) judge_base_url: Option<String>,
    #[command(flatten)]
    pub(super) user: UserModelArgs,
    /// Base URL of the API of the user model's provider [default: the provider's own]
    #[arg(long, env = "BENCH_USER_BASE_URL", value_name = "URL", help_heading = "User model")]
    pub(super) user_base_url: Option<String>,
    /// Price of the model in US dollars per million tokens of prompts and of answers [default: as listed by its provider]
    #[arg(long, value_name = "IN,OUT", value_parser = parse_price, help_heading = "Budget")]
    pub(super) price: Option<Price>,
    #[command(flatten)]
    pub(super) labels: LabelArgs,
}

/// Order from the command line, checked without opening anything.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) models: Vec<Model>,
    /// Empty for the benchmarks that a server preselects.
    pub(super) benchmarks: Vec<String>,
    pub(super) items: Vec<String>,
    pub(super) subset: Subset,
    pub(super) settings: OrderSettings,
    pub(super) base_url: Option<String>,
    pub(super) datasets: Vec<(BenchmarkName, PathBuf)>,
    /// Terminal tasks.
    pub(super) tasks: Vec<GivenTask>,
    /// Files of the agent `custom`.
    pub(super) agent: Option<AgentArchive>,
    /// True if the user asked for demo data.
    pub(super) demo: bool,
    pub(super) budget: BudgetArgs,
    pub(super) price: Option<Price>,
    /// Protocols that were given, by benchmark.
    pub(super) protocols: BTreeMap<String, String>,
    /// Benchmark-specific settings that were given.
    pub(super) options: OptionsByBenchmark,
    pub(super) judge: Judge,
    pub(super) judge_base_url: Option<String>,
    pub(super) user: Judge,
    pub(super) user_base_url: Option<String>,
    pub(super) labels: RunLabels,
}

/// Checked command line.
pub(super) struct Resolved {
    pub(super) plan: Plan,
    /// Key from the variable that `--api-key-env` names.
    pub(super) key: Option<Secret>,
    /// Caller's own keys for judge and user model.
    pub(super) helper_keys: HelperKeys,
}

/// Rejects arguments that would change an existing run's order.
pub(super) fn refuse_changes(run: &RunRef, given: &[String]) -> anyhow::Result<()> {
    let order = OrderArgs::augment_args(clap::Command::new("order"));
    let flag = |id: &String| {
        order.get_arguments().find(|arg| arg.get_id() == id.as_str()).and_then(|arg| arg.get_long())
    };
    let Some((id, flag)) = given.iter().find_map(|id| Some((id, flag(id)?))) else { return Ok(()) };
    let problem = Problem::usage(format!(
        "--resume continues the run as it was ordered: --{flag} can't be given with it"
    ));
    if id.starts_with("judge_") {
        return Err(problem
            .hint(format!(
                "`bench rejudge {run} --judge-model PROVIDER/MODEL --judge-base-url URL` grades with another judge, or with \
                 the same one at another address"
            ))
            .into());
    }
    let labels = LabelArgs::augment_args(clap::Command::new("labels"));
    if labels.get_arguments().any(|arg| arg.get_id() == id.as_str()) {
        return Err(problem
            .hint(format!("`bench runs edit {run} --{flag} TEXT` changes name, tags and notes"))
            .into());
    }
    Err(problem.into())
}

/// Checks the command line.
pub(super) fn resolve(args: &RunArgs) -> anyhow::Result<Resolved> {
    let key = args.server.named_key()?;
    let plan = plan(args)?;
    let helper_keys = HelperKeys::from_variables();
    if args.server.server().is_none() {
        check_providers(&plan, key.as_ref())?;
        check_judge(&plan, key.as_ref(), helper_keys.judge.as_ref())?;
        check_user_model(&plan, key.as_ref(), helper_keys.user.as_ref())?;
    }
    Ok(Resolved { plan, key, helper_keys })
}

/// Refuses options of the benchmark that choose the agent where the flags of the agent do: the flags would win silently.
fn refuse_agent_among(options: Option<&Options>) -> anyhow::Result<()> {
    let names = options.into_iter().flat_map(Options::keys);
    match names.into_iter().find(|name| is_agent_option(name)) {
        Some(name) => Err(Problem::usage(format!("--option: `{name}` can't be given here"))
            .hint("--agent NAME chooses the agent, and --agent-option NAME=VALUE sets its options")
            .into()),
        None => Ok(()),
    }
}

/// Refuses an order that lacks a variable of the agent `custom`.
fn require_variables(files: &AgentArchive, options: Option<&Options>) -> anyhow::Result<()> {
    let given = task_variables(options);
    match files.required_variables.iter().find(|name| !given.contains_key(*name)) {
        Some(variable) => {
            let agent = files.model.trim_start_matches("custom/").to_owned();
            let variable = variable.clone();
            Err(Problem::usage(CustomAgentProblem::NoVariable { agent, variable }.to_string()).into())
        }
        None => Ok(()),
    }
}

/// Builds the order, without checking that model and judge are callable.
pub(super) fn plan(args: &RunArgs) -> anyhow::Result<Plan> {
    let remote = args.server.server().is_some();
    let datasets = datasets(&args.order.dataset)?;
    if remote
        && let Some((flag, _)) = [
            ("--base-url", args.order.base_url.is_some()),
            ("--dataset", !datasets.is_empty()),
            ("--price", args.order.price.is_some()),
            ("--judge-base-url", args.order.judge_base_url.is_some()),
            ("--user-base-url", args.order.user_base_url.is_some()),
        ]
        .into_iter()
        .find(|(_, is_given)| *is_given)
    {
        let message = format!(
            "{flag} can't be used with --server: servers accept no files, addresses or prices from callers"
        );
        return Err(Problem::usage(message).hint("leave --server out to run on this machine").into());
    }
    if args.order.demo && !datasets.is_empty() {
        return Err(Problem::usage("--demo and --dataset can't be given together").into());
    }
    let has_tasks = !args.order.task.is_empty();
    let benchmarks = match has_tasks {
        true => only_tasks(args)?,
        false => benchmarks(&args.order.benchmark, &datasets, remote)?,
    };
    if !has_tasks {
        tasks::refuse_without_tasks(&benchmarks)?;
    }
    let agent = args.order.agent.as_deref().map(str::trim).filter(|agent| !agent.is_empty());
    let given = [
        ("--agent", agent.is_some()),
        ("--agent-option", !args.order.agent_option.is_empty()),
        ("--agent-folder", args.order.agent_folder.is_some()),
    ];
    let given = given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag));
    let with_agent = match (has_tasks, given) {
        (true, _) => Some(TERMINAL_TASKS),
        (false, Some(flag)) => Some(benchmark_with_agent(&benchmarks, flag)?),
        (false, None) => None,
    };
    let protocols = parse_protocols(&args.order.protocol, &benchmarks, remote)?;
    let mut options = parse_options(&args.order.option, &benchmarks, &protocols, remote)?;
    let mut agent_files = None;
    let named = match with_agent {
        Some(benchmark) => {
            let files = args.order.agent_folder.as_deref().map(agent_archive::read_folder).transpose()?;
            let (named, of_agent) =
                tasks::models(&args.order.model, agent, &args.order.agent_option, files.as_ref())?;
            agent_files = files;
            refuse_agent_among(options.get(benchmark))?;
            if !of_agent.is_empty() {
                check_agent_options(benchmark, &of_agent)?;
                options.entry(benchmark.to_owned()).or_default().extend(of_agent);
                configured(benchmark, &protocols, &options)?;
            }
            if let Some(files) = &agent_files {
                require_variables(files, options.get(benchmark))?;
            }
            named
        }
        None => args.order.model.clone(),
    };
    let has_agent = |name: &String| find_benchmark(name).is_ok_and(|benchmark| benchmark.has_agent());
    let for_agent = with_agent.is_some() || benchmarks.iter().any(has_agent);
    let plan = Plan {
        options,
        protocols,
        judge: args.order.judge.judge_or_variable(remote)?,
        judge_base_url: args.order.judge_base_url.clone().filter(|url| !url.trim().is_empty()),
        user: args.order.user.user_or_variable(remote)?,
        user_base_url: args.order.user_base_url.clone().filter(|url| !url.trim().is_empty()),
        benchmarks,
        items: args
            .order
            .item
            .iter()
            .map(|item| item.trim().to_owned())
            .filter(|item| !item.is_empty())
            .collect(),
        subset: subset(args)?,
        settings: settings(args)?,
        base_url: args.order.base_url.clone().filter(|url| !url.trim().is_empty()),
        models: models(&named, &args.order.thinking_level, for_agent, args.dry_run, remote)?,
        datasets,
        tasks: task_archive::read_given(&args.order.task)?,
        agent: agent_files,
        demo: args.order.demo,
        budget: args.budget,
        price: args.order.price,
        labels: args.order.labels.labels()?,
    };
    if !plan.items.is_empty() && (plan.subset.count.is_some() || plan.subset.pct != 100) {
        return Err(
            Problem::usage("--item can't be given together with --subset-pct or --subset-count").into()
        );
    }
    Ok(plan)
}

/// Returns the only benchmark of an order for an agent without tasks.
fn benchmark_with_agent(benchmarks: &[String], flag: &str) -> anyhow::Result<&'static str> {
    let found = match benchmarks {
        [one] => bench_benchmarks::find(one).filter(|benchmark| benchmark.has_agent()),
        _ => None,
    };
    found.map(|benchmark| benchmark.name()).ok_or_else(|| {
        Problem::usage(format!("{flag} needs terminal tasks"))
            .hint("give them with --task PATH, or run --benchmark terminal_bench_hard alone")
            .into()
    })
}

/// Returns the benchmark of orders with tasks, which no other benchmark can be in.
fn only_tasks(args: &RunArgs) -> anyhow::Result<Vec<String>> {
    let others =
        args.order.benchmark.iter().any(|name| !name.trim().is_empty() && name.trim() != TERMINAL_TASKS);
    let problem = if others {
        "--task can't be given together with other benchmarks"
    } else if !args.order.dataset.is_empty() || args.order.demo {
        "--task can't be given together with --dataset or --demo: the tasks are the items"
    } else if args.order.item.iter().any(|item| !item.trim().is_empty()) {
        "--task can't be given together with --item: the tasks are the items"
    } else if args.dry_run {
        "--dry-run can't be given with --task: an episode is more than one prompt"
    } else {
        return Ok(vec![TERMINAL_TASKS.to_owned()]);
    };
    Err(Problem::usage(problem).into())
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
            // A server may have further benchmarks.
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
        return Err(Problem::usage(format!("--dataset: `{name}` is not among the benchmarks to run")).into());
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
            find_benchmark(name)?.name().parse().context("the name of the benchmark is invalid")?;
        if datasets.iter().any(|(known, _)| *known == name) {
            return Err(Problem::usage(format!("--dataset: `{name}` is given twice")).into());
        }
        let file = PathBuf::from(file);
        check_exists("--dataset", &file)?;
        datasets.push((name, file));
    }
    Ok(datasets)
}

/// Determines the subset. Options on the command line override variables.
fn subset(args: &RunArgs) -> anyhow::Result<Subset> {
    let given = |id: &str| args.given.iter().any(|given| given == id);
    let (pct, count) = match (given("subset_pct"), given("subset_count")) {
        (true, true) => {
            return Err(Problem::usage("--subset-pct and --subset-count can't be given together").into());
        }
        (true, false) => (args.order.subset_pct, None),
        (false, true) => (None, args.order.subset_count),
        (false, false) => (args.order.subset_pct, args.order.subset_count),
    };
    let subset = Subset::new(pct.unwrap_or(100), count, args.order.seed.as_deref());
    subset.map_err(|error| Problem::usage(error.to_string()).into())
}

/// Determines the generation settings. `--omit temperature` overrides a temperature from a variable.
fn settings(args: &RunArgs) -> anyhow::Result<OrderSettings> {
    let mut settings = args.order.settings.clone();
    let is_given = args.given.iter().any(|id| id == "temperature");
    if settings.omit.contains(&OmittedSetting::Temperature) && !is_given {
        settings.temperature = None;
    } else {
        settings.temperature = temperature(settings.temperature)?;
    }
    settings.check()?;
    Ok(settings)
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
    /// Returns the first benchmark that needs a judge, with its judging.
    pub(super) fn judged(&self) -> Option<(&str, &'static dyn Judging)> {
        self.benchmarks.iter().find_map(|name| {
            let benchmark = self.configured(name).ok()?;
            Some((name.as_str(), benchmark.judge()?))
        })
    }

    /// Returns the first benchmark whose items are conversations with a simulated user.
    pub(super) fn conversation(&self) -> Option<(&str, &'static dyn DialogueProtocol)> {
        self.benchmarks.iter().find_map(|name| {
            let benchmark = self.configured(name).ok()?;
            Some((name.as_str(), benchmark.dialogue()?))
        })
    }

    /// Lists the benchmarks that run answers in sandboxes, with what they need there.
    pub(super) fn executed(&self) -> impl Iterator<Item = (&str, &'static SandboxMetadata)> {
        self.benchmarks.iter().filter_map(|name| {
            let benchmark = self.configured(name).ok()?;
            Some((name.as_str(), benchmark.sandbox()?.metadata()))
        })
    }

    /// Returns the dataset of a benchmark: the file that was imported for it, else demo data or the hub's.
    pub(super) fn dataset_choice(
        &self,
        name: &str,
        imported: &BTreeMap<BenchmarkName, DatasetChoice>,
    ) -> DatasetChoice {
        let imported = imported.iter().find(|(benchmark, _)| benchmark.as_str() == name);
        let default = if self.demo { DatasetChoice::Demo } else { DatasetChoice::Hub };
        imported.map_or(default, |(_, choice)| choice.clone())
    }

    /// Looks up a benchmark under its ordered protocol and options.
    pub(super) fn configured(&self, name: &str) -> anyhow::Result<&'static dyn Benchmark> {
        configured(name, &self.protocols, &self.options)
    }

    /// Looks up a benchmark like [`Plan::configured`], and returns its non-default options, too.
    pub(super) fn configured_with_options(
        &self,
        name: &str,
    ) -> anyhow::Result<(&'static dyn Benchmark, Options)> {
        configured_with_options(name, &self.protocols, &self.options)
    }
}
