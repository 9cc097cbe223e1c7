//! `bench tasks check`: proves that tasks can be solved, and that they aren't solved from the start.

use std::collections::BTreeMap;

use bench_domain::{Agent, RunId};
use bench_runs::TERMINAL_TASKS;
use serde_json::{Value, json};

use super::{CheckArgs, code};
use crate::causes::{one_line, times};
use crate::client::{Client, Task};
use crate::code_archive;
use crate::commands::options::parse_options;
use crate::commands::run::session::Session;
use crate::commands::run::tasks::{is_task_refusal, once_each, order_tasks, store_each};
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
    /// Says how many episodes passed, or that none has a grade.
    fn shown(self) -> String {
        match self.graded {
            0 => "got no grade".to_owned(),
            _ => format!("passed {} of {EPISODES} episodes", self.passed),
        }
    }

    fn of(episodes: &[Episode]) -> Self {
        let scores = || episodes.iter().filter_map(|episode| episode.score);
        let count = |scores: &mut dyn Iterator<Item = f64>| u32::try_from(scores.count()).unwrap_or(u32::MAX);
        Self { passed: count(&mut scores().filter(|score| *score >= 1.0)), graded: count(&mut scores()) }
    }
}

/// A task that can't be proven, and why.
#[derive(Debug)]
struct Unprovable {
    name: String,
    error: anyhow::Error,
}

impl Unprovable {
    /// Returns the reason in one line, with what to do.
    fn why(&self) -> String {
        let hint = self.error.downcast_ref::<Problem>().and_then(Problem::advice);
        let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
        one_line(&format!("{:#}{hint}", self.error))
    }
}

pub(super) async fn run(mut args: CheckArgs) -> anyhow::Result<ExitStatus> {
    let (programming, others) = code_archive::split(&args.paths)?;
    if !programming.is_empty() {
        if let Some(other) = others.first() {
            let why = format!("`{}` is no programming task, unlike the others", other.display());
            return Err(Problem::usage(why)
                .hint("a programming task has metadata.json; check terminal tasks in a command of their own")
                .into());
        }
        let checked = code::check(&args, &programming).await?;
        if args.json {
            output::json(&checked)?;
        }
        return code::verdict(&checked, &args).map(|()| ExitStatus::Success);
    }
    args.paths = others;
    let tasks = task_archive::read_each(&args.paths);
    if args.no_episodes {
        return check_files(&args, tasks).await;
    }
    let is_remote = args.server.server().is_some();
    let options = parse_options(&args.option, &[TERMINAL_TASKS.to_owned()], &BTreeMap::new(), is_remote)?;
    results::check_folder(&args.work.out)?;
    let (given, names, mut unprovable) = provable(tasks);
    if given.is_empty() {
        return Err(none_provable(unprovable, args.json)?);
    }
    let session = Session::open(&args.work, &args.server, &args.data).await?;
    let ordered = async {
        let tasks = stored(&session.client, given, &mut unprovable).await?;
        if tasks.is_empty() {
            return Err(none_provable(std::mem::take(&mut unprovable), args.json)?);
        }
        if !args.json {
            unprovable.iter().try_for_each(print_unprovable)?;
        }
        let mut runs = Vec::new();
        for agent in ["oracle", "nop"] {
            runs.push(order_tasks(&session, &tasks, agent, EPISODES, &options).await?);
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
                let proof = judge(client, oracle, nop, &names, &unprovable, json).await;
                if !json {
                    output::note(&format!("Signed archives of both runs are in `{}`", work.out.display()));
                }
                proof
            };
            session.finish_runs(&runs, true, work, results::ResultsForm::Nothing, proof).await
        }
    }
}

/// Reads all tasks. Returns those that can be proven, their names, and the others.
fn provable(tasks: Vec<(String, anyhow::Result<TaskArchive>)>) -> (Vec<GivenTask>, Names, Vec<Unprovable>) {
    let (mut given, mut names, mut unprovable) = (Vec::new(), Names::new(), Vec::new());
    for (name, task) in tasks {
        let read = task.and_then(|archive| {
            let admitted = archive.read()?;
            super::warn(&name, &admitted.warnings);
            if !admitted.task.has_solution() {
                return Err(Problem::failure(format!("the task `{name}` has no solution"))
                    .hint("only a solution proves a task; add solution/solve.sh (Harbor) or solution.sh (Terminal-Bench 1)")
                    .into());
            }
            Ok((admitted.hash.to_string(), archive))
        });
        match read {
            Ok((hash, archive)) => {
                names.entry(hash).or_default().push(name);
                given.push(GivenTask::Archive(archive));
            }
            Err(error) => unprovable.push(Unprovable { name, error }),
        }
    }
    (given, names, unprovable)
}

