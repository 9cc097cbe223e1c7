//! `bench tasks check`: proves that tasks can be solved, and that they aren't solved from the start.

use std::collections::BTreeMap;

use bench_domain::{Code, RunId};
use bench_runs::TERMINAL_TASKS;
use serde_json::{Value, json};

use super::CheckArgs;
use crate::causes::one_line;
use crate::client::Client;
use crate::commands::run::session::Session;
use crate::commands::run::tasks::order_tasks;
use crate::commands::{Api, run::results};
use crate::episodes::samples;
use crate::exit::{ExitStatus, Problem};
use crate::refusal::Refusal;
use crate::task_archive::TaskArchive;
use crate::{format, output, task_archive};

/// Number of episodes of each agent.
const EPISODES: u32 = 2;

/// Episodes of a task by one agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    passed: u32,
    graded: u32,
}

pub(super) async fn run(args: CheckArgs) -> anyhow::Result<ExitStatus> {
    let archives = task_archive::read_all(&args.paths)?;
    if args.no_episodes {
        return check_files(&args, &archives).await;
    }
    for archive in &archives {
        super::warn(&archive.name, &archive.read()?.warnings);
    }
    results::check_folder(&args.work.out)?;
    let session = Session::open(&args.work, &args.server, &args.data).await?;
    let ordered = async {
        let mut runs = Vec::new();
        for agent in ["oracle", "nop"] {
            runs.push(order_tasks(&session, &archives, agent, EPISODES).await?);
        }
        anyhow::Ok(runs)
    };
    match ordered.await {
        Err(error) => {
            session.give_up().await;
            Err(error)
        }
        Ok(ordered) => {
            let (runs, holds): (Vec<RunId>, Vec<_>) = ordered.into_iter().unzip();
            let mut session = session;
            session.keep_until_watched(holds.into_iter().flatten().collect());
            let [oracle, nop] = [runs.first().copied(), runs.get(1).copied()];
            let (json, work) = (args.json, &args.work);
            let form = if json { results::ResultsForm::Nothing } else { results::ResultsForm::Text };
            let proof = async |client: &Client| judge(client, oracle, nop, json).await;
            session.finish_runs(&runs, true, work, form, proof).await
        }
    }
}

/// Returns true if the server refused the task, and not the request.
fn is_task_refusal(refusal: &Refusal) -> bool {
    matches!(refusal.code(), Some(Code::TaskRefused | Code::BodyTooLarge))
}

/// Sends the tasks to the server for a check of their files, and prints the result of each.
async fn check_files(args: &CheckArgs, archives: &[TaskArchive]) -> anyhow::Result<ExitStatus> {
    let api = Api::open(&args.server, &args.data).await?;
    let mut checked = Vec::new();
    let done = check_each(args, &api.client, archives, &mut checked).await;
    api.close().await;
    if args.json {
        output::json(&checked)?;
    }
    match done? {
        0 => Ok(ExitStatus::Success),
        refused => Err(Problem::failure(format!("{} refused", format::plural(refused, "task"))).into()),
    }
}

/// Adds the result of each task. Returns the number of refused ones.
async fn check_each(
    args: &CheckArgs,
    client: &Client,
    archives: &[TaskArchive],
    checked: &mut Vec<Value>,
) -> anyhow::Result<u64> {
    let mut refused = 0;
    for archive in archives {
        let (found, line) = match client.check_task(archive).await {
            Ok(found) => (found, "its files are accepted".to_owned()),
            // Every refused task is reported, not only the first one.
            Err(error) if error.downcast_ref::<Refusal>().is_some_and(is_task_refusal) => {
                refused += 1;
                let why = one_line(&error.to_string());
                (json!({ "name": archive.name, "refused": why }), format!("refused; {why}"))
            }
            Err(error) => return Err(super::refused(archive, error)),
        };
        if !args.json {
            output::print(&format!("{}: {line}", archive.name))?;
        }
        super::warn(&archive.name, &warnings(&found));
        checked.push(found);
    }
    Ok(refused)
}

/// Returns the warnings of a checked task.
fn warnings(found: &Value) -> Vec<String> {
    let all = found.get("warnings").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Compares the episodes of both runs, prints a line for each task, and fails if one isn't proven.
async fn judge(client: &Client, oracle: Option<RunId>, nop: Option<RunId>, json: bool) -> anyhow::Result<()> {
    let (Some(oracle), Some(nop)) = (oracle, nop) else { return Ok(()) };
    let (solved, mut problems) = episodes(client, oracle).await?;
    let (unsolved, others) = episodes(client, nop).await?;
    problems.extend(others);
    let mut shown = Vec::new();
    let mut failed = 0_u64;
    for (task, solution) in &solved {
        let nothing = unsolved.get(task).copied().unwrap_or_default();
        let is_proven = *solution == Count { passed: EPISODES, graded: EPISODES }
            && nothing == Count { passed: 0, graded: EPISODES };
        failed += u64::from(!is_proven);
        let verdict = if is_proven { "proven" } else { "NOT proven" };
        if !json {
            output::print(&format!(
                "{task}: {verdict}; the solution passed {} of {EPISODES} episodes, doing nothing {} of {EPISODES}",
                solution.passed, nothing.passed
            ))?;
            let found = problems.iter().filter(|(of, _)| of == task).map(|(_, why)| why.clone());
            for why in found.take(2).chain(missing_proof(*solution, nothing, oracle)) {
                output::print(&format!("  {why}"))?;
            }
        }
        shown.push(json!({
            "task": task, "proven": is_proven, "oracle_passed": solution.passed, "nop_passed": nothing.passed,
            "oracle_graded": solution.graded, "nop_graded": nothing.graded, "runs": [oracle, nop],
        }));
    }
    if json {
        output::json(&shown)?;
    }
    match failed {
        0 => Ok(()),
        failed => Err(Problem::failure(format!("{} not proven", format::plural(failed, "task")))
            .hint(format!("`bench runs {oracle} --items` and `bench runs {nop} --items` list the episodes"))
            .into()),
    }
}

/// Returns what graded episodes show to be wrong with a task.
fn missing_proof(solution: Count, nothing: Count, oracle: RunId) -> Vec<String> {
    let mut reasons = Vec::new();
    if solution.passed < solution.graded {
        reasons.push(format!(
            "the tests did not give the solution the full reward; `bench artifacts {oracle}` fetches its output and that of \
             the tests"
        ));
    }
    if nothing.passed > 0 {
        reasons.push("the tests give the full reward although nothing was done".to_owned());
    }
    reasons
}

/// Counts the episodes of a run by task, and collects why episodes have no grade.
async fn episodes(
    client: &Client,
    run: RunId,
) -> anyhow::Result<(BTreeMap<String, Count>, Vec<(String, String)>)> {
    let (mut counts, mut problems) = (BTreeMap::<String, Count>::new(), Vec::new());
    for episode in samples(client, run, TERMINAL_TASKS).await? {
        let task = episode.task().to_owned();
        let count = counts.entry(task.clone()).or_default();
        if let Some(score) = episode.score {
            count.graded += 1;
            count.passed += u32::from(score >= 1.0);
        } else if let Some(error) = episode.error {
            problems.push((task, error));
        }
    }
    Ok((counts, problems))
}
