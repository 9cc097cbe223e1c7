//! `bench tasks check`: proves that tasks can be solved, and that they aren't solved from the start.

use std::collections::BTreeMap;

use bench_domain::{Agent, Code, RunId};
use bench_runs::TERMINAL_TASKS;
use serde_json::{Value, json};

use super::CheckArgs;
use crate::causes::{one_line, times};
use crate::client::Client;
use crate::commands::options::parse_options;
use crate::commands::run::session::Session;
use crate::commands::run::tasks::order_tasks;
use crate::commands::{Api, run::results};
use crate::episodes::{Episode, samples};
use crate::exit::{ExitStatus, Problem};
use crate::refusal::Refusal;
use crate::task_archive::{GivenTask, TaskArchive};
use crate::{format, output, task_archive};

/// Number of episodes of each agent.
const EPISODES: u32 = 2;

/// Names of the given tasks by their content hashes. Tasks with the same files are one.
type Names = BTreeMap<String, Vec<String>>;

/// Episodes of a task by one agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    passed: u32,
    graded: u32,
}

impl Count {
    fn of(episodes: &[Episode]) -> Self {
        let scores = || episodes.iter().filter_map(|episode| episode.score);
        let count = |scores: &mut dyn Iterator<Item = f64>| u32::try_from(scores.count()).unwrap_or(u32::MAX);
        Self { passed: count(&mut scores().filter(|score| *score >= 1.0)), graded: count(&mut scores()) }
    }
}

pub(super) async fn run(args: CheckArgs) -> anyhow::Result<ExitStatus> {
    let archives = task_archive::read_all(&args.paths)?;
    if args.no_episodes {
        return check_files(&args, &archives).await;
    }
    let is_remote = args.server.server().is_some();
    let options = parse_options(&args.option, &[TERMINAL_TASKS.to_owned()], &BTreeMap::new(), is_remote)?;
    let names = names(&archives)?;
    results::check_folder(&args.work.out)?;
    let given: Vec<GivenTask> = archives.into_iter().map(GivenTask::Archive).collect();
    let session = Session::open(&args.work, &args.server, &args.data).await?;
    let ordered = async {
        let mut runs = Vec::new();
        for agent in ["oracle", "nop"] {
            runs.push(order_tasks(&session, &given, agent, EPISODES, &options).await?);
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
            let proof = async |client: &Client| {
                let proof = judge(client, oracle, nop, &names, json).await;
                if !json {
                    output::note(&format!("Signed archives of both runs are in `{}`", work.out.display()));
                }
                proof
            };
            session.finish_runs(&runs, true, work, results::ResultsForm::Nothing, proof).await
        }
    }
}

