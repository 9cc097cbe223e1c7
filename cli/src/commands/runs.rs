//! `bench runs`.

use bench_domain::{Code, RunId, RunStatus};
use clap::Args;
use comfy_table::Cell;
use serde::Deserialize;
use serde_json::Value;

use super::Api;
use super::interrupted;
use super::run::failure;
use crate::client::{ServerArgs, encode};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem};
use crate::refusal::Refusal;
use crate::show::number;
use crate::views::{Event, Item, Judgings, Run, RunsPage};
use crate::{format, output, show};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench runs                           newest runs first, and how to continue
                                       interrupted ones
  bench runs --status failed --model deepseek --json
  bench runs RUN                       one run with its scores and judgings
  bench runs RUN --items               each sample: outcome, score, answer
  bench runs RUN --events              the events of the run, in order
  bench runs --server http://127.0.0.1:3000";

/// Number of samples per page, the API's maximum.
const ITEMS_PAGE: usize = 500;
/// Number of events per page.
const EVENTS_PAGE: usize = 1_000;
/// Number of runs per page.
const RUNS_PAGE: u64 = 200;
/// Maximum number of characters of a text in a table.
const CELL_CHARS_MAX: usize = 60;

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Run to show in detail
    #[arg(value_parser = super::parse_run)]
    run: Option<RunId>,
    /// Show the samples of the run
    #[arg(long, requires = "run")]
    items: bool,
    /// Show only the samples of this benchmark
    #[arg(long, value_name = "NAME", requires = "run")]
    benchmark: Option<String>,
    /// Show the events of the run
    #[arg(long, requires = "run", conflicts_with = "items")]
    events: bool,
    /// List only runs with this status: queued, running, succeeded, failed or canceled
    #[arg(long, value_name = "STATUS", value_parser = parse_status, conflicts_with = "run")]
    status: Option<RunStatus>,
    /// List only runs whose model name contains this text
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    model: Option<String>,
    /// Maximum number of runs to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    limit: u64,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON: an array of runs, newest first; with RUN, an object; with --items or --events, an array
    #[arg(long, help_heading = None)]
    json: bool,
}

fn parse_status(text: &str) -> Result<RunStatus, String> {
    let known = || RunStatus::ALL.map(RunStatus::as_str).join(", ");
    RunStatus::from_name(&text.to_lowercase()).ok_or_else(|| format!("it must be one of {}", known()))
}

pub(crate) async fn run(args: RunsArgs) -> anyhow::Result<ExitStatus> {
    if args.server.server().is_none() && !args.data.path()?.exists() {
        // A command that only reads creates no data directory.
        return match args.run {
            Some(run) => Err(super::no_such_run(run).into()),
            None => list(&[], 0, args.json).map(|()| ExitStatus::Success),
        };
    }
    let api = Api::open(&args.server, &args.data).await?;
    let shown = show_runs(&api, &args).await;
    api.close().await;
    shown.map(|()| ExitStatus::Success)
}

async fn show_runs(api: &Api, args: &RunsArgs) -> anyhow::Result<()> {
    let Some(run) = args.run else {
        let (runs, total) = newest(api, args).await?;
        list(&runs, total, args.json)?;
        interrupted::print(&runs, api.client.address());
        return Ok(());
    };
    if args.events {
        return events(api, run, args.json).await;
    }
    let found: Run = api.client.get(&format!("/api/runs/{run}")).await?;
    if let Some(name) = &args.benchmark
        && !found.benchmarks.iter().any(|benchmark| benchmark.benchmark_name == *name)
    {
        return Err(Problem::usage(format!("run {run} has no benchmark `{name}`"))
            .hint(format!("`bench runs {run}` shows its benchmarks"))
            .into());
    }
    match (args.items, args.json) {
        (true, json) => items(api, &found, args.benchmark.as_deref(), json).await,
        (false, true) => output::json(&found.summary()),
        (false, false) => {
            let mut causes = Vec::new();
            for benchmark in &found.benchmarks {
                let name = &benchmark.benchmark_name;
                let lines = failure::error_causes(&api.client, &found, benchmark).await;
                causes.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
            }
            detail(&found, versions(api, run).await?.as_ref(), &causes)
        }
    }
}

