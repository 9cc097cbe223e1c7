//! Commands, one file each.

mod access;
mod agents;
mod artifacts;
mod benchmarks;
mod cancel;
mod compare;
mod completions;
mod datasets;
mod doctor;
mod export;
mod interrupted;
pub(crate) mod judge;
mod keys;
pub(crate) mod labels;
mod leaderboard;
mod models;
mod ops;
pub(crate) mod options;
pub(crate) mod order_settings;
mod rejudge;
mod requeue;
mod run;
mod runs;
mod sandy;
mod schedules;
mod score;
mod serve;
mod tasks;
mod turns;
pub(crate) mod user_model;
mod verify;
mod view;

use std::path::Path;
use std::time::Duration;

use bench_domain::RunId;
use bench_state::Scope;
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::again;
use crate::client::{Client, ServerArgs};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem, plain};
use crate::helper_keys::HelperKeys;
use crate::output;
use bench_stack::{Stack, StackOptions};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run benchmarks on a model, show the scores, and write a signed archive
    #[command(after_help = run::help())]
    Run(Box<run::RunArgs>),
    /// Serve the page and the HTTP API on this machine
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::ServeArgs),
    /// Open the page in the browser, at a run or at a signed archive
    #[command(after_help = view::EXAMPLES)]
    View(view::ViewArgs),
    /// Grade stored responses, without asking a model
    #[command(after_help = score::EXAMPLES)]
    Score(score::ScoreArgs),
    /// Check who signed an archive, and that nothing in it was changed
    #[command(after_help = verify::EXAMPLES)]
    Verify(verify::VerifyArgs),
    /// Write the results of a run to a file
    #[command(after_help = export::EXAMPLES)]
    Export(export::ExportArgs),
    /// List, print or write what agents left: trajectories, terminals, test output
    #[command(after_help = artifacts::EXAMPLES)]
    Artifacts(artifacts::ArtifactsArgs),
    /// Show an agent's work on a task turn by turn, also while it works
    #[command(after_help = turns::EXAMPLES)]
    Turns(turns::TurnsArgs),
    /// Compare runs with a baseline, on the items that both have graded
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::CompareArgs),
    /// Rank models within one benchmark
    #[command(after_help = leaderboard::EXAMPLES)]
    Leaderboard(leaderboard::LeaderboardArgs),
    /// List runs, show one in detail, name and tag them, or delete them
    #[command(after_help = runs::EXAMPLES)]
    Runs(Box<runs::command::RunsCommandArgs>),
    /// Run benchmarks at planned times, such as every night
    #[command(after_help = schedules::EXAMPLES)]
    Schedules(schedules::SchedulesArgs),
    /// Stop runs; the results of finished samples are kept
    #[command(after_help = cancel::EXAMPLES)]
    Cancel(cancel::CancelArgs),
    /// Repeat the failed and missing samples of a run
    #[command(after_help = requeue::EXAMPLES)]
    Requeue(requeue::RequeueArgs),
    /// Grade the answers of a run again with another judge, without asking the model
    #[command(after_help = rejudge::EXAMPLES)]
    Rejudge(rejudge::RejudgeArgs),
    /// List benchmarks, or show one with its protocol and deviations
    #[command(after_help = benchmarks::EXAMPLES)]
    Benchmarks(benchmarks::BenchmarksArgs),
    /// List terminal tasks, check, store and remove them
    #[command(after_help = tasks::EXAMPLES)]
    Tasks(Box<tasks::TasksArgs>),
    /// List agents, check, upload, download and remove those of your own
    #[command(after_help = agents::EXAMPLES)]
    Agents(agents::AgentsArgs),
    /// List the models that can be run
    #[command(after_help = models::EXAMPLES)]
    Models(models::ModelsArgs),
    /// List, download and remove datasets on this machine
    #[command(after_help = datasets::EXAMPLES)]
    Datasets(datasets::DatasetsArgs),
    /// Show, rotate and pin the keys that sign and verify archives
    #[command(after_help = keys::EXAMPLES)]
    Keys(keys::KeysArgs),
    /// Manage who may order runs at a server: access tokens and permissions
    #[command(after_help = access::EXAMPLES)]
    Access(access::AccessArgs),
    /// Check what works on this machine, and how to fix what doesn't
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArgs),
    /// Serve sandboxes, where programs that models write run isolated
    #[command(after_help = sandy::EXAMPLES)]
    Sandy(Box<sandy::SandyArgs>),
    /// Show the state of a server: workers, queues, runs and tokens
    #[command(after_help = ops::EXAMPLES)]
    Ops(ops::OpsArgs),
    /// Print a script that completes commands and options in a shell
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Returns true if the command serves requests until it is stopped.
    pub(crate) const fn serves(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Sandy(_))
    }
}

/// Runs a command. `command_line` describes all of them.
pub(crate) async fn run(command: Command, command_line: fn() -> clap::Command) -> anyhow::Result<ExitStatus> {
    match command {
        Command::Run(args) => run::run(*args).await,
        Command::Serve(args) => serve::run(args).await,
        Command::View(args) => view::run(args).await,
        Command::Score(args) => score::run(args).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Export(args) => export::run(args).await,
        Command::Artifacts(args) => artifacts::run(args).await,
        Command::Turns(args) => turns::run(args).await,
        Command::Compare(args) => compare::run(args).await,
        Command::Leaderboard(args) => leaderboard::run(args).await,
        Command::Runs(args) => runs::command::run(*args).await,
        Command::Schedules(args) => schedules::run(args).await,
        Command::Cancel(args) => cancel::run(args).await,
        Command::Requeue(args) => requeue::run(args).await,
        Command::Rejudge(args) => rejudge::run(args).await,
        Command::Benchmarks(args) => benchmarks::run(args).await,
        Command::Tasks(args) => tasks::run(*args).await,
        Command::Agents(args) => agents::run(args).await,
        Command::Models(args) => models::run(args).await,
        Command::Datasets(args) => datasets::run(args).await,
        Command::Keys(args) => keys::run(args).await,
        Command::Access(args) => access::run(args).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Sandy(args) => sandy::run(*args).await,
        Command::Ops(args) => ops::run(args).await,
        Command::Completions(args) => completions::run(&args, command_line()),
    }
}