/// Reads all tasks. Without an error, each can be proven.
fn names(archives: &[TaskArchive]) -> anyhow::Result<Names> {
    let (mut names, mut problems) = (Names::new(), Vec::new());
    for archive in archives {
        match archive.read() {
            Ok(admitted) => {
                super::warn(&archive.name, &admitted.warnings);
                if !admitted.task.has_solution() {
                    problems.push(
                        Problem::failure(format!("the task `{}` has no solution", archive.name))
                            .hint("only a solution proves a task; add solution/solve.sh (Harbor) or solution.sh (Terminal-Bench 1)")
                            .into(),
                    );
                }
                names.entry(admitted.hash.to_string()).or_default().push(archive.name.clone());
            }
            Err(error) => problems.push(error),
        }
    }
    let last = problems.pop();
    for problem in problems {
        let problem: anyhow::Error = problem;
        output::warn(&one_line(&format!("{problem:#}")));
    }
    last.map_or(Ok(names), Err)
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
        if found.get("has_solution").is_some_and(|has| has == false) {
            super::warn(&archive.name, &["it has no solution, so that it can't be proven".to_owned()]);
        }
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
async fn judge(
    client: &Client,
    oracle: Option<RunId>,
    nop: Option<RunId>,
    names: &Names,
    json: bool,
) -> anyhow::Result<()> {
    let (Some(oracle), Some(nop)) = (oracle, nop) else { return Ok(()) };
    let solved = by_task(samples(client, oracle, TERMINAL_TASKS).await?);
    let unsolved = by_task(samples(client, nop, TERMINAL_TASKS).await?);
    let mut shown = Vec::new();
    let mut failed = 0_u64;
    for (task, episodes) in &solved {
        let others = unsolved.get(task).map(Vec::as_slice).unwrap_or_default();
        let (solution, nothing) = (Count::of(episodes), Count::of(others));
        let is_proven = solution == Count { passed: EPISODES, graded: EPISODES }
            && nothing == Count { passed: 0, graded: EPISODES };
        failed += u64::from(!is_proven);
        let reasons = if is_proven { Vec::new() } else { missing_proof(episodes, others) };
        if !json {
            let task = named(task, names);
            let verdict = if is_proven { "proven" } else { "NOT proven" };
            output::print(&format!(
                "{task}: {verdict}; the solution passed {} of {EPISODES} episodes, doing nothing {} of {EPISODES}",
                solution.passed, nothing.passed
            ))?;
            reasons.iter().try_for_each(|why| output::print(&format!("  {why}")))?;
        }
        shown.push(json!({
            "task": task, "proven": is_proven, "oracle_passed": solution.passed, "nop_passed": nothing.passed,
            "oracle_graded": solution.graded, "nop_graded": nothing.graded, "reasons": reasons, "runs": [oracle, nop],
        }));
    }
    if json {
        output::json(&shown)?;
    }
    match failed {
        0 => Ok(()),
        failed => Err(Problem::failure(format!("{} not proven", format::plural(failed, "task")))
            .hint(format!(
                "`bench artifacts {oracle}` and `bench artifacts {nop}` fetch all output of the episodes"
            ))
            .into()),
    }
}

/// Returns why a task isn't proven: what kept episodes from a grade, and grades that are wrong, with the end of the output.
fn missing_proof(solution: &[Episode], nothing: &[Episode]) -> Vec<String> {
    let (oracle, nop) = (Agent::Oracle.as_str(), Agent::Nop.as_str());
    // Environments fail in the same way for both agents.
    let mut errors = BTreeMap::<String, BTreeMap<&str, u64>>::new();
    let mut ends = Vec::new();
    for (agent, episodes) in [(oracle, solution), (nop, nothing)] {
        let mut ungraded = episodes.iter().filter(|episode| episode.score.is_none()).peekable();
        ends.extend(ungraded.peek().map(|first| (agent, *first)));
        for error in ungraded.filter_map(|episode| episode.error.as_deref()) {
            *errors.entry(one_line(error)).or_default().entry(agent).or_default() += 1;
        }
    }
    let mut reasons: Vec<String> = Vec::new();
    for (error, counts) in &errors {
        let agents: Vec<&str> =
            [oracle, nop].into_iter().filter(|agent| counts.contains_key(agent)).collect();
        reasons.push(format!("{}: {}", agents.join(" and "), times(counts.values().sum(), error)));
    }
    if let Some(episode) = solution.iter().find(|episode| episode.score.is_some_and(|score| score < 1.0)) {
        reasons.push(format!("{oracle}: the tests did not give the solution the full reward"));
        reasons.extend(episode.exception().map(|message| format!("{oracle}: {}", one_line(message))));
        ends.push((oracle, episode));
    }
    if nothing.iter().any(|episode| episode.score.is_some_and(|score| score >= 1.0)) {
        reasons.push(format!("{nop}: the tests give the full reward although nothing was done"));
    }
    for (agent, episode) in ends {
        reasons.extend(episode.log_ends().map(|(log, end)| format!("{agent}: `{log}` ends with `{end}`")));
    }
    reasons
}

/// Adds the names that the user gave to a task which was stored before under another one.
fn named(task: &str, names: &Names) -> String {
    let (stored, hash) = task.rsplit_once('@').unwrap_or((task, ""));
    let given =
        names.iter().find(|(known, _)| !hash.is_empty() && known.starts_with(hash)).map(|(_, given)| given);
    match given {
        Some(given) if given.iter().any(|name| name != stored) => format!("{} ({task})", given.join(", ")),
        _ => task.to_owned(),
    }
}

fn by_task(episodes: Vec<Episode>) -> BTreeMap<String, Vec<Episode>> {
    let mut tasks = BTreeMap::<String, Vec<Episode>>::new();
    for episode in episodes {
        tasks.entry(episode.task().to_owned()).or_default().push(episode);
    }
    tasks
}
