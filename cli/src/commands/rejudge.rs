//! `bench rejudge`.

use bench_domain::statistics::PairedComparison;
use bench_domain::{Code, ModelRole, RunId};
use bench_runs::{Orders, RejudgeOrder, RunError, Standing};
use bench_stack::OwnEndpoint;
use bench_state::Scope;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::judge::JudgeArgs;
use super::run::budget::BudgetArgs;
use super::run::checks::check_named_helper;
use super::run::place::endpoint_to_send;
use super::run::preview::{Rejudge, confirm_rejudge};
use super::run::session::Session;
use super::run::{WorkArgs, results};
use crate::client::{Client, ServerArgs};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem, plain};
use crate::helper_keys::HelperKeys;
use crate::refusal::Refusal;
use crate::run_ref::RunRef;
use crate::table::{Column, Table};
use crate::views::{Judgings, Run};
use crate::{format, output, show};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench rejudge RUN --judge-model openrouter/JUDGE
      another judge
  bench rejudge RUN --judge-temperature 0.7 --judge-seed 2
      the same judge again, to see how much its verdicts depend on chance
  bench rejudge RUN --judge-model chutes/JUDGE --server https://bench.example
  bench runs RUN
      shows all versions of the judging, with their scores

The result is a new run with the next version of the judging. The first run
stays as it is, and both are compared at the end. BENCH_JUDGE_API_KEY is a key
for the judge alone.";

#[derive(Debug, Args)]
pub(crate) struct RejudgeArgs {
    /// Run whose answers are graded again
    run: RunRef,
    #[command(flatten)]
    judge: JudgeArgs,
    /// Base URL of the API of the judge's provider [default: the provider's own]
    #[arg(long, env = "BENCH_JUDGE_BASE_URL", value_name = "URL", help_heading = "Judge")]
    judge_base_url: Option<String>,
    #[command(flatten)]
    budget: BudgetArgs,
    /// Queue the run for `bench serve` instead of working on it now
    #[arg(long, help_heading = None)]
    detach: bool,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON: an array with the new run; `bench compare` shows the differences
    #[arg(long, help_heading = None)]
    json: bool,
}

pub(crate) async fn run(args: RejudgeArgs) -> anyhow::Result<ExitStatus> {
    let remote = args.server.server().is_some();
    let judge = args.judge.judge(remote)?;
    let base_url = args.judge_base_url.clone().filter(|url| !url.trim().is_empty());
    if remote && base_url.is_some() {
        let message =
            "--judge-base-url can't be used with --server: servers accept no addresses from callers";
        return Err(Problem::usage(message).hint("leave --server out to run on this machine").into());
    }
    let (key, judge_key) = (args.server.named_key()?, HelperKeys::from_variables().judge);
    if let Some(named) = judge.named.as_ref().filter(|_| !remote) {
        let key = judge_key.as_ref().or(key.as_ref());
        check_named_helper(ModelRole::Judge, named, base_url.as_deref(), key)?;
    }
    let mut body = args.budget.body().and_then(|body| body.as_object().cloned()).unwrap_or_default();
    body.extend(judge.body().map(|judge| ("judge".to_owned(), judge)));
    if !remote && !args.data.path()?.exists() {
        // A command that only reads creates no data directory.
        return Err(args.run.missing().into());
    }
    if !args.detach {
        results::check_folder(&args.work.out)?;
    }
    // A detached run is left in the queue for `bench serve`.
    let scope = if args.detach { Scope::Server } else { Scope::Foreground };
    let mut session = Session::open_in(scope, &args.work, &args.server, &args.data).await?;
    let run = match args.run.resolve(&session.client).await {
        Ok(run) => run,
        Err(error) => {
            session.close(std::time::Duration::ZERO).await;
            return Err(error);
        }
    };
    let ordered = async {
        let named = judge.named.as_ref();
        let rejudge = Rejudge {
            client: &session.client,
            is_local: !remote,
            run,
            judge: named,
            base_url: base_url.as_deref(),
            budget_usd: args.budget.budget_usd,
            concurrency: (!remote && !args.detach).then_some(args.work.concurrency),
        };
        confirm_rejudge(&rejudge, &args.work.confirm).await?;
        let source = named.and_then(|judge| judge.source);
        let own = session.stack().and_then(|stack| endpoint_to_send(stack, source, base_url.as_deref()));
        // Only the command line may set the judge's address. Requests can't.
        let has_address = base_url.is_some() || own.is_some();
        let (base_url, judge_key) = match own {
            Some(OwnEndpoint { base_url: own, key }) => (base_url.or(own), judge_key.or(key)),
            None => (base_url, judge_key),
        };
        match session.orders().filter(|_| has_address) {
            Some(orders) => {
                let order = RejudgeOrder {
                    judge: judge.order().unwrap_or_default(),
                    budget: args.budget.budget(),
                    base_url,
                    api_key: key,
                    judge_key,
                    session: None,
                    idempotency_key: None,
                    warnings: Vec::new(),
                };
                order_in_process(orders, run, order).await
            }
            None => order(&session.client, run, body).await,
        }
    };
    let ordered = match ordered.await {
        Ok(made) if !args.detach => {
            if let Some(stack) = session.stack() {
                let hold = stack.hold(&[made], 0).await;
                session.keep_until_watched(hold.into_iter().collect());
            }
            session.check_endpoints(made).await.map(|()| made)
        }
        ordered => ordered,
    };
    match ordered {
        Ok(made) if args.detach => {
            session.close(std::time::Duration::ZERO).await;
            match args.json {
                true => output::json(&json!({ "id": made, "status": "queued" }))?,
                false => output::print(&format!("Queued run {made}"))?,
            }
            Ok(ExitStatus::Success)
        }
        Ok(made) => {
            let (first, json) = (run, args.json);
            let show = async |client: &Client| {
                if json { Ok(()) } else { print_comparison(client, first, made).await }
            };
            session.finish_runs(&[made], true, &args.work, results::ResultsForm::of(json), show).await
        }
        Err(error) => {
            session.give_up().await;
            Err(error)
        }
    }
}

