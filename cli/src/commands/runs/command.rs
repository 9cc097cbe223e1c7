//! Subcommands of `bench runs`. Without one, it lists runs or shows one.

use clap::{Arg, Args, Subcommand};

use super::{RunsArgs, delete, edit};
use crate::exit::{ExitStatus, Problem};

const LIST_EXAMPLES: &str = "\
Examples:
  bench runs list --status running
  bench runs list --tag exp-7 --name baseline --limit 10 --json

`bench runs` does the same.";

const SHOW_EXAMPLES: &str = "\
Examples:
  bench runs show RUN
  bench runs show RUN --items --benchmark mmlu_pro
  bench runs show RUN --json

`bench runs RUN` does the same.";

/// Arguments that apply to lists only.
const OF_LISTS: [&str; 4] = ["status", "model", "tag", "name"];
/// Arguments that apply to lists and to single runs.
const OF_BOTH: [&str; 5] = ["limit", "server", "api_key_env", "data_dir", "json"];

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsCommandArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    runs: RunsArgs,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List runs; the default
    #[command(after_help = LIST_EXAMPLES, mut_args = only_of_lists)]
    List(Box<RunsArgs>),
    /// Show one run in detail; the default if a run is given
    #[command(after_help = SHOW_EXAMPLES, mut_args = only_of_one_run)]
    Show(Box<RunsArgs>),
    /// Change the name, tags, notes and visibility of runs
    #[command(after_help = edit::EXAMPLES)]
    Edit(edit::EditArgs),
    /// Delete runs that are over, with their answers and results
    #[command(after_help = delete::EXAMPLES)]
    Delete(delete::DeleteArgs),
}

/// Hides the arguments that apply to a single run.
fn only_of_lists(arg: Arg) -> Arg {
    let id = arg.get_id().as_str();
    let is_of_one_run = !OF_LISTS.contains(&id) && !OF_BOTH.contains(&id);
    arg.hide(is_of_one_run)
}

/// Hides the arguments that apply to lists, and requires a run.
fn only_of_one_run(arg: Arg) -> Arg {
    let (is_run, is_of_lists) = (arg.get_id() == "run", OF_LISTS.contains(&arg.get_id().as_str()));
    arg.required(is_run).hide(is_of_lists)
}

pub(crate) async fn run(args: RunsCommandArgs) -> anyhow::Result<ExitStatus> {
    match args.command {
        None => super::run(args.runs).await,
        Some(RunsCommand::List(list)) => match list.run {
            None => super::run(*list).await,
            Some(run) => Err(Problem::usage("`bench runs list` lists runs, and takes none")
                .hint(format!("`bench runs show {run}` shows the run"))
                .into()),
        },
        Some(RunsCommand::Show(show)) => super::run(*show).await,
        Some(RunsCommand::Edit(args)) => edit::run(args).await,
        Some(RunsCommand::Delete(args)) => delete::run(args).await,
    }
}
