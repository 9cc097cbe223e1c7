//! `bench runs`.

pub(crate) mod command;
mod delete;
mod detail;
mod edit;
mod events;
mod items;
mod metrics;
mod sample;

use bench_domain::{Outcome, RunId, RunStatus};
use clap::Args;

use self::items::Filter;
use super::interrupted;
use super::labels::parse_tag;
use super::run::failure;
use super::{Api, ApiArgs};
use crate::client::{ServerArgs, encode};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem};
use crate::run_ref::RunRef;
use crate::views::{Run, RunsPage};
use crate::{format, output, show};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench runs                           newest runs first, and how to continue
                                       interrupted ones
  bench runs --status failed --model deepseek --json
  bench runs --tag exp-7 --tag law     runs with both tags
  bench runs latest                    one run with its scores, its metrics by
                                       group, and its judgings
  bench runs 3f2b8c1e --items          each sample: outcome, score, answer
  bench runs 3f2b8c1e --items --outcome incorrect,unparsed --group math
  bench runs 3f2b8c1e --item 70        one sample to read: prompt, reasoning,
                                       answer, verdict
  bench runs 3f2b8c1e --events         the events of the run, in order
  bench runs edit RUN --name baseline --tag exp-7
  bench runs delete RUN
  bench runs --server http://127.0.0.1:3000

A run is named by its id, by the first digits of its id, at least 4, or as
`latest`. Tables leave out columns where a terminal is too narrow, and say
which; piped output has all of them, and is as wide as its content needs.";

/// Number of runs per page.
const RUNS_PAGE: u64 = 200;
/// Default maximum number of runs to list.
const RUNS_LISTED: u64 = 50;

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Run to show in detail: its id, the first digits of its id, or `latest`
    run: Option<RunRef>,
    /// Show the samples of the run
    #[arg(long, requires = "run")]
    items: bool,
    /// Show only samples with these outcomes, such as incorrect,unparsed
    #[arg(long, value_name = "OUTCOME", value_delimiter = ',', value_parser = parse_outcome, requires = "items")]
    outcome: Vec<Outcome>,
    /// Show only samples of items in this group, such as a category
    #[arg(long, value_name = "GROUP", requires = "items")]
    group: Option<String>,
    /// Show the whole prompt, answer and verdict of this item, given by the dataset's own id, such as its question_id, or
    /// by the index of its row, from 0, as '#12'
    #[arg(long, value_name = "ID", requires = "run", conflicts_with = "items")]
    item: Option<String>,
    /// Sample of the item to show, from 1 [default: 1]
    #[arg(long, value_name = "K", requires = "item", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// Show only the samples of this benchmark
    #[arg(long, value_name = "NAME", requires = "run")]
    benchmark: Option<String>,
    /// Show the events of the run
    #[arg(long, requires = "run", conflicts_with_all = ["items", "item"])]
    events: bool,
    /// List only runs with this status: queued, running, interrupted, succeeded, failed or canceled. Interrupted runs are
    /// also queued or running
    #[arg(long, value_name = "STATUS", value_parser = parse_status, conflicts_with = "run")]
    status: Option<String>,
    /// List only runs whose model name contains this text
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    model: Option<String>,
    /// List only runs with this tag; repeat for runs that have several
    #[arg(long, value_name = "TAG", value_delimiter = ',', value_parser = parse_tag, conflicts_with = "run")]
    tag: Vec<String>,
    /// List only runs whose own name contains this text
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    name: Option<String>,
    /// List only runs of the caller
    #[arg(long, conflicts_with = "run")]
    mine: bool,
    /// Maximum number of runs, or of samples, to list [default: 50 runs, all samples]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    limit: Option<u64>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON: an array of runs, newest first; with RUN or --item, an object; with --items or --events, an array
    #[arg(long, help_heading = None)]
    json: bool,
}

impl RunsArgs {
    /// Returns true if only some runs are listed.
    const fn is_filtered(&self) -> bool {
        self.status.is_some()
            || self.model.is_some()
            || !self.tag.is_empty()
            || self.name.is_some()
            || self.mine
    }
}

/// Status of open runs whose process has ended, in lists.
const INTERRUPTED: &str = "interrupted";

/// Returns the names of statuses in lists.
pub(super) fn statuses() -> impl Iterator<Item = &'static str> {
    RunStatus::ALL.into_iter().map(RunStatus::as_str).chain([INTERRUPTED])
}

fn parse_status(text: &str) -> Result<String, String> {
    let status = text.trim().to_lowercase();
    match RunStatus::from_name(&status).is_some() || status == INTERRUPTED {
        true => Ok(status),
        false => {
            let known = RunStatus::ALL.map(RunStatus::as_str).join(", ");
            Err(format!("it must be one of {known}, {INTERRUPTED}"))
        }
    }
}

fn parse_outcome(text: &str) -> Result<Outcome, String> {
    let known = || Outcome::ALL.map(Outcome::as_str).join(", ");
    Outcome::from_name(&text.trim().to_lowercase()).ok_or_else(|| format!("it must be one of {}", known()))
}

