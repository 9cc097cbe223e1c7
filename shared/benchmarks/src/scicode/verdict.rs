//! From what a job left behind to a verdict.

use std::collections::BTreeMap;

use bench_domain::{Code, Harvested, JobEnd, JobReport, SampleBody, Verdict};
use bench_items::Item;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::SciCode;
use super::problem::Problem;
use super::seal::{RESULTS, ROUNDS_MAX, seal, secret};
use crate::grading::{self, Finding, shortened};
use crate::scorers::sandbox::{GradingMode, Round, Unread};

/// Characters of a program's complaint that are kept.
const COMPLAINT_CHARS_MAX: usize = 400;
/// Characters of what is said about a module that cannot be loaded.
const SPOILT_CHARS_MAX: usize = 120;
/// What a shell says when there is no such program.
const NO_SUCH_PROGRAM: i32 = 127;
/// The note of a program that something killed, such as a lack of memory.
const KILLED: &str = "exit -9";

/// How a step's program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Pass,
    Fail,
    TimeOut,
    /// The driver could not run it, or did not live to tell.
    NotRun,
}

impl Ending {
    /// The official words, and one for what does not happen there.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::TimeOut => "time out",
            Self::NotRun => "not run",
        }
    }
}

/// A line of the driver's. Only what is in `sealed` is certainly the driver's.
#[derive(Debug, Default, Deserialize)]
struct Line {
    kind: String,
    sealed: Vec<String>,
    seal: String,
    #[serde(default)]
    versions: BTreeMap<String, String>,
    #[serde(default)]
    missing: BTreeMap<String, String>,
    #[serde(default)]
    broken: String,
    #[serde(default)]
    grader: String,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    sha256: String,
}