async fn newest(api: &Api, args: &RunsArgs) -> anyhow::Result<(Vec<Run>, u64)> {
    let mut filter = String::new();
    if let Some(status) = args.status {
        filter.push_str(&format!("&status={status}"));
    }
    if let Some(model) = &args.model {
        filter.push_str(&format!("&model_slug={}", encode(model)));
    }
    let mut runs = Vec::new();
    loop {
        let offset = runs.len() as u64;
        let limit = (args.limit - offset).min(RUNS_PAGE);
        let page: RunsPage =
            api.client.get(&format!("/api/runs?limit={limit}&offset={offset}{filter}")).await?;
        let is_last = page.runs.is_empty();
        runs.extend(page.runs);
        let have = runs.len() as u64;
        if is_last || have >= page.total || have >= args.limit {
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
    output::print(&show::runs(runs).to_string())?;
    let shown = runs.len() as u64;
    if total > shown {
        output::note(&format!("{} of {}; see --limit", format::count(shown), format::plural(total, "run")));
    }
    Ok(())
}

/// Returns the run's judgings if there is more than one. Older servers have no judgings, and deleting the original run
/// deletes the list.
async fn versions(api: &Api, run: RunId) -> anyhow::Result<Option<Judgings>> {
    match api.client.get::<Judgings>(&format!("/api/runs/{run}/judgings")).await {
        Ok(found) => Ok((found.judgings.len() > 1).then_some(found)),
        Err(error) => match error.downcast_ref::<Refusal>().and_then(Refusal::code) {
            Some(Code::RouteNotFound | Code::RunNotFound | Code::RunDeleted) => Ok(None),
            _ => Err(error),
        },
    }
}

fn detail(run: &Run, versions: Option<&Judgings>, causes: &[String]) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    let mut field = |name: &str, value: Option<String>| {
        lines.extend(value.map(|value| format!("{:<12}{value}", format!("{name}:"))));
    };
    field("run", Some(run.id.clone()));
    field("model", Some(run.located_model()));
    field("status", Some(show::status(run)));
    field("error", run.error_message.clone());
    let rejudges = run.rejudges.as_ref();
    field("judges", rejudges.map(|of| format!("answers of run {}, version {}", of.run, of.version)));
    field("score", run.overall_score.map(|_| run.overall()));
    field("coverage", run.coverage.map(|coverage| format::percent(Some(coverage))));
    let seed = run.subset_seed.as_ref().map_or_else(String::new, |seed| format!(", seed {seed}"));
    field(
        "items",
        match (run.subset_count, run.subset_pct) {
            (Some(count), _) => Some(format!("{}{seed}", format::count(count))),
            (None, 1..=99) => Some(format!("{}%{seed}", run.subset_pct)),
            _ => None,
        },
    );
    field("cost", run.cost.map(|cost| format::dollars(cost.total_usd)));
    field("created", Some(run.created_at.to_string()));
    field("started", run.started_at.map(|time| time.to_string()));
    field("completed", run.completed_at.map(|time| time.to_string()));
    for benchmark in &run.benchmarks {
        let name = &benchmark.benchmark_name;
        field("protocol", benchmark.protocol.as_ref().map(|protocol| format!("{name}: {protocol}")));
        let options = Some(crate::commands::options::format_options(&benchmark.options));
        let options = options.filter(|listed| !listed.is_empty());
        field("options", options.map(|options| format!("{name}: {options}")));
        field("made by", show::facts(benchmark).map(|facts| format!("{name}: {facts}")));
        field("samples", show::sampled(benchmark).map(|sampled| format!("{name}: {sampled}")));
        field("error", benchmark.error_message.as_ref().map(|error| format!("{name}: {error}")));
        let note = benchmark.dataset.as_ref().and_then(|dataset| dataset.note.as_ref());
        field("note", note.map(|note| format!("{name}: {note}")));
    }
    causes.iter().for_each(|cause| field("errors", Some(cause.clone())));
    let resume = format!("`bench run --resume {}`", run.id);
    if run.interrupted {
        field("resume", Some(format!("{resume} continues the run")));
    } else if run.status == RunStatus::Succeeded && run.infrastructure_errors() > 0 {
        field("resume", Some(format!("{resume} repeats the infrastructure-errors")));
    }
    if let Some(banner) = show::demo_banner(std::slice::from_ref(run)) {
        lines.push(banner);
    }
    output::print(&lines.join("\n"))?;
    output::print(&show::results(std::slice::from_ref(run)).to_string())?;
    match versions {
        Some(versions) => output::print(&show::judgings(versions).to_string()),
        None => Ok(()),
    }
}

/// A page of `/api/runs/{id}/benchmarks/{name}`.
#[derive(Debug, Deserialize)]
struct Details {
    items: ItemsPage,
}

#[derive(Debug, Deserialize)]
struct ItemsPage {
    items: Vec<Value>,
    total: u64,
}

async fn items(api: &Api, run: &Run, only: Option<&str>, json: bool) -> anyhow::Result<()> {
    let mut all = Vec::new();
    let mut table = show::table(&[
        "benchmark",
        "item",
        "source id",
        "sample",
        "outcome",
        "score",
        "extracted",
        "expected",
        "latency",
        "reason",
    ]);
    let names = run.benchmarks.iter().map(|benchmark| benchmark.benchmark_name.as_str());
    for name in names.filter(|name| only.is_none_or(|only| only == *name)) {
        let mut offset = 0;
        loop {
            let path = format!("/api/runs/{}/benchmarks/{name}?limit={ITEMS_PAGE}&offset={offset}", run.id);
            let page: Details = api.client.get(&path).await?;
            // A server may end a page early to limit its size.
            offset += page.items.items.len();
            let is_last = page.items.items.is_empty() || offset as u64 >= page.items.total;
            for mut item in page.items.items {
                if json {
                    if let Value::Object(fields) = &mut item {
                        fields.insert("benchmark".to_owned(), name.into());
                    }
                    all.push(item);
                } else {
                    table.add_row(row(name, serde_json::from_value(item)?));
                }
            }
            if is_last {
                break;
            }
        }
    }
    if json { output::json(&all) } else { output::print(&table.to_string()) }
}

fn row(benchmark: &str, item: Item) -> Vec<Cell> {
    let cut = |text: Option<String>| {
        let text = text.unwrap_or_default();
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(CELL_CHARS_MAX) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
            None => line,
        }
    };
    vec![
        Cell::new(benchmark),
        Cell::new(item.item_id),
        Cell::new(item.source_id.unwrap_or_else(|| "-".to_owned())),
        number(item.sample),
        Cell::new(item.outcome.unwrap_or_else(|| "open".to_owned())),
        number(item.score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"))),
        Cell::new(cut(item.extracted)),
        Cell::new(cut(item.expected)),
        number(item.latency_ms.map_or_else(|| "-".to_owned(), |ms| format::milliseconds(ms as f64))),
        Cell::new(cut(item.reason.filter(|reason| !reason.is_empty()).or(item.error))),
    ]
}

/// A page of `/api/runs/{id}/events`.
#[derive(Debug, Deserialize)]
struct Events {
    events: Vec<Value>,
    cursor: String,
}

async fn events(api: &Api, run: RunId, json: bool) -> anyhow::Result<()> {
    let mut all = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let path = format!("/api/runs/{run}/events?limit={EVENTS_PAGE}&cursor={}", encode(&cursor));
        let page: Events = api.client.get(&path).await?;
        if page.events.is_empty() {
            break;
        }
        all.extend(page.events);
        cursor = page.cursor;
    }
    if json {
        return output::json(&all);
    }
    let mut table = show::table(&["n", "time (UTC)", "event", "benchmark", "message"]);
    for event in all {
        let event: Event = serde_json::from_value(event)?;
        table.add_row(vec![
            number(event.sequence),
            Cell::new(event.created_at.whole_seconds().to_string()),
            Cell::new(event.event_type),
            Cell::new(event.benchmark_name.unwrap_or_default()),
            Cell::new(event.message),
        ]);
    }
    output::print(&table.to_string())
}
