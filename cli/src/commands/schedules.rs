//! `bench schedules`.

mod args;
mod examples;
mod show;
mod unset;

use bench_domain::statistics::Interval;
use bench_domain::{Code, Timestamp, Visibility};
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use self::args::{AddArgs, EditArgs};
use super::order_settings::OrderSettings;
use super::{Api, ApiArgs, warn_of_ignored, with_api};
use crate::client::encode;
use crate::exit::{ExitStatus, Problem};
use crate::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench schedules
      lists all schedules with the result of their last run
  bench schedules add --name nightly --cron '30 2 * * *' \\
      --time-zone Europe/Berlin --model chutes/MODEL --benchmark mmlu_pro \\
      --subset-count 500 --budget-usd 5
  bench schedules add --name agents --cron '0 3 * * SUN' --task FOLDER \\
      --agent bash --model openrouter/MODEL
  bench schedules add --name own --cron '0 4 * * SUN' --task FOLDER \\
      --agent-folder ./my-agent
  bench schedules history nightly
      each run compared with the one before, on the same items
  bench schedules edit nightly --cron '0 4 * * MON-FRI'
  bench schedules disable nightly

Planned times have five fields: minute, hour, day of month, month, day of week.
  30 2 * * *        every night at 2:30    0 */6 * * *      every six hours
  0 4 * * MON-FRI   on weekdays at 4:00    15 3 1,15 * *    1st and 15th at 3:15
  0 22 * * SUN      on Sundays at 22:00    0 5 1 JAN,JUL *  twice a year
Two runs are at least 15 minutes apart. The time zone is a name such as UTC,
Europe/Berlin or America/New_York. If clocks skip a planned time, it runs right
after the gap; if they show the hour twice, it runs once. After an outage, the
latest missed time runs if it is less than six hours late; the others are listed
as missed.

Schedules of this machine run while `bench serve` runs; those of a server
(--server) run there. All runs of a schedule use the same items, so that each
can be compared with the one before. --webhook-url is called if a run is worse
than the one before, fails, takes too long or doesn't start.";

/// Number of schedules per request.
const SCHEDULES_PAGE: usize = 200;
/// Number of planned times per request.
const FIRINGS_PAGE: u64 = 200;
/// Minimum length of an id prefix that identifies a schedule.
const PREFIX_CHARS_MIN: usize = 4;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SchedulesArgs {
    #[command(subcommand)]
    command: Option<SchedulesCommand>,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// List only schedules of the caller
    #[arg(long)]
    mine: bool,
    #[command(flatten)]
    api: ApiArgs,
}

/// One schedule.
#[derive(Debug, Args)]
struct OneArgs {
    /// Name or id of the schedule, or at least 4 of the id's first characters
    schedule: String,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
struct HistoryArgs {
    /// Name or id of the schedule, or at least 4 of the id's first characters
    schedule: String,
    /// Maximum number of planned times to list, latest first
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    limit: u64,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Subcommand)]
enum SchedulesCommand {
    /// List all schedules; the default
    #[command(after_help = examples::LIST)]
    List(ListArgs),
    /// Show a schedule with its settings and next planned times
    #[command(after_help = examples::SHOW)]
    Show(OneArgs),
    /// Add a schedule
    #[command(after_help = EXAMPLES)]
    Add(Box<AddArgs>),
    /// Change the given settings of a schedule
    #[command(after_help = examples::EDIT)]
    Edit(Box<EditArgs>),
    /// Enable a schedule that was disabled
    #[command(after_help = examples::ENABLE)]
    Enable(OneArgs),
    /// Disable a schedule: it is kept, and starts no runs
    #[command(after_help = examples::DISABLE)]
    Disable(OneArgs),
    /// Remove a schedule with its key and history; its runs are kept
    #[command(after_help = examples::REMOVE)]
    Remove(OneArgs),
    /// List the past planned times of a schedule with their runs and scores
    #[command(after_help = examples::HISTORY)]
    History(HistoryArgs),
    /// Start a run of a schedule now, in addition to its planned times
    #[command(after_help = examples::RUN)]
    Run(OneArgs),
}

