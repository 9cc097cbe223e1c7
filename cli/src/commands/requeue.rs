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
  bench requeue RUN                          ask again for what is missing, and show the results
  bench requeue RUN --errors                 ask again only for what ended with an infrastructure-error
  bench requeue RUN --detach                 put it back into the queue for `bench serve`
  bench requeue RUN --server https://bench.example --api-key-env BENCH_KEY
  bench requeue RUN --budget-usd 5           a run that its budget stopped: the new one counts all that it ever spent

A run that was made with a key of its own needs --api-key-env again: keys are not kept.";

#[derive(Debug, Args)]
pub(crate) struct RequeueArgs {
    /// The run
    #[arg(value_parser = super::parse_run)]
    run: RunId,
    /// Ask again only for samples that ended with an infrastructure-error, of a run that succeeded, too
    #[arg(long)]
    errors: bool,
    /// Only put it into the queue, for `bench serve`
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
    #[arg(long)]
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
        false => output::print(&format!("Queued {}", args.run))?,
    }
    Ok(ExitStatus::Success)
}
