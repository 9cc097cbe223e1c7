//! `bench requeue`.

use bench_domain::RunId;
use clap::Args;
use serde_json::{Value, json};

use super::run::budget::BudgetArgs;
use super::run::{self, WorkArgs};
use crate::client::ServerArgs;
use crate::data_dir::DataArgs;
use crate::exit::ExitStatus;
use crate::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench requeue RUN
      repeats failed and missing samples, and shows the results
  bench requeue RUN --errors
      repeats only infrastructure-errors; also for a run that succeeded
  bench requeue RUN --detach
      queues the run for `bench serve`
  bench requeue RUN --budget-usd 5
      for a run that reached its budget; the new one includes what it has spent
  bench requeue RUN --server https://bench.example --api-key-env BENCH_KEY

Keys are not stored: give --api-key-env again if the run was ordered with it.";

#[derive(Debug, Args)]
pub(crate) struct RequeueArgs {
    /// Run to repeat; `bench runs` lists them
    #[arg(value_parser = super::parse_run)]
    run: RunId,
    /// Repeat only samples that ended as infrastructure-errors; allowed for runs that succeeded, too
    #[arg(long)]
    errors: bool,
    /// Queue the run for `bench serve` instead of working on it now
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    work: WorkArgs,
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
            args.run,
            args.budget,
            args.errors,
            &args.work,
            &args.server,
            &args.data,
            args.json,
        )
        .await;
    }
    let api = super::Api::open_for_server(&args.server, &args.data).await?;
    let body = run::requeue_body(args.budget, args.errors);
    let answer = api.client.post::<Value>(&run::requeue_path(args.run), body.as_ref()).await;
    api.close().await;
    answer?;
    match args.json {
        true => output::json(&json!({ "id": args.run, "status": "queued" }))?,
        false => output::print(&format!("Queued run {}", args.run))?,
    }
    Ok(ExitStatus::Success)
}