/// A schedule of `/api/schedules`.
#[derive(Debug, Clone, Deserialize)]
struct Schedule {
    id: String,
    name: String,
    cron: String,
    time_zone: String,
    enabled: bool,
    next_times: Vec<Timestamp>,
    model: String,
    benchmarks: Vec<String>,
    subset_pct: u32,
    subset_count: Option<u64>,
    subset_seed: Option<String>,
    items: Vec<String>,
    #[serde(default)]
    tasks: Vec<String>,
    #[serde(flatten)]
    settings: OrderSettings,
    demo: bool,
    #[serde(default)]
    protocols: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    benchmark_options: crate::commands::options::OptionsByBenchmark,
    #[serde(default)]
    judge: Option<crate::views::OrderedJudge>,
    #[serde(default)]
    user_model: Option<crate::views::OrderedJudge>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    notes: Option<String>,
    #[serde(default)]
    visibility: Visibility,
    budget_usd: Option<f64>,
    budget_tokens: Option<u64>,
    own_key: bool,
    has_webhook: bool,
    webhook_url: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    last: Option<Firing>,
}

/// A planned time of a schedule.
#[derive(Debug, Clone, Deserialize)]
struct Firing {
    planned_at: Timestamp,
    status: String,
    run_id: Option<String>,
    run_status: Option<String>,
    score: Option<f64>,
    error: Option<String>,
    #[serde(default, deserialize_with = "bench_domain::code::deserialize_known")]
    error_code: Option<Code>,
    overdue_at: Option<Timestamp>,
    #[serde(default)]
    missed_earlier: u64,
    comparison: Option<Comparison>,
}

#[derive(Debug, Clone, Deserialize)]
struct Comparison {
    regressed: bool,
    benchmarks: Vec<Difference>,
}

#[derive(Debug, Clone, Deserialize)]
struct Difference {
    benchmark_name: String,
    difference: Option<f64>,
    interval: Option<Interval>,
    regressed: bool,
}

#[derive(Debug, Deserialize)]
struct Page {
    schedules: Vec<Value>,
    next_offset: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct FiringsPage {
    firings: Vec<Value>,
    next_before: Option<String>,
}

pub(crate) async fn run(args: SchedulesArgs) -> anyhow::Result<ExitStatus> {
    match args.command.unwrap_or(SchedulesCommand::List(ListArgs { mine: false, api: args.api })) {
        SchedulesCommand::List(args) => list(&args.api, args.mine).await,
        SchedulesCommand::Show(one) => with_api(&one.api, async |api| show_one(api, &one).await).await,
        SchedulesCommand::Add(add) => with_api(add.api(), async |api| self::add(api, &add).await).await,
        SchedulesCommand::Edit(edit) => with_api(edit.api(), async |api| self::edit(api, &edit).await).await,
        SchedulesCommand::Enable(one) => with_api(&one.api, async |api| switch(api, &one, true).await).await,
        SchedulesCommand::Disable(one) => {
            with_api(&one.api, async |api| switch(api, &one, false).await).await
        }
        SchedulesCommand::Remove(one) => with_api(&one.api, async |api| remove(api, &one).await).await,
        SchedulesCommand::History(args) => with_api(&args.api, async |api| history(api, &args).await).await,
        SchedulesCommand::Run(one) => with_api(&one.api, async |api| run_now(api, &one).await).await,
    }
}

async fn list(args: &ApiArgs, mine: bool) -> anyhow::Result<ExitStatus> {
    if args.server.server().is_none() && !args.data.path()?.exists() {
        // A command that only reads creates no data directory.
        return print_all(&[], args.json).map(|()| ExitStatus::Success);
    }
    with_api(args, async |api| {
        let all = all(api, mine).await?;
        print_all(&all, args.json)?;
        if mine && all.is_empty() {
            api.client.hint_at_key();
        }
        Ok(())
    })
    .await
}

fn print_all(all: &[Value], json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&all);
    }
    if all.is_empty() {
        output::note("There are no schedules; `bench schedules add --help` shows how to add one");
        return Ok(());
    }
    let schedules: Vec<Schedule> =
        all.iter().map(|value| serde_json::from_value(value.clone())).collect::<Result<_, _>>()?;
    output::print_table(&show::list(&schedules))
}

async fn all(api: &Api, mine: bool) -> anyhow::Result<Vec<Value>> {
    let filter = if mine { "&mine=true" } else { "" };
    let mut all = Vec::new();
    let mut offset = 0;
    loop {
        let path = format!("/api/schedules?limit={SCHEDULES_PAGE}&offset={offset}{filter}");
        let page: Page = api.client.get(&path).await?;
        all.extend(page.schedules);
        match page.next_offset.filter(|next| *next > offset) {
            Some(next) => offset = next,
            None => return Ok(all),
        }
    }
}

