//! `bench rejudge`.

use bench_domain::statistics::PairedComparison;
use bench_domain::{Code, RunId};
use bench_runs::{Orders, RejudgeOrder, RunError, Standing};
use bench_state::Scope;
use clap::Args;
use comfy_table::Cell;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::judge::{JudgeArgs, judge_key};
use super::run::budget::BudgetArgs;
use super::run::checks::check_named_judge;
use super::run::{Session, WorkArgs, results};
use crate::client::{Client, ServerArgs};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem};
use crate::refused::Refused;
use crate::show::number;
use crate::views::{Judgings, Run};
use crate::{format, output, show};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench rejudge RUN --judge-model openrouter/JUDGE
      another judge for the answers that the run has; the model is not asked again
  bench rejudge RUN --judge-temperature 0.7 --judge-seed 2
      the same judge with other settings: how much do its verdicts depend on chance?
  bench rejudge RUN --judge-model chutes/JUDGE --server https://bench.example --api-key-env BENCH_KEY
  bench runs RUN                             all versions of its judging, with their scores

What comes out is a run of its own with the next version of the judging. The old one stays as it is, and both are
compared at the end. A key of one's own for the judge comes from BENCH_JUDGE_API_KEY.";

#[derive(Debug, Args)]
pub(crate) struct RejudgeArgs {
    /// The run whose answers are judged
    #[arg(value_parser = super::parse_run)]
    run: RunId,
    #[command(flatten)]
    judge: JudgeArgs,
    /// Where the judge's provider answers, when that is not its usual address
    #[arg(long, env = "BENCH_JUDGE_BASE_URL", value_name = "URL")]
    judge_base_url: Option<String>,
    #[command(flatten)]
    budget: BudgetArgs,
    /// Only put it into the queue, for `bench serve`
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON: an array with the new run; what changed is told by `bench compare`
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: RejudgeArgs) -> anyhow::Result<ExitStatus> {
    let remote = args.server.server().is_some();
    let judge = args.judge.judge(remote)?;
    let base_url = args.judge_base_url.clone().filter(|url| !url.trim().is_empty());
    if remote && base_url.is_some() {
        let message =
            "--judge-base-url cannot be sent to a server: addresses are taken from the command line only";
        return Err(Problem::usage(message).hint("leave --server out").into());
    }
    let (key, judge_key) = (args.server.named_key()?, judge_key());
    if let Some(named) = judge.named.as_ref().filter(|_| !remote) {
        check_named_judge(named, base_url.as_deref(), judge_key.as_ref().or(key.as_ref()))?;
    }
    let mut body = args.budget.body().and_then(|body| body.as_object().cloned()).unwrap_or_default();
    body.extend(judge.body().map(|judge| ("judge".to_owned(), judge)));
    if !remote && !args.data.path()?.exists() {
        // A command that only reads creates no data directory.
        return Err(no_such_run(args.run).into());
    }
    if !args.detach {
        results::check_folder(&args.work.out)?;
    }
    // A detached run is left in the queue for `bench serve`.
    let scope = if args.detach { Scope::Server } else { Scope::Foreground };
    let session = Session::open_in(scope, &args.work, &args.server, &args.data).await?;
    let ordered = match (session.orders(), base_url) {
        // Only the command line may set the judge's address. Requests can't.
        (Some(orders), Some(base_url)) => {
            let order = RejudgeOrder {
                judge: judge.order().unwrap_or_default(),
                budget: args.budget.budget(),
                base_url: Some(base_url),
                api_key: key,
                judge_key,
                idempotency_key: None,
                warnings: Vec::new(),
            };
            order_here(orders, args.run, order).await
        }
        _ => order(&session.client, args.run, body).await,
    };
    match ordered {
        Ok(made) if args.detach => {
            session.close(std::time::Duration::ZERO).await;
            match args.json {
                true => output::json(&json!({ "id": made, "status": "queued" }))?,
                false => output::print(&format!("Queued {made}"))?,
            }
            Ok(ExitStatus::Success)
        }
        Ok(made) => {
            let (first, json) = (args.run, args.json);
            let show =
                async |client: &Client| if json { Ok(()) } else { side_by_side(client, first, made).await };
            session.work_and(&[made], true, &args.work, json, show).await
        }
        Err(error) => {
            session.close(std::time::Duration::ZERO).await;
            Err(error)
        }
    }
}

