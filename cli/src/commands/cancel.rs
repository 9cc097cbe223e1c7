//! `bench cancel`.

use bench_domain::RunId;
use clap::Args;
use serde_json::{Value, json};

use crate::client::ServerArgs;
use crate::data_dir::DataArgs;
use crate::exit::ExitStatus;
use crate::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench cancel RUN
  bench cancel RUN1 RUN2 --server http://127.0.0.1:3000

`bench requeue RUN` continues a canceled run.";

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Runs to stop; `bench runs` lists them
    #[arg(required = true, value_name = "RUN", value_parser = super::parse_run)]
    runs: Vec<RunId>,
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
        let answer = api.client.post::<Value>(&format!("/api/runs/{run}/cancel"), None).await;
        match answer {
            Ok(_) => canceled.push(*run),
            Err(error) => {
                result = Err(error.context(format!("run {run}")));
                break;
            }
        }
    }
    api.close().await;
    if args.json {
        output::json(
            &canceled.iter().map(|run| json!({ "id": run, "status": "canceled" })).collect::<Vec<_>>(),
        )?;
    } else {
        for run in &canceled {
            output::print(&format!("Canceled run {run}; `bench requeue {run}` continues it"))?;
        }
    }
    result.map(|()| ExitStatus::Success)
}
