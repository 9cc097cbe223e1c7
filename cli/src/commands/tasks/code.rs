//! `bench tasks check` for programming tasks: proves that a task can be solved, that plausible wrong solutions fail, and that
//! known cheats earn nothing.

mod checked;
mod place;
mod speed;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use bench_benchmarks::code_lab::{Extent, TaskResults};
use bench_code_tasks::{Answer, CodeTask, OUTSIDE, PROOF_FILE, Proof, Workspace, WrongSolution, cheats};
use bench_stack::sandboxes::SandboxSettings;
use bench_stack::sandboxes::speed::HostSpeed;
use futures_util::{StreamExt, stream};
use serde_json::Value;

use self::checked::Checked;
use self::place::{Place, Ran};
use super::{Cheats, CheckArgs};
use crate::code_archive::{self, CodeArchive};
use crate::exit::Problem;
use crate::{format, output};

/// Number of wrong solutions that a task must have.
const WRONG_MIN: usize = 2;
/// Maximum number of names in a reason.
const NAMES_MAX: usize = 5;
/// Maximum number of characters of a build's output in a reason.
const BUILD_CHARS_MAX: usize = 300;

/// Remark on a check of the files only.
const NOT_CHECKED: &str = "Nothing was run: whether the reference passes, the untouched project and wrong solutions fail, and cheats earn nothing isn't checked";

/// Checks the tasks at these paths. Returns the number of those that aren't proven.
pub(super) async fn check(args: &CheckArgs, paths: &[PathBuf]) -> anyhow::Result<Vec<Value>> {
    let mut checked = Vec::new();
    let mut archives = Vec::new();
    for path in paths {
        match code_archive::read(path).and_then(|archive| Ok((archive.read()?, archive))) {
            Ok(read) => archives.push(read),
            Err(error) => {
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                checked.push(Checked { problems: vec![format!("{error:#}")], ..Checked::new(&name) });
            }
        }
    }
    if !args.no_episodes && !archives.is_empty() {
        let settings = SandboxSettings::from_vars(&args.data.path()?, None, |name| std::env::var(name).ok())?;
        let speed = match args.record {
            true => speed::measure_missing(&settings, archives.iter().map(|(task, _)| task.language)).await?,
            false => HostSpeed::new(),
        };
        let place = Place::open(settings).await?;
        let done = each(args, &place, &speed, &archives, &mut checked).await;
        place.close().await;
        done?;
    } else {
        checked.extend(archives.iter().map(|(task, archive)| Checked {
            problems: task.ungradable().into_iter().collect(),
            ..Checked::new(&archive.name)
        }));
        for one in checked.iter().filter(|_| !args.json) {
            match one.problems.first() {
                None => output::print(&format!("{}: its files are accepted", one.name))?,
                Some(problem) => output::print(&format!("{}: refused; {problem}", one.name))?,
            }
        }
        for (_, archive) in archives.iter().filter(|(task, _)| task.reference.is_none()) {
            super::warn(
                &archive.name,
                &["it has no reference solution, so that it can't be proven".to_owned()],
            );
        }
        if checked.iter().any(|one| one.problems.is_empty()) {
            output::note(NOT_CHECKED);
        }
    }
    Ok(checked.iter().map(Checked::json).collect())
}

/// Checks the tasks, the longest ones first, so that no sandbox is without work at the end. Shows the result of each when
/// it's there, and returns them in the given order.
async fn each(
    args: &CheckArgs,
    place: &Place,
    speed: &HostSpeed,
    archives: &[(CodeTask, CodeArchive)],
    checked: &mut Vec<Checked>,
) -> anyhow::Result<()> {
    let mut work: Vec<_> = archives
        .iter()
        .enumerate()
        .map(|(number, (task, archive))| (number, task, archive, with_cheats(args, archives, task)))
        .collect();
    work.sort_by_key(|(_, task, _, has_cheats)| std::cmp::Reverse((*has_cheats, expected_ms(task))));
    let work = work.into_iter().map(async |(number, task, archive, has_cheats)| {
        one(args, place, speed, task, archive, has_cheats).await.map(|checked| (number, checked))
    });
    for failed in checked.iter() {
        show(args, failed)?;
    }
    let mut done = stream::iter(work).buffer_unordered(place.slots);
    let mut by_number = BTreeMap::new();
    while let Some(one) = done.next().await {
        let (number, one) = one?;
        show(args, &one)?;
        by_number.insert(number, one);
    }
    checked.extend(by_number.into_values());
    Ok(())
}

