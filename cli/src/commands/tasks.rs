//! `bench tasks`.

mod check;
mod code;

use std::path::PathBuf;

use anyhow::Context;
use bench_domain::statistics::wilson;
use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::{Value, json};

use super::run::WorkArgs;
use super::run::tasks::id_of;
use super::{Api, ApiArgs, with_api};
use crate::causes::one_line;
use crate::client::{Client, Listing, ServerArgs, Task, TaskResults, encode};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem};
use crate::table::{Column, Table};
use crate::task_archive::{self, TaskArchive};
use crate::{format, output};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench tasks check ./my-task
      proves a task: its solution earns the reward, and doing nothing does not
  bench tasks add ./my-task
      stores a task, for the page and for orders
  bench tasks list
  bench tasks remove 3

A task is a folder or a ZIP archive with task.toml (Harbor's format) or
task.yaml (Terminal-Bench 1). `bench run --task PATH` stores and runs one in
one step. docs/terminal-tasks.md explains formats, limits and refusals.";

const LIST_EXAMPLE: &str = "\
Example:
  bench tasks list --json";
const ADD_EXAMPLES: &str = "\
Examples:
  bench tasks add ./my-task
  bench tasks add ./tasks other.zip --server https://bench.example
      all tasks in a folder, and an archive, at a server";
const CHECK_EXAMPLES: &str = "\
Examples:
  bench tasks check ./my-task
  bench tasks check my-task.zip --no-episodes
      reads the files only; starts no containers
  bench tasks check tasks --repeat 5 --record
      proves all programming tasks in a folder, and writes the proofs";
const REMOVE_EXAMPLE: &str = "\
Example:
  bench tasks remove my-task
      removes the task; its runs are canceled and kept";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TasksArgs {
    #[command(subcommand)]
    command: Option<TasksCommand>,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Subcommand)]
enum TasksCommand {
    /// List the stored tasks, with the pass rate of their episodes; the default
    #[command(after_help = LIST_EXAMPLE)]
    List(ListArgs),
    /// Check tasks and store them
    #[command(after_help = ADD_EXAMPLES)]
    Add(AddArgs),
    /// Prove tasks: their solution passes, and nothing else does
    ///
    /// Terminal tasks: the agent `oracle` earns the full reward and `nop` does not, twice each. Programming tasks: the reference
    /// passes, the untouched project and the wrong solutions fail, and known cheats earn nothing.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Remove stored tasks; their open runs are canceled
    #[command(after_help = REMOVE_EXAMPLE)]
    Remove(RemoveArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// List also the tasks that `bench run --task` and `bench tasks check` stored for their runs
    #[arg(long)]
    all: bool,
    /// List only tasks of the caller; admins see those of all callers otherwise
    #[arg(long)]
    mine: bool,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Task: a folder, a folder of tasks, or a ZIP archive
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Name of the task [default: the name of its folder or file]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Task: a folder, a folder of tasks, or a ZIP archive
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Read the files only, without running anything
    #[arg(long)]
    no_episodes: bool,
    /// Programming tasks: number of times to run the reference solution, to find tests that fail now and then
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Programming tasks: write proof.json with the names of the tests into the folder of each proven task
    #[arg(long)]
    record: bool,
    /// Programming tasks: number of wrong solutions to run of each task whose recorded proof has all of them [default: all]
    #[arg(long, value_name = "N", conflicts_with = "record", value_parser = clap::value_parser!(u32).range(2..))]
    wrong: Option<u32>,
    /// Programming tasks: those at which the known cheats are tried
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Cheats::All)]
    cheats: Cheats,
    /// Option of the order, such as `env.NAME=VALUE` for a variable that a task needs
    #[arg(long, value_name = "NAME=VALUE")]
    option: Vec<String>,
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

/// Tasks at which the known cheats are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cheats {
    /// Every task
    All,
    /// The task of each language with the fastest reference
    PerLanguage,
    /// No task
    None,
}

