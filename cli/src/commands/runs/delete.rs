//! `bench runs delete`.

use bench_domain::RunId;
use clap::Args;
use serde_json::{Value, json};

use super::exists_here;
use crate::commands::{Api, ApiArgs};
use crate::exit::{ExitStatus, Problem};
use crate::run_ref::RunRef;
use crate::views::{Benchmark, Run};
use crate::{format, output, question, show};

pub(super) const EXAMPLES: &str = "\
Examples:
  bench runs delete RUN
  bench runs delete RUN1 RUN2 --yes        without a question, for scripts
  bench cancel RUN && bench runs delete RUN

A run that was deleted can't be restored. Archives that were written to files
are kept. Runs that judged its answers again keep their own results.";

#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    /// Runs to delete; `bench runs` lists them
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<RunRef>,
    /// Delete without asking
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    api: ApiArgs,
}

pub(super) async fn run(args: DeleteArgs) -> anyhow::Result<ExitStatus> {
    if !args.yes && !question::can_ask() {
        return Err(Problem::usage(
            "runs are deleted only after a question, and there is no terminal to ask at",
        )
        .hint("give --yes to delete them without a question")
        .into());
    }
    if let (Some(first), false) = (args.runs.first(), exists_here(&args.api)?) {
        return Err(first.missing().into());
    }
    let api = Api::open(&args.api.server, &args.api.data).await?;
    let deleted = delete_runs(&api, &args).await;
    api.close().await;
    deleted
}

async fn delete_runs(api: &Api, args: &DeleteArgs) -> anyhow::Result<ExitStatus> {
    // All are checked before any is deleted.
    let mut runs: Vec<(RunId, Run)> = Vec::with_capacity(args.runs.len());
    for run in &args.runs {
        let run = run.resolve(&api.client).await?;
        if runs.iter().any(|(known, _)| *known == run) {
            continue;
        }
        let found: Result<Run, _> = api.client.get(&format!("/api/runs/{run}")).await;
        let found = found.map_err(|error| error.context(format!("run {run}")))?;
        if found.status.is_open() {
            let status = if found.interrupted { "interrupted".to_owned() } else { found.status.to_string() };
            return Err(Problem::failure(format!(
                "run {run} is {status}: only runs that are over can be deleted"
            ))
            .hint(format!("`bench cancel {run}` stops it"))
            .into());
        }
        runs.push((run, found));
    }
    if !args.yes {
        runs.iter().for_each(|(_, run)| output::note(&description(run)));
        let what = format::plural(runs.len() as u64, "run");
        let question = format!("Delete {what} with all answers and results?");
        if !question::confirm(&question, "nothing was deleted").await? {
            output::note("Nothing was deleted");
            return Ok(ExitStatus::Failure);
        }
    }
    let mut deleted = Vec::with_capacity(runs.len());
    let mut result = Ok(());
    for (run, _) in &runs {
        match api.client.delete::<Value>(&format!("/api/runs/{run}")).await {
            Ok(_) => deleted.push(*run),
            Err(error) => {
                result = Err(error.context(format!("run {run}")));
                break;
            }
        }
    }
    if args.api.json {
        let all = deleted.iter().map(|run| json!({ "id": run, "status": "deleted" }));
        output::json(&all.collect::<Vec<_>>())?;
    } else {
        deleted.iter().try_for_each(|run| output::print(&format!("Deleted run {run}")))?;
    }
    if let Some(stack) = &api.stack
        && let Err(error) = stack.clear_up_deleted(&deleted).await
    {
        output::warn(&format!(
            "files of deleted runs are removed by the next `bench run` or `bench serve`: {error}"
        ));
    }
    result.map(|()| ExitStatus::Success)
}

/// Describes a run in one line.
fn description(run: &Run) -> String {
    let benchmarks: Vec<String> = run.benchmarks.iter().map(Benchmark::listed_name).collect();
    let name = run.name.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
    format!(
        "  {}  {}  {} on {}, {}{name}",
        run.id,
        format::minute(run.created_at),
        run.leveled_model(),
        benchmarks.join(", "),
        show::status(run)
    )
}