pub(super) fn read(
    benchmark: SciCode,
    item: &Item,
    body: &SampleBody,
    report: &JobReport,
    round: Round<'_>,
) -> Result<Verdict, Unread> {
    let problem = Problem::of(&item.row).map_err(|error| Unread::ungradable(&error.to_string()))?;
    let lines = lines(item, body, report, round);
    let environment = lines.iter().find(|line| line.kind == "environment");
    let nothing = Line::default();
    let environment = match environment {
        Some(environment) => environment,
        // The sandbox had what the driver needs, each time: only a program can have removed what it wrote, or kept it
        // from ending.
        None if counts_anyway(report, round) => &nothing,
        None => return Err(without_results(report)),
    };
    if let Some(why) = unfit(environment) {
        return Err(Unread::for_good(Code::SandboxSetupNeeded, why));
    }
    if let Some(why) = lines.iter().find_map(useless_targets) {
        return Err(why);
    }
    if lines.iter().any(|line| line.kind == "unsafe") {
        return Err(Unread::for_good(
            Code::SandboxNotIsolated,
            "programs in this sandbox can read the memory of their grader; use another sandbox host, or grade with `--option scicode.grading=official`, which programs can forge",
        ));
    }

    let mut told: BTreeMap<&str, (Ending, &str, &Line)> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.kind == "step") {
        if let [name, result, note, ..] = line.sealed.as_slice() {
            let ending = match result.as_str() {
                "pass" => Ending::Pass,
                "fail" => Ending::Fail,
                "time out" => Ending::TimeOut,
                _ => Ending::NotRun,
            };
            told.entry(name).or_insert((ending, note, line));
        }
    }
    let asked: Vec<_> = problem.asked().map(|step| (step.name, told.get(step.name).copied())).collect();
    let ending = |told: &Option<(Ending, &str, &Line)>| told.map_or(Ending::NotRun, |(ending, ..)| ending);
    if round.number < ROUNDS_MAX
        && !counts_anyway(report, round)
        && let Some((name, _)) = asked.iter().find(|(_, told)| ending(told) == Ending::NotRun)
    {
        return Err(Unread::again(format!("the program of step {name} was not run: {}", end_of(report))));
    }
    let killed = asked.iter().find(|(_, told)| told.is_some_and(|(_, note, _)| note == KILLED));
    if let (1, Some((name, _))) = (round.number, killed) {
        return Err(Unread::again(format!(
            "the program of step {name} was killed from outside, perhaps for lack of memory"
        )));
    }

    let passed = asked.iter().filter(|(_, told)| ending(told) == Ending::Pass).count();
    let total = problem.steps.len();
    let mut detail = Map::new();
    let mut put = |name: &str, value: Value| detail.insert(name.to_owned(), value);
    put(
        "steps",
        asked.iter().map(|(name, told)| ((*name).to_owned(), json!(ending(told).as_str()))).collect(),
    );
    put("steps_passed", json!(passed));
    put("steps_asked", json!(asked.len()));
    put("steps_total", json!(total));
    put("old_script_correct", json!(passed == asked.len()));
    put("given_steps", json!(benchmark.given.as_str()));
    put("with_background", json!(benchmark.with_background));
    put("grader", json!(environment.grader));
    put("grading", json!(benchmark.grading.as_str()));
    put("environment", json!(environment.versions));
    put("problem_id", json!(problem.id));
    if let Some(isolation) = &report.isolation {
        put("isolation", json!(isolation));
    }
    let of_steps = |value: &dyn Fn(Ending, &str, &Line) -> Option<Value>| -> Map<String, Value> {
        let told = asked.iter().filter_map(|(name, told)| {
            let (ending, note, line) = (*told)?;
            Some(((*name).to_owned(), value(ending, note, line)?))
        });
        told.collect()
    };
    put("seconds", of_steps(&|_, _, line| Some(json!(line.seconds))).into());
    put("programs", of_steps(&|_, _, line| Some(json!(line.sha256))).into());
    let complaints = of_steps(&|ending, note, line| {
        let said = line.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(note);
        (ending != Ending::Pass).then(|| json!(shortened(said.trim(), COMPLAINT_CHARS_MAX)))
    });
    let early = of_steps(&|_, note, _| (note == "early-exit").then_some(Value::Null));
    let tampered = of_steps(&|_, note, _| (note == "targets-changed").then_some(Value::Null));
    let isolated = benchmark.grading == GradingMode::Isolated;
    let graded = |ways: &[&str]| {
        of_steps(&|_, _, line| {
            let way = line.sealed.get(3).map_or("official", String::as_str);
            (isolated && ways.contains(&way)).then_some(Value::Null)
        })
    };
    let (officially, readable) = (graded(&["official"]), graded(&["readable"]));
    for (name, steps) in [
        ("early_exits", early),
        ("changed_targets", tampered),
        ("officially_graded", officially),
        ("readable_targets", readable),
    ] {
        if !steps.is_empty() {
            put(name, steps.keys().cloned().collect());
        }
    }
    let warnings = too_new(environment);
    if !warnings.is_empty() {
        put("warnings", json!(warnings));
    }
    let first_wrong = asked.iter().position(|(_, told)| ending(told) != Ending::Pass);
    let reason = match first_wrong.and_then(|at| asked.get(at)) {
        None => format!(
            "All {passed} steps that are asked pass; a problem with a given step officially never counts as right."
        ),
        Some((name, told)) => {
            let said = complaints.get(*name).and_then(Value::as_str).filter(|said| !said.is_empty());
            let said = said.map(|said| format!(": {}", shortened(said, 120))).unwrap_or_default();
            format!("{passed} of {total} steps pass; step {name} ends with {}{said}.", ending(told).as_str())
        }
    };
    if !complaints.is_empty() {
        put("complaints", complaints.into());
    }
    // Why a problem is not right is told by the answer to the first step that is not.
    let answer = first_wrong.and_then(|at| body.steps.get(at)).map_or(&body.answer, |step| &step.answer);
    let finding =
        Finding { extracted: Some(format!("{passed}/{total}")), correct: passed == total, reason, detail };
    Ok(grading::settle(answer, finding))
}

/// The lines that the driver wrote, told by their seals.
fn lines(item: &Item, body: &SampleBody, report: &JobReport, round: Round<'_>) -> Vec<Line> {
    let secret = secret(item, &body.steps, round.nonce);
    let lines = report.text(RESULTS).unwrap_or_default().lines();
    let lines = lines.filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines
        .filter(|line| {
            let sealed: Vec<&str> = line.sealed.iter().map(String::as_str).collect();
            seal(&secret, &line.kind, &sealed) == line.seal
        })
        .collect()
}