pub(crate) async fn run(args: RunsArgs) -> anyhow::Result<ExitStatus> {
    if args.server.server().is_none() && !args.data.path()?.exists() {
        // A command that only reads creates no data directory.
        return match &args.run {
            _ if args.data.is_named() => Err(args.data.missing()?.into()),
            Some(run) => Err(run.missing().into()),
            None if args.json => list(&[], 0, true).map(|()| ExitStatus::Success),
            None => {
                output::note(&format!(
                    "There are no runs: the data directory `{}` does not exist; `bench run --model oracle --demo` creates it",
                    args.data.path()?.display()
                ));
                Ok(ExitStatus::Success)
            }
        };
    }
    let api = Api::open(&args.server, &args.data).await?;
    let shown = show_runs(&api, &args).await;
    api.close().await;
    shown.map(|()| ExitStatus::Success)
}

/// Returns false if the runs would be in a data directory that doesn't exist. Commands that change runs don't create it.
fn exists_here(args: &ApiArgs) -> anyhow::Result<bool> {
    Ok(args.server.server().is_some() || args.data.path()?.exists())
}

async fn show_runs(api: &Api, args: &RunsArgs) -> anyhow::Result<()> {
    let Some(run) = &args.run else {
        let (runs, total) = newest(api, args).await?;
        if runs.is_empty() && args.is_filtered() && !args.json {
            output::note("No run matches; `bench runs` lists all runs");
        } else {
            list(&runs, total, args.json)?;
            interrupted::print(&runs, None);
        }
        if args.mine && runs.is_empty() {
            api.client.hint_at_key();
        }
        return Ok(());
    };
    let run = run.resolve(&api.client).await?;
    if args.events {
        return events::show(api, run, args.json).await;
    }
    let found: Run = api.client.get(&format!("/api/runs/{run}")).await?;
    let benchmarks = benchmarks(&found, args.benchmark.as_deref())?;
    if let Some(item) = &args.item {
        return sample::show(api, &found, &benchmarks, item, args.sample, args.json).await;
    }
    if args.items {
        let filter = Filter { outcomes: args.outcome.clone(), group: args.group.clone() };
        return items::show(api, &found, &benchmarks, &filter, args.limit, args.json).await;
    }
    if args.json {
        return output::json(&found.summary());
    }
    show_detail(api, run, &found).await
}

async fn show_detail(api: &Api, run: RunId, found: &Run) -> anyhow::Result<()> {
    let mut causes = Vec::new();
    for benchmark in &found.benchmarks {
        let name = benchmark.listed_name();
        let lines = failure::error_causes(&api.client, found, benchmark).await;
        causes.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
    }
    let judgings = detail::judgings(&api.client, run).await?;
    let changes = match found.status {
        RunStatus::Succeeded => failure::change_advice(&api.client, found).await,
        _ => Vec::new(),
    };
    output::print_page(&detail::page(found, judgings.as_ref(), &causes, &changes))
}

/// Returns the names of the run's benchmarks, or only the one that the command line names.
fn benchmarks(run: &Run, only: Option<&str>) -> anyhow::Result<Vec<String>> {
    let only_name = only.map(show::benchmark_id);
    let names = run.benchmarks.iter().map(|benchmark| benchmark.benchmark_name.clone());
    let named: Vec<String> =
        names.filter(|name| only_name.as_ref().is_none_or(|only| only == name)).collect();
    match only {
        Some(only) if named.is_empty() => {
            let names = run.benchmarks.iter().map(|benchmark| format!("`{}`", benchmark.benchmark_name));
            let names = names.collect::<Vec<_>>().join(", ");
            Err(Problem::usage(format!("run {} has no benchmark `{only}`; it has {names}", run.id)).into())
        }
        _ => Ok(named),
    }
}

async fn newest(api: &Api, args: &RunsArgs) -> anyhow::Result<(Vec<Run>, u64)> {
    let mut filter = String::new();
    if let Some(status) = &args.status {
        filter.push_str(&format!("&status={status}"));
    }
    if let Some(model) = &args.model {
        filter.push_str(&format!("&model_slug={}", encode(model)));
    }
    if !args.tag.is_empty() {
        filter.push_str(&format!("&tag={}", encode(&args.tag.join(","))));
    }
    if let Some(name) = &args.name {
        filter.push_str(&format!("&name={}", encode(name)));
    }
    if args.mine {
        filter.push_str("&mine=true");
    }
    let wanted = args.limit.unwrap_or(RUNS_LISTED);
    let mut runs = Vec::new();
    loop {
        let offset = runs.len() as u64;
        let limit = (wanted - offset).min(RUNS_PAGE);
        let page: RunsPage =
            api.client.get(&format!("/api/runs?limit={limit}&offset={offset}{filter}")).await?;
        let is_last = page.runs.is_empty();
        runs.extend(page.runs);
        let have = runs.len() as u64;
        if is_last || have >= page.total || have >= wanted {
            return Ok((runs, page.total));
        }
    }
}

fn list(runs: &[Run], total: u64, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&runs.iter().map(Run::summary).collect::<Vec<_>>());
    }
    if runs.is_empty() {
        output::note("There are no runs; `bench run --model oracle --demo` starts one");
        return Ok(());
    }
    output::print_page(&show::runs(runs))?;
    let shown = runs.len() as u64;
    if total > shown {
        output::note(&format!("{} of {}; see --limit", format::count(shown), format::plural(total, "run")));
    }
    Ok(())
}