/// Returns the time of a task's reference as it was recorded; the maximum if it wasn't.
fn expected_ms(task: &CodeTask) -> u64 {
    task.proof.as_ref().and_then(|proof| proof.reference_ms).unwrap_or(u64::MAX)
}

/// Returns true if the known cheats are tried at a task.
fn with_cheats(args: &CheckArgs, all: &[(CodeTask, CodeArchive)], task: &CodeTask) -> bool {
    match args.cheats {
        Cheats::All => true,
        Cheats::None => false,
        Cheats::PerLanguage => {
            let same = all.iter().map(|(task, _)| task).filter(|other| other.language == task.language);
            same.min_by_key(|other| expected_ms(other)).is_some_and(|fastest| std::ptr::eq(fastest, task))
        }
    }
}

fn show(args: &CheckArgs, checked: &Checked) -> anyhow::Result<()> {
    if args.json {
        return Ok(());
    }
    output::print(&checked.line())?;
    checked.problems.iter().try_for_each(|problem| output::print(&format!("  {problem}")))
}

/// Checks a task, and records its proof if that is asked for.
async fn one(
    args: &CheckArgs,
    place: &Place,
    speed: &HostSpeed,
    task: &CodeTask,
    archive: &CodeArchive,
    has_cheats: bool,
) -> anyhow::Result<Checked> {
    let mut checked = Checked::new(&archive.name);
    if let Some(problem) = prove(args, place, task, has_cheats, &mut checked).await? {
        checked.problems.push(problem);
    }
    if let Some(proof) = &mut checked.proof {
        proof.host_ms = speed.get(task.language.as_str()).copied();
    }
    if let Some(proof) = checked.proof.as_ref().filter(|_| checked.is_proven()) {
        if args.record {
            let folder = archive.folder.as_ref().with_context(|| {
                format!("the proof of `{}` can't be written into an archive; give its folder", archive.name)
            })?;
            let text = serde_json::to_string_pretty(proof).context("could not write the proof")?;
            let path = folder.join(PROOF_FILE);
            std::fs::write(&path, format!("{text}\n"))
                .with_context(|| format!("could not write `{}`", path.display()))?;
        } else if let Some(recorded) = &task.proof
            && recorded.tests != proof.tests
        {
            checked.problems.push(
                "the recorded tests aren't those of the reference; record them again with --record"
                    .to_owned(),
            );
        }
    }
    Ok(checked)
}