async fn order(client: &Client, run: RunId, body: Map<String, Value>) -> anyhow::Result<RunId> {
    let made = client.post(&format!("/api/runs/{run}/rejudge"), Some(&Value::Object(body))).await;
    let made: Run = made.map_err(|error| match error.downcast_ref::<Refusal>() {
        Some(refused) if refused.code() == Some(Code::RunNotFound) => super::no_such_run(run).into(),
        _ => error,
    })?;
    let id: RunId =
        made.id.parse().map_err(|_| Problem::failure("unexpected answer of the server: it names no run"))?;
    let version = made.rejudges.as_ref().map_or(0, |rejudges| rejudges.version);
    let judge = made.judge.as_ref().map_or("-", |judge| judge.model.as_str());
    print_ordered(id, run, judge, version);
    Ok(id)
}

async fn order_in_process(orders: &Orders, run: RunId, order: RejudgeOrder) -> anyhow::Result<RunId> {
    let made = orders.rejudge(run, order, Standing::Local, None).await;
    let made = made.map_err(|error| match error {
        RunError::RunNotFound => super::no_such_run(run),
        error => Problem::failure(plain(&error.to_string())),
    })?;
    let spec = &made.run.run.spec;
    let version = spec.rejudges.map_or(0, |rejudges| rejudges.version);
    let judge = spec.judge.as_ref().map_or_else(|| "-".to_owned(), |judge| judge.model.qualified());
    print_ordered(spec.id, run, &judge, version);
    Ok(spec.id)
}

fn print_ordered(made: RunId, first: RunId, judge: &str, version: u32) {
    output::note(&format!("Run {made}: answers of run {first}, judged by {judge}, version {version}"));
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
async fn print_comparison(client: &Client, old: RunId, new: RunId) -> anyhow::Result<()> {
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
    let mut table = Table::new([
        Column::words("benchmark"),
        Column::number(old_name),
        Column::number(new_name),
        Column::number("new − old (95% interval)"),
        Column::number("items").drop_as(1),
        Column::number("now right").drop_as(2),
        Column::number("now wrong").drop_as(2),
        Column::number("p"),
    ]);
    for Benchmark { benchmark_name, score_a, score_b, paired } in &compared.benchmarks {
        table.row([
            show::benchmark_name(benchmark_name),
            format::percent(*score_a),
            format::percent(*score_b),
            super::compare::difference(paired),
            format::count(paired.items),
            format::count(paired.only_b_right),
            format::count(paired.only_a_right),
            paired.mcnemar_p.map_or_else(|| "-".to_owned(), super::compare::p_value),
        ]);
    }
    output::print_table(&table)?;
    output::print("Compared on the items that both runs have graded. p: exact McNemar test.")
}