/// Why there is nothing to read.
fn without_results(report: &JobReport) -> Unread {
    if report.end == JobEnd::Exited(NO_SUCH_PROGRAM) {
        return Unread::for_good(
            Code::SandboxSetupNeeded,
            "install Python 3.10 to 3.12, then run `bench sandy setup`: there is no python3 in the sandbox",
        );
    }
    let found = match report.files.get(RESULTS) {
        None => "there is no results file".to_owned(),
        Some(Harvested::Text(_)) => "the results file is not the grader's".to_owned(),
        Some(Harvested::TooLong(bytes)) => format!("the results file has {bytes} bytes"),
        Some(Harvested::NotAFile) => "the results file is not a file".to_owned(),
    };
    Unread::again(format!("{found}: {}", end_of(report)))
}

/// Whether what is missing in this report counts as not run: after the last round, and where the driver did not end
/// within the job's time, which is more than all programs may take, or was stopped. Not where the driver itself failed.
fn counts_anyway(report: &JobReport, round: Round<'_>) -> bool {
    let failed = report.stderr_tail.contains("Traceback") && report.stderr_tail.contains("driver.py");
    report.end.is_held_up() || (round.number >= ROUNDS_MAX && !failed)
}

fn end_of(report: &JobReport) -> String {
    let end = match report.end {
        JobEnd::Exited(code) => format!("the job ended with code {code}"),
        JobEnd::TimedOut => "the job's time was up".to_owned(),
        JobEnd::Vanished => "the job was killed".to_owned(),
        JobEnd::Halted => "the job was stopped by a program".to_owned(),
        JobEnd::OverLimit => "a program went over the sandbox's limits".to_owned(),
    };
    match report.stderr_tail.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(said) => format!("{end} ({})", shortened(said.trim(), COMPLAINT_CHARS_MAX)),
        None => end,
    }
}

/// What the driver says about the file with the right values where it cannot be used.
fn useless_targets(line: &Line) -> Option<Unread> {
    match (line.kind.as_str(), line.sealed.as_slice()) {
        ("targets", [state, why]) if state == "useless" => Some(Unread::ungradable(why)),
        ("targets", [_, why]) => Some(Unread::again(why.as_str())),
        _ => None,
    }
}

/// Why nothing that runs in this sandbox says anything about an answer: begins with what helps.
fn unfit(environment: &Line) -> Option<String> {
    let missing: Vec<&str> =
        environment.sealed.iter().filter_map(|entry| entry.strip_prefix("missing ")).collect();
    if !missing.is_empty() {
        // Only what is there and does not work needs more than its name.
        let (absent, spoilt): (Vec<&str>, Vec<&str>) = missing.into_iter().partition(|name| {
            environment.missing.get(*name).is_none_or(|said| said.starts_with("ModuleNotFoundError"))
        });
        let absent = (!absent.is_empty()).then(|| format!("has no {}", absent.join(", ")));
        let spoilt = spoilt.into_iter().map(|name| {
            let said = environment.missing.get(name).map(|said| shortened(said, SPOILT_CHARS_MAX));
            format!("cannot load {name} ({})", said.unwrap_or_default())
        });
        let all: Vec<String> = absent.into_iter().chain(spoilt).collect();
        return Some(format!("run `bench sandy setup`: the sandbox's Python {}", all.join(", ")));
    }
    environment.sealed.iter().any(|entry| entry == "broken").then(|| {
        format!(
            "run `bench sandy setup` for older versions: the problem's own import lines do not run with {} ({})",
            versions(environment),
            environment.broken
        )
    })
}

fn versions(environment: &Line) -> String {
    let known = ["numpy", "scipy"].iter();
    let known = known.filter_map(|name| Some(format!("{name} {}", environment.versions.get(*name)?)));
    known.collect::<Vec<_>>().join(" and ")
}

/// What may have made right programs fail.
fn too_new(environment: &Line) -> Vec<String> {
    let number = |name: &str| -> Option<(u32, u32)> {
        let mut parts = environment.versions.get(name)?.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    let mut warnings = Vec::new();
    if number("numpy").is_some_and(|version| version >= (2, 0)) {
        warnings.push(format!(
            "{}: functions that NumPy 2 removed are not there for programs and tests",
            versions(environment)
        ));
    }
    if number("scipy").is_some_and(|version| version >= (1, 14)) {
        warnings.push(format!(
            "{}: `simps` and others that SciPy 1.14 removed are not there",
            versions(environment)
        ));
    }
    warnings
}