/// Runs everything that proves a task. Returns the problem that ends the check, if there is one.
async fn prove(
    args: &CheckArgs,
    place: &Place,
    task: &CodeTask,
    has_cheats: bool,
    checked: &mut Checked,
) -> anyhow::Result<Option<String>> {
    if let Some(why) = task.ungradable() {
        return Ok(Some(why));
    }
    let results = match place.run(task, &task.workspace, Extent::FirstFailure).await? {
        Ran::NotRunnable(why) => {
            checked.not_runnable = Some(why);
            return Ok(None);
        }
        Ran::Nothing(why) => return Ok(Some(format!("untouched: no results: {why}"))),
        Ran::Results(results) => results,
    };
    if let Some(problem) = blocking(&results) {
        return Ok(Some(problem));
    }
    if results.passes(None) {
        checked.problems.push("untouched: it passes all tests without any change".to_owned());
    }
    let Some(reference) = &task.reference else {
        return Ok(Some("it has no reference solution; add solutions/reference.diff".to_owned()));
    };
    let workspace = match applied(task, reference) {
        Ok(workspace) => workspace,
        Err(why) => return Ok(Some(format!("reference: {why}"))),
    };
    let mut tests: Option<Vec<String>> = None;
    for number in 1..=args.repeat {
        let Some(results) = results_of(place, task, &workspace, "reference", Extent::All, checked).await?
        else {
            return Ok(None);
        };
        checked.seconds = checked.seconds.max(results.build_seconds + results.test_seconds);
        if !results.passes(None) {
            return Ok(Some(format!("reference, run {number}: {}", failure(&results))));
        }
        let names: Vec<String> = results.tests.into_keys().collect();
        if tests.as_ref().is_some_and(|before| *before != names) {
            checked.problems.push(format!("reference, run {number}: it has other tests than the run before"));
        }
        tests = Some(names);
    }
    let tests = tests.unwrap_or_default();
    // The tests that a wrong solution passes were looked at when the proof was recorded.
    let is_whole = args.record || task.proof.is_none() || !task.command.is_outside();
    // With --wrong, a proof of these very solutions stands for those that aren't run.
    let wrong_max = args.wrong.filter(|_| !is_whole && task.are_solutions_proven());
    let wrong_max = wrong_max.map_or(usize::MAX, |number| number as usize);
    let (run, left_out) = task.wrong.split_at(task.wrong.len().min(wrong_max));
    checked.wrong_left_out = left_out.len();
    let wrong = wrong_solutions(place, task, run, &tests, is_whole, checked).await?;
    if has_cheats {
        try_cheats(place, task, &tests, checked).await?;
    }
    checked.proof = Some(Proof {
        task_digest: task.digest.clone(),
        solutions_digest: Some(task.solutions_digest.clone()),
        tests,
        repeats: args.repeat,
        reference_ms: milliseconds(checked.seconds),
        host_ms: None,
        wrong,
    });
    Ok(None)
}

fn milliseconds(seconds: f64) -> Option<u64> {
    Duration::try_from_secs_f64(seconds).ok().and_then(|time| u64::try_from(time.as_millis()).ok())
}

/// Runs the wrong solutions, and returns the tests that each of them fails.
async fn wrong_solutions(
    place: &Place,
    task: &CodeTask,
    solutions: &[WrongSolution],
    tests: &[String],
    is_whole: bool,
    checked: &mut Checked,
) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let mut all = BTreeMap::new();
    if task.wrong.len() < WRONG_MIN {
        checked.problems.push(format!(
            "it has {}; {WRONG_MIN} are needed, as solutions/wrong-NAME.diff with an entry in `admission.wrong`",
            format::plural(task.wrong.len() as u64, "wrong solution")
        ));
    }
    for wrong in solutions {
        let what = format!("wrong solution {}", wrong.name);
        let workspace = match applied(task, &wrong.answer) {
            Ok(workspace) => workspace,
            Err(why) => {
                checked.problems.push(format!("{what}: {why}"));
                continue;
            }
        };
        let mut named = wrong.fails.clone();
        named.sort();
        let extent = if is_whole { Extent::All } else { Extent::Only(&named) };
        let Some(results) = results_of(place, task, &workspace, &what, extent, checked).await? else {
            continue;
        };
        let failed = results.missed(Some(if is_whole { tests } else { &named }));
        if results.build.is_some() {
            checked.problems.push(format!("{what}: {}", failure(&results)));
        } else if failed.is_empty() {
            checked.problems.push(format!("{what}: it passes, although {}", wrong.why));
        } else if failed != named {
            let (failed, named) = (shown(&failed), shown(&named));
            checked.problems.push(format!("{what}: it fails {failed}; `admission` names {named}"));
        }
        all.insert(wrong.name.clone(), failed);
    }
    Ok(all)
}

