//! `bench cancel`.

use std::fmt::Display;

use anyhow::Context;
use bench_domain::{Code, RunId, RunStatus};
use clap::Args;
use serde_json::{Value, json};

use crate::again;
use crate::client::{Client, ServerArgs};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem};
use crate::output;
use crate::refusal::Refusal;
use crate::run_ref::RunRef;
use crate::views::Run;

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench cancel RUN
  bench cancel RUN1 RUN2 --server http://127.0.0.1:3000

Answers are kept. `bench run --resume RUN` continues a canceled run, and
`bench runs delete RUN` removes it.";

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Runs to stop; `bench runs` lists them
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<RunRef>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

pub(crate) async fn run(args: CancelArgs) -> anyhow::Result<ExitStatus> {
    let api = super::Api::open(&args.server, &args.data).await?;
    let mut canceled = Vec::new();
    let mut result = Ok(());
    for run in &args.runs {
        match cancel(&api.client, run).await {
            Ok(done) => canceled.push(done),
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    api.close().await;
    if args.json {
        output::json(
            &canceled.iter().map(|(run, _)| json!({ "id": run, "status": "canceled" })).collect::<Vec<_>>(),
        )?;
    } else {
        for (run, is_new) in &canceled {
            match is_new {
                true => output::print(&format!("Canceled run {run}"))?,
                false => output::print(&format!("Run {run} was already canceled"))?,
            }
            output::hint(&next_steps(*run));
        }
    }
    result.map(|()| ExitStatus::Success)
}

/// Returns the commands that follow a cancellation.
pub(crate) fn next_steps(run: impl Display) -> String {
    format!("`{}` runs the missing samples, `bench runs delete {run}` removes the run", again::resume(&run))
}

/// Cancels a run. Returns its id, and false if it was canceled before.
async fn cancel(client: &Client, run: &RunRef) -> anyhow::Result<(RunId, bool)> {
    let named = || format!("run {run}");
    let id = run.resolve(client).await.with_context(named)?;
    let Err(error) = client.post::<Value>(&format!("/api/runs/{id}/cancel"), None).await else {
        return Ok((id, true));
    };
    if error.downcast_ref().and_then(Refusal::code) != Some(Code::RunNotCancelable) {
        return Err(error.context(named()));
    }
    let found: Run = client.get(&format!("/api/runs/{id}")).await.with_context(named)?;
    match found.status {
        RunStatus::Canceled => Ok((id, false)),
        RunStatus::Succeeded | RunStatus::Failed => {
            let problem = Problem::failure(format!("run {id} is over already: it {}", found.status));
            Err(problem.hint(format!("`bench runs {id}` shows it")).into())
        }
        RunStatus::Queued | RunStatus::Running => Err(error.context(named())),
    }
}