/// Options of a command that only calls the API: which one, and how its responses are printed.
#[derive(Debug, Args)]
pub(crate) struct ApiArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

/// Opens the API, calls `act`, and closes the API in any case.
async fn with_api(
    args: &ApiArgs,
    act: impl AsyncFnOnce(&Api) -> anyhow::Result<()>,
) -> anyhow::Result<ExitStatus> {
    let api = Api::open(&args.server, &args.data).await?;
    let done = act(&api).await;
    api.close().await;
    done.map(|()| ExitStatus::Success)
}

/// API that a command uses: of a server, or of the stack in a data directory.
struct Api {
    client: Client,
    stack: Option<Stack>,
}

impl Api {
    /// Connects to the server that was named, or opens the stack in the data directory, where no work is done.
    async fn open(server: &ServerArgs, data: &DataArgs) -> anyhow::Result<Self> {
        again::remember(server, data);
        if let Some(client) = server.client()? {
            return Ok(Self { client: client.with_helper_keys(HelperKeys::from_variables()), stack: None });
        }
        Self::open_with(data.options()?, server).await
    }

    /// Connects to the server, or opens the stack for orders that `bench serve` will work on.
    async fn open_for_server(server: &ServerArgs, data: &DataArgs) -> anyhow::Result<Self> {
        if server.server().is_some() {
            return Self::open(server, data).await;
        }
        Self::open_with(StackOptions { scope: Scope::Server, ..data.options()? }, server).await
    }

    async fn open_with(options: StackOptions, server: &ServerArgs) -> anyhow::Result<Self> {
        let key = server.named_key()?;
        let stack = Stack::open(options).await?;
        let client = Client::in_process(stack.router(), stack.embedded.data_dir().to_owned());
        let client = client.with_key(key).with_helper_keys(HelperKeys::from_variables());
        Ok(Self { client, stack: Some(stack) })
    }

    async fn close(self) {
        if let Some(stack) = self.stack {
            stack.stop(Duration::ZERO).await;
        }
    }
}

/// Reports a run that doesn't exist.
fn no_such_run(run: RunId) -> Problem {
    Problem::failure(format!("there is no run `{run}`")).hint("`bench runs` lists the runs")
}

/// Checks that a file named by an option exists.
fn check_exists(option: &str, file: &Path) -> anyhow::Result<()> {
    if !matches!(file.try_exists(), Ok(false)) {
        // Code that opens the file reports any other problem.
        return Ok(());
    }
    Err(Problem::usage(format!("{option}: there is no file `{}`", file.display()))
        .hint("relative paths start in the current folder")
        .into())
}

/// Rejects a file path in a missing folder. A path that ends in a separator names a folder.
fn check_folder_of(option: &str, file: &Path) -> anyhow::Result<()> {
    let names_folder = file.as_os_str().to_string_lossy().ends_with(std::path::MAIN_SEPARATOR);
    let folder = if names_folder { Some(file) } else { file.parent() };
    match folder.filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(missing) => Err(Problem::usage(format!("{option}: there is no folder `{}`", missing.display()))
            .hint(format!("create it with `mkdir -p {}`", missing.display()))
            .into()),
        None => Ok(()),
    }
}

/// Rejects a file that exists already, unless the user wants to replace it.
fn check_not_there(option: &str, file: &Path, force: bool) -> anyhow::Result<()> {
    if force || !file.is_file() {
        return Ok(());
    }
    Err(Problem::usage(format!("{option}: the file `{}` exists already", file.display()))
        .hint("give another name, or --force to replace it")
        .into())
}

/// Warns about parts of an order or schedule that the server ignored: unknown benchmarks and fields without effect.
fn warn_of_ignored(saved: &Value) {
    let texts = |name: &str| {
        let listed = saved.get(name).and_then(Value::as_array).into_iter().flatten();
        listed.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let names = texts("ignored_benchmarks");
    if !names.is_empty() {
        output::warn(&format!("unknown benchmarks are left out: {}", names.join(", ")));
    }
    texts("warnings").iter().for_each(|warning| output::warn(&plain(warning)));
}

/// Looks up a benchmark by name.
fn find_benchmark(name: &str) -> anyhow::Result<&'static dyn bench_benchmarks::Benchmark> {
    let known = name.parse::<bench_domain::BenchmarkName>().ok();
    known.and_then(|name| bench_benchmarks::find_named(&name)).ok_or_else(|| {
        let all = bench_benchmarks::all().iter();
        let names: Vec<String> = all.map(|benchmark| benchmark.metadata().listed_name()).collect();
        let shown: String = name.chars().take(64).collect();
        Problem::usage(format!("unknown benchmark `{shown}`"))
            .hint(format!("known benchmarks are {}; `bench benchmarks` describes them", names.join(", ")))
            .into()
    })
}