#[derive(Debug, Args)]
struct RemoveArgs {
    /// Task: its id, or its name if no other task has that, as listed
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<String>,
    #[command(flatten)]
    api: ApiArgs,
}

pub(crate) async fn run(args: TasksArgs) -> anyhow::Result<ExitStatus> {
    match args.command.unwrap_or(TasksCommand::List(ListArgs { all: false, mine: false, api: args.api })) {
        TasksCommand::List(args) => with_api(&args.api, async |api| list(api, &args).await).await,
        TasksCommand::Add(args) => {
            let archives = task_archive::read_all(&args.paths)?;
            if args.name.is_some() && archives.len() > 1 {
                return Err(Problem::usage("--name can't be given for several tasks").into());
            }
            with_api(&args.api, async |api| add(api, &args, &archives).await).await
        }
        TasksCommand::Check(args) => check::run(args).await,
        TasksCommand::Remove(args) => with_api(&args.api, async |api| remove(api, &args).await).await,
    }
}

/// Reads the stored tasks, with `mine` only the caller's own, with `all` also those that were stored for runs only.
async fn stored(client: &Client, all: bool, mine: bool) -> anyhow::Result<Vec<Value>> {
    let mut tasks: Vec<Value> = Vec::new();
    loop {
        let path = format!("/api/tasks?limit=100&all={all}&mine={mine}&skip={}", tasks.len());
        let page: Vec<Value> = client.get(&path).await?;
        let is_last = page.len() < 100;
        tasks.extend(page);
        if is_last {
            return Ok(tasks);
        }
    }
}

async fn list(api: &Api, args: &ListArgs) -> anyhow::Result<()> {
    let tasks = stored(&api.client, args.all, args.mine).await?;
    print_list(&tasks, args.api.json)?;
    if args.mine && tasks.is_empty() {
        api.client.hint_at_key();
    }
    Ok(())
}

fn print_list(tasks: &[Value], json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&tasks);
    }
    if tasks.is_empty() {
        output::note("There are no tasks; `bench tasks add PATH` stores one");
        return Ok(());
    }
    let tasks: Vec<Task> = tasks.iter().map(Task::deserialize).collect::<Result<_, _>>()?;
    output::print_table(&table(&tasks))
}

fn table(tasks: &[Task]) -> Table {
    let mut table = Table::new([
        Column::number("ID"),
        Column::text("NAME"),
        Column::text("TASK").drop_as(2),
        Column::text("STATUS").drop_as(1),
        Column::number("PASS RATE (95% INTERVAL)"),
        Column::number("PASSED"),
        Column::number("ERRORS"),
        Column::number("EPISODES"),
        Column::text("CREATED").drop_as(3),
    ]);
    for task in tasks {
        let results = task.results();
        table.row([
            task.id.to_string(),
            task.name.clone(),
            task.task.clone(),
            results.status.clone(),
            pass_rate(&results),
            results.passed.to_string(),
            results.errors.to_string(),
            results.episodes.to_string(),
            task.created_at.get(..16).unwrap_or(&task.created_at).replace('T', " "),
        ]);
    }
    table
}

/// Formats the share of graded episodes that passed, with Wilson's interval.
fn pass_rate(results: &TaskResults) -> String {
    let graded = results.passed + results.failed;
    let interval = wilson(results.passed, graded).map(|interval| (interval.low, interval.high));
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
    match graded {
        0 => "–".to_owned(),
        graded => format::percent_within(results.passed as f64 / graded as f64, interval, true),
    }
}

async fn add(api: &Api, args: &AddArgs, archives: &[TaskArchive]) -> anyhow::Result<()> {
    let mut added = Vec::new();
    for archive in archives {
        let name = args.name.as_deref().unwrap_or(&archive.name);
        let task = api.client.add_task(archive, name, Listing::Listed).await;
        let task = task.map_err(|error| refused(archive, error))?;
        if !args.api.json {
            output::print(&stored_line(&task))?;
        }
        warn(&archive.name, &task.warnings);
        added.push(json!({
            "id": task.id, "name": task.name, "task": task.task, "content_hash": task.content_hash,
            "same_files_as": task.same_files_as, "warnings": task.warnings,
        }));
    }
    if args.api.json { output::json(&added) } else { Ok(()) }
}

