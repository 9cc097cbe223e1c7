//! `bench requeue`.

use bench_domain::RunId;
use clap::Args;
use serde_json::{Value, json};

use super::run::budget::BudgetArgs;
use super::run::preview::{self, Repeat};
use super::run::repeated::RepeatedArgs;
use super::run::{self, WorkArgs};
use crate::client::{Client, ServerArgs};
use crate::data_dir::DataArgs;
use crate::exit::ExitStatus;
use crate::output;
use crate::run_ref::RunRef;
use crate::views::Run;

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench requeue RUN
      repeats failed and missing samples, and shows the results
  bench requeue RUN --errors
      repeats only infrastructure-errors; also for a run that succeeded
  bench requeue RUN --item go_text_merge --sample 2
      repeats one sample that has no grade
  bench requeue RUN --detach
      queues the run for `bench serve`
  bench requeue RUN --budget-usd 5
      for a run that reached its budget; the new one includes what it has spent
  bench requeue RUN --server https://bench.example --api-key-env BENCH_KEY

Keys are not stored: give --api-key-env again if the run was ordered with it.";

#[derive(Debug, Args)]
pub(crate) struct RequeueArgs {
    /// Run to repeat; `bench runs` lists them
    run: RunRef,
    #[command(flatten)]
    repeated: RepeatedArgs,
    /// Queue the run for `bench serve` instead of working on it now
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

pub(crate) async fn run(args: RequeueArgs) -> anyhow::Result<ExitStatus> {
    if !args.detach {
        return run::resume(
            &args.run,
            args.budget,
            &args.repeated,
            &args.work,
            &args.server,
            &args.data,
            args.json,
        )
        .await;
    }
    let api = super::Api::open_for_server(&args.server, &args.data).await?;
    let queued = queue(&api.client, &args).await;
    api.close().await;
    let run = queued?;
    match args.json {
        true => output::json(&json!({ "id": run, "status": "queued" }))?,
        false => output::print(&format!("Queued run {run}"))?,
    }
    Ok(ExitStatus::Success)
}

/// Queues the run, and returns its id.
async fn queue(client: &Client, args: &RequeueArgs) -> anyhow::Result<RunId> {
    let run = args.run.resolve(client).await?;
    let found: Run = client.get(&format!("/api/runs/{run}")).await?;
    let repeated = args.repeated.find(client, &found, run).await?;
    if found.interrupted || !found.status.is_open() {
        // `bench serve` will work on it, with its own concurrency.
        let repeat = Repeat {
            client,
            run: &found,
            repeated: &repeated,
            budget_usd: args.budget.budget_usd,
            concurrency: None,
        };
        preview::confirm_repeat(&repeat, &args.work.confirm).await?;
    }
    let body = repeated.body(args.budget);
    client.post::<Value>(&run::requeue_path(run), body.as_ref()).await?;
    Ok(run)
}