/// Stores tasks and returns them, each once. Adds those that the server refuses to the unprovable ones.
async fn stored(
    client: &Client,
    given: Vec<GivenTask>,
    unprovable: &mut Vec<Unprovable>,
) -> anyhow::Result<Vec<Task>> {
    let mut accepted = Vec::with_capacity(given.len());
    for (task, stored) in given.iter().zip(store_each(client, &given).await?) {
        match stored {
            Ok(stored) => accepted.push((task.name(), stored)),
            Err(error) => unprovable.push(Unprovable { name: task.name().to_owned(), error }),
        }
    }
    Ok(once_each(accepted))
}

/// Returns the error if no task can be proven.
fn none_provable(mut unprovable: Vec<Unprovable>, json: bool) -> anyhow::Result<anyhow::Error> {
    if let [_] = unprovable.as_slice()
        && let Some(only) = unprovable.pop()
    {
        return Ok(only.error);
    }
    if json {
        output::json(&unprovable.iter().map(json_of_unprovable).collect::<Vec<_>>())?;
    } else {
        unprovable.iter().try_for_each(print_unprovable)?;
    }
    Ok(not_proven(unprovable.len() as u64).into())
}

fn print_unprovable(task: &Unprovable) -> anyhow::Result<()> {
    output::print(&format!("{}: NOT proven; {}", task.name, task.why()))
}

fn json_of_unprovable(task: &Unprovable) -> Value {
    json!({
        "task": task.name, "proven": false, "oracle_passed": 0, "nop_passed": 0, "oracle_graded": 0, "nop_graded": 0,
        "reasons": [task.why()], "runs": [],
    })
}

fn not_proven(tasks: u64) -> Problem {
    Problem::failure(format!("{} not proven", format::plural(tasks, "task")))
}

/// Sends the tasks to the server for a check of their files, and prints the result of each.
async fn check_files(
    args: &CheckArgs,
    mut tasks: Vec<(String, anyhow::Result<TaskArchive>)>,
) -> anyhow::Result<ExitStatus> {
    // The error of a single task is that of the command.
    if let [(_, Err(_))] = tasks.as_slice()
        && let Some((_, Err(error))) = tasks.pop()
    {
        return Err(error);
    }
    let api = Api::open(&args.server, &args.data).await?;
    let mut checked = Vec::new();
    let done = check_each(args, &api.client, tasks, &mut checked).await;
    api.close().await;
    if args.json {
        output::json(&checked)?;
    }
    let refused = done?;
    if refused < checked.len() as u64 {
        output::note(
            "Nothing was run: whether the solution earns the full reward, and doing nothing earns less, isn't checked",
        );
    }
    match refused {
        0 => Ok(ExitStatus::Success),
        refused => Err(Problem::failure(format!("{} refused", format::plural(refused, "task"))).into()),
    }
}

/// Adds the result of each task. Returns the number of refused ones.
async fn check_each(
    args: &CheckArgs,
    client: &Client,
    tasks: Vec<(String, anyhow::Result<TaskArchive>)>,
    checked: &mut Vec<Value>,
) -> anyhow::Result<u64> {
    let mut refused = 0;
    for (name, task) in tasks {
        // Every refused task is reported, not only the first one.
        let found = match task {
            Ok(archive) => match client.check_task(&archive).await {
                Ok(found) => Ok(found),
                Err(error) if error.downcast_ref::<Refusal>().is_some_and(is_task_refusal) => {
                    Err(one_line(&error.to_string()))
                }
                Err(error) => return Err(super::refused(&archive, error)),
            },
            Err(error) => Err(Unprovable { name: name.clone(), error }.why()),
        };
        let (found, line) = match found {
            Ok(found) => (found, "its files are accepted".to_owned()),
            Err(why) => {
                refused += 1;
                (json!({ "name": name, "refused": why }), format!("refused; {why}"))
            }
        };
        if !args.json {
            output::print(&format!("{name}: {line}"))?;
        }
        super::warn(&name, &warnings(&found));
        if found.get("has_solution").is_some_and(|has| has == false) {
            super::warn(&name, &["it has no solution, so that it can't be proven".to_owned()]);
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

/// Compares the episodes of both runs, prints a line for each task, and fails if one isn't proven, or is among those that
/// can't be.
async fn judge(
    client: &Client,
    oracle: Option<RunId>,
    nop: Option<RunId>,
    names: &Names,
    unprovable: &[Unprovable],
    json: bool,
) -> anyhow::Result<()> {
    let (Some(oracle), Some(nop)) = (oracle, nop) else { return Ok(()) };
    let solved = by_task(samples(client, oracle, TERMINAL_TASKS).await?);
    let unsolved = by_task(samples(client, nop, TERMINAL_TASKS).await?);
    let mut shown: Vec<Value> = unprovable.iter().map(json_of_unprovable).collect();
    let (broken, mut failed) = (unprovable.len() as u64, 0_u64);
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
                "{task}: {verdict}; the solution {}, doing nothing {}",
                solution.shown(),
                nothing.shown()
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
        0 if broken == 0 => Ok(()),
        0 => Err(not_proven(broken).into()),
        failed => Err(not_proven(failed + broken)
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
        let reward = episode.score.unwrap_or_default();
        reasons.push(format!("{oracle}: the tests gave the solution the reward {reward}, not the full one"));
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