fn stored_line(task: &Task) -> String {
    let same = task.same_files_as.map_or_else(String::new, |id| {
        format!("; task {id} has the same files, and its stored archive is used again")
    });
    format!("Stored task {}: {}{same}", task.id, task.task)
}

/// Prints the keys of a task's files that have no effect.
fn warn(name: &str, warnings: &[String]) {
    for warning in warnings {
        output::warn(&format!("{name}: {}", one_line(warning)));
    }
}

/// Names the task that a refusal is about.
fn refused(archive: &TaskArchive, error: anyhow::Error) -> anyhow::Error {
    error.context(format!("the task `{}` was not accepted", archive.name))
}

async fn remove(api: &Api, args: &RemoveArgs) -> anyhow::Result<()> {
    let mut removed = Vec::new();
    // All are found before any is removed.
    for id in find(&api.client, &args.tasks).await? {
        let gone: anyhow::Result<Value> =
            api.client.delete(&format!("/api/tasks/{}", encode(&id.to_string()))).await;
        gone.map_err(|error| error.context(format!("task {id}")))?;
        if !args.api.json {
            output::print(&format!("Removed task {id}"))?;
        }
        removed.push(json!({ "id": id, "status": "removed" }));
    }
    if args.api.json { output::json(&removed) } else { Ok(()) }
}

/// Returns the ids of tasks that are given by id or by name.
async fn find(client: &Client, given: &[String]) -> anyhow::Result<Vec<u64>> {
    let stored = stored(client, true, false).await?.into_iter().map(serde_json::from_value);
    let stored: Vec<Task> =
        stored.collect::<Result<_, _>>().context("the server's list of tasks is not valid")?;
    given.iter().map(|task| id_of(task, &stored)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_was_there_is_named() {
        let answer = json!({
            "id": 2, "name": "n", "task": "n@0123456789ab", "content_hash": "0", "status": "pending",
            "created_at": "2026-01-02T03:04:05", "total_runs": 0, "passed_runs": 0,
        });
        let mut task: Task = serde_json::from_value(answer).unwrap();
        assert_eq!(stored_line(&task), "Stored task 2: n@0123456789ab");
        task.same_files_as = Some(1);
        assert_eq!(
            stored_line(&task),
            "Stored task 2: n@0123456789ab; task 1 has the same files, and its stored archive is used again"
        );
    }

    #[test]
    fn screen_of_tasks() {
        let task = |id: u64, name: &str, [passed, errors, failed, total]: [u64; 4]| Task {
            id,
            name: name.to_owned(),
            task: format!("{name}@0123456789ab"),
            content_hash: "0".repeat(64),
            status: "completed".to_owned(),
            created_at: "2026-01-02T03:04:05.678901".to_owned(),
            total_runs: total,
            passed_runs: passed,
            same_files_as: None,
            listed: true,
            warnings: Vec::new(),
            failed_runs: failed,
            error_runs: errors,
            results: None,
        };
        let ordered = |results: TaskResults, task: Task| Task { results: Some(results), ..task };
        let tasks = [
            task(12, "hello-world", [7, 1, 3, 10]),
            task(11, "log-summary-of-the-week", [0, 2, 2, 750]),
            task(3, "fix-csv", [0, 0, 0, 0]),
            // Its episodes were ordered on the page or by `bench run --task`.
            ordered(
                TaskResults { status: "running".to_owned(), episodes: 40, passed: 20, failed: 5, errors: 1 },
                task(2, "count-words", [1, 0, 0, 1]),
            ),
        ];
        crate::screen_tests::check("tasks", |layout| table(&tasks).render(layout));
    }
}