async fn order(client: &Client, run: RunId, body: Map<String, Value>) -> anyhow::Result<RunId> {
    let made = client.post(&format!("/api/runs/{run}/rejudge"), Some(&Value::Object(body))).await;
    let made: Run = made.map_err(|error| match error.downcast_ref::<Refused>() {
        Some(refused) if refused.code() == Some(Code::RunNotFound) => no_such_run(run).into(),
        _ => error,
    })?;
    let id: RunId = made.id.parse().map_err(|_| Problem::failure("the server's answer names no run"))?;
    let version = made.rejudges.as_ref().map_or(0, |rejudges| rejudges.version);
    let judge = made.judge.as_ref().map_or("-", |judge| judge.model.as_str());
    tell(id, run, judge, version);
    Ok(id)
}

async fn order_here(orders: &Orders, run: RunId, order: RejudgeOrder) -> anyhow::Result<RunId> {
    let made = orders.rejudge(run, order, Standing::Local, None).await;
    let made = made.map_err(|error| match error {
        RunError::RunNotFound => no_such_run(run),
        error => Problem::failure(error.to_string()),
    })?;
    let spec = &made.run.run.spec;
    let version = spec.rejudges.map_or(0, |rejudges| rejudges.version);
    let judge = spec.judge.as_ref().map_or_else(|| "-".to_owned(), |judge| judge.model.qualified());
    tell(spec.id, run, &judge, version);
    Ok(spec.id)
}

fn tell(made: RunId, first: RunId, judge: &str, version: u32) {
    output::note(&format!("Run {made}: answers of run {first} judged by {judge}, version {version}"));
}

fn no_such_run(run: RunId) -> Problem {
    Problem::failure(format!("there is no run {run}; `bench runs` lists them"))
}

/// Fields of a comparison that are shown.
#[derive(Debug, Deserialize)]
struct Comparison {
    benchmarks: Vec<Benchmark>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Benchmark {
    benchmark_name: String,
    score_a: Option<f64>,
    score_b: Option<f64>,
    #[serde(flatten)]
    paired: PairedComparison,
}

/// Prints the new scores beside the old ones. Skips a run that is still open, or that failed before it was planned.
async fn side_by_side(client: &Client, old: RunId, new: RunId) -> anyhow::Result<()> {
    let found: Run = client.get(&format!("/api/runs/{new}")).await?;
    if found.status.is_open() || found.benchmarks.iter().all(|benchmark| benchmark.planned_samples == 0) {
        return Ok(());
    }
    let compared: Comparison = client.get(&format!("/api/runs/{old}/compare/{new}")).await?;
    let judgings: Judgings = client.get(&format!("/api/runs/{new}/judgings")).await?;
    let name = |run: RunId| {
        let found = judgings.judgings.iter().find(|judging| judging.run_id == run.to_string());
        found.map_or_else(|| run.to_string(), |judging| format!("version {}", judging.version))
    };
    let (old_name, new_name) = (name(old), name(new));
    let mut table = show::table(&[
        "benchmark",
        &old_name,
        &new_name,
        "new − old (95 % interval)",
        "items",
        "now right",
        "now wrong",
        "p",
    ]);
    for Benchmark { benchmark_name, score_a, score_b, paired } in &compared.benchmarks {
        table.add_row(vec![
            Cell::new(benchmark_name),
            number(format::percent(*score_a)),
            number(format::percent(*score_b)),
            number(super::compare::difference(paired)),
            number(format::count(paired.items)),
            number(format::count(paired.only_b_right)),
            number(format::count(paired.only_a_right)),
            number(paired.mcnemar_p.map_or_else(|| "-".to_owned(), super::compare::p_value)),
        ]);
    }
    output::print(&table.to_string())?;
    output::print("Over the items that both have graded; p by the exact McNemar test.")
}