/// Finds the schedule with this name, id or id prefix.
async fn resolve(api: &Api, given: &str) -> anyhow::Result<Value> {
    let given = given.trim();
    let all = all(api, false).await?;
    let field =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let by = |matches: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        all.iter().filter(|value| matches(value)).cloned().collect()
    };
    let shown: String = given.chars().take(80).collect();
    let candidates = [
        by(&|value| field(value, "id").eq_ignore_ascii_case(given)),
        by(&|value| field(value, "name") == given),
        by(&|value| {
            given.len() >= PREFIX_CHARS_MIN && field(value, "id").starts_with(&given.to_ascii_lowercase())
        }),
    ];
    match candidates.into_iter().find(|found| !found.is_empty()).as_deref() {
        None => Err(Problem::failure(format!("there is no schedule `{shown}`"))
            .hint("`bench schedules` lists the schedules")
            .into()),
        Some([only]) => Ok(only.clone()),
        Some(several) => {
            let ids: Vec<String> = several.iter().map(|value| field(value, "id")).collect();
            Err(Problem::usage(format!("`{shown}` means several schedules"))
                .hint(format!("give the id of one: {}", ids.join(", ")))
                .into())
        }
    }
}

async fn path_of(api: &Api, given: &str) -> anyhow::Result<(String, String)> {
    let value = resolve(api, given).await?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok((format!("/api/schedules/{}", encode(&text("id"))), text("name")))
}

async fn show_one(api: &Api, one: &OneArgs) -> anyhow::Result<()> {
    let value = resolve(api, &one.schedule).await?;
    print_one(&value, one.api.json)
}

fn print_one(value: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        output::json(value)
    } else {
        output::print_page(&show::detail(&serde_json::from_value(value.clone())?))
    }
}

async fn add(api: &Api, args: &AddArgs) -> anyhow::Result<()> {
    let body = args.body(&api.client).await?;
    let made: Value = api.client.post("/api/schedules", Some(&body)).await?;
    warn_of_ignored(&made);
    print_one(&made, args.api().json)?;
    if api.stack.is_some() {
        output::note("The schedule runs while `bench serve` uses this data directory");
    }
    Ok(())
}

async fn edit(api: &Api, args: &EditArgs) -> anyhow::Result<()> {
    let before: Schedule = serde_json::from_value(resolve(api, args.schedule()).await?)?;
    let body = args.body(&api.client, &before).await?;
    let path = format!("/api/schedules/{}", encode(&before.id));
    let changed: Value = api.client.patch(&path, &body).await?;
    warn_of_ignored(&changed);
    print_one(&changed, args.api().json)
}

async fn switch(api: &Api, one: &OneArgs, on: bool) -> anyhow::Result<()> {
    let (path, name) = path_of(api, &one.schedule).await?;
    let changed: Value = api.client.patch(&path, &json!({ "enabled": on })).await?;
    if one.api.json {
        return output::json(&changed);
    }
    let schedule: Schedule = serde_json::from_value(changed)?;
    output::print(&match schedule.next_times.first() {
        Some(next) => format!("Enabled {name}; next: {}", show::local(*next, &schedule.time_zone)),
        None => format!("Disabled {name}"),
    })
}

async fn remove(api: &Api, one: &OneArgs) -> anyhow::Result<()> {
    let (path, name) = path_of(api, &one.schedule).await?;
    let removed: Value = api.client.delete(&path).await?;
    if one.api.json {
        output::json(&removed)
    } else {
        output::print(&format!("Removed {name}; its runs are kept"))
    }
}

async fn history(api: &Api, args: &HistoryArgs) -> anyhow::Result<()> {
    let (path, _) = path_of(api, &args.schedule).await?;
    let mut all: Vec<Value> = Vec::new();
    let mut before = String::new();
    loop {
        let limit = (args.limit - all.len() as u64).min(FIRINGS_PAGE);
        let page: FiringsPage = api.client.get(&format!("{path}/firings?limit={limit}{before}")).await?;
        all.extend(page.firings);
        match page.next_before {
            Some(next) if (all.len() as u64) < args.limit => before = format!("&before={}", encode(&next)),
            _ => break,
        }
    }
    if args.api.json {
        return output::json(&all);
    }
    let firings: Vec<Firing> = all.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    if firings.is_empty() {
        output::note("The schedule has no past planned times");
        return Ok(());
    }
    output::print_table(&show::history(&firings))
}

async fn run_now(api: &Api, one: &OneArgs) -> anyhow::Result<()> {
    let (path, name) = path_of(api, &one.schedule).await?;
    let firing: Value = api.client.post(&format!("{path}/run-now"), None).await?;
    if one.api.json {
        return output::json(&firing);
    }
    let when = if api.stack.is_some() { "as soon as `bench serve` runs" } else { "within a minute" };
    output::print(&format!("{name} starts {when}; `bench schedules history {name}` shows the run"))
}