async fn try_cheats(
    place: &Place,
    task: &CodeTask,
    tests: &[String],
    checked: &mut Checked,
) -> anyhow::Result<()> {
    for reply in OUTSIDE {
        checked.cheats += 1;
        if Answer::read(reply).is_ok_and(|answer| answer.apply(&task.workspace).is_ok()) {
            checked.problems.push("cheat: an answer writes outside of the workspace".to_owned());
        }
    }
    for cheat in cheats(task) {
        checked.cheats += 1;
        match place.run(task, &cheat.workspace, Extent::FirstFailure).await? {
            Ran::Results(results) if results.passes(Some(tests)) => {
                checked.problems.push(format!("cheat: an answer that {} passes", cheat.name));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Runs a workspace. Without results, adds a problem.
async fn results_of(
    place: &Place,
    task: &CodeTask,
    workspace: &Workspace,
    what: &str,
    extent: Extent<'_>,
    checked: &mut Checked,
) -> anyhow::Result<Option<TaskResults>> {
    match place.run(task, workspace, extent).await? {
        Ran::Results(results) => Ok(Some(*results)),
        Ran::Nothing(why) | Ran::NotRunnable(why) => {
            checked.problems.push(format!("{what}: no results: {why}"));
            Ok(None)
        }
    }
}

fn applied(task: &CodeTask, answer: &str) -> Result<Workspace, String> {
    let change = Answer::read(answer).map_err(|error| error.to_string())?;
    change.apply(&task.workspace).map(|applied| applied.workspace).map_err(|error| error.to_string())
}

/// Returns why nothing of the task can be run.
fn blocking(results: &TaskResults) -> Option<String> {
    if results.is_unsafe {
        return Some("programs in sandboxes of this machine can read the memory of their grader".to_owned());
    }
    results.problem.as_ref().map(|problem| format!("its tests can't be loaded: {problem}"))
}

/// Says why a workspace doesn't pass.
fn failure(results: &TaskResults) -> String {
    if let Some(build) = &results.build {
        let output = results.build_output.trim();
        let skipped = output.chars().count().saturating_sub(BUILD_CHARS_MAX);
        let end: String = output.chars().skip(skipped).collect();
        return format!("`{}` failed: {end}", build.argv.join(" "));
    }
    if let Some(crash) = &results.crash {
        return format!("the supervisor failed: {crash}");
    }
    if results.timed_out {
        return "the time limit ended the tests".to_owned();
    }
    let failed = results.missed(None);
    let first = failed.first().and_then(|name| results.tests.get(name));
    let text =
        first.map_or(String::new(), |test| format!(": {}", test.text.lines().next().unwrap_or_default()));
    match failed.is_empty() {
        true => "no test was run".to_owned(),
        false => format!("it fails {}{text}", shown(&failed)),
    }
}

fn shown(names: &[String]) -> String {
    let more = names.len().checked_sub(NAMES_MAX).filter(|more| *more > 0);
    let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
    format!("{}{more}", names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", "))
}

/// Returns the error of tasks that aren't proven; `Ok` if all are, or can't be run here.
pub(super) fn verdict(checked: &[Value], args: &CheckArgs) -> anyhow::Result<()> {
    let is = |one: &&Value| {
        one.get("reasons").and_then(Value::as_array).is_some_and(|reasons| !reasons.is_empty())
    };
    let failed = checked.iter().filter(is).count() as u64;
    let unrunnable =
        checked.iter().filter(|one| one.get("not_runnable").is_some_and(|why| !why.is_null())).count();
    let what = if args.no_episodes { "refused" } else { "not proven" };
    if failed > 0 {
        return Err(Problem::failure(format!("{} {what}", format::plural(failed, "task"))).into());
    }
    match unrunnable {
        0 => Ok(()),
        some => Err(Problem::failure(format!("{} can't be run here", format::plural(some as u64, "task")))
            .hint("`bench sandy setup --toolchains` installs languages, `--packages PATH` the packages of tasks")
            .into()),
    }
}
