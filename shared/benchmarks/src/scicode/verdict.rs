//! Reads verdicts from the results of a job.

use std::collections::BTreeMap;

use bench_domain::{Code, HarvestedFile, JobEnd, JobReport, SampleBody, Verdict};
use bench_items::Item;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::SciCode;
use super::problem::Problem;
use super::seal::{RESULTS, ROUNDS_MAX, seal, secret};
use crate::grading::{self, ParserResult, shorten};
use crate::scorers::sandbox::{GradingMode, Round, UnreadableReport};

/// Maximum number of characters of a program's error output that are kept.
const COMPLAINT_CHARS_MAX: usize = 400;
/// Maximum number of characters of the error for a module that can't be loaded.
const IMPORT_ERROR_CHARS_MAX: usize = 120;
/// Exit status of a shell if a program doesn't exist.
const NO_SUCH_PROGRAM: i32 = 127;
/// Note on a program that was killed, for example for lack of memory.
const KILLED: &str = "exit -9";

/// Result of a step's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepResult {
    Pass,
    Fail,
    TimeOut,
    /// The driver could not run it, or was killed before it reported the result.
    NotRun,
}

impl StepResult {
    /// Returns the official name of the result, or `not run`, which has no official equivalent.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::TimeOut => "time out",
            Self::NotRun => "not run",
        }
    }
}

/// Line written by the driver. Only `sealed` is certain to be the driver's.
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
) -> Result<Verdict, UnreadableReport> {
    let problem =
        Problem::from_row(&item.row).map_err(|error| UnreadableReport::ungradable(&error.to_string()))?;
    let lines = lines(item, body, report, round);
    let environment = lines.iter().find(|line| line.kind == "environment");
    let nothing = Line::default();
    let environment = match environment {
        Some(environment) => environment,
        // The sandbox met the driver's requirements in every round, so only a program can have removed the results or
        // prevented the driver from ending.
        None if is_final(report, round) => &nothing,
        None => return Err(missing_results(report)),
    };
    if let Some(why) = setup_problem(environment) {
        return Err(UnreadableReport::permanent(Code::SandboxSetupNeeded, why));
    }
    if let Some(why) = lines.iter().find_map(targets_problem) {
        return Err(why);
    }
    if lines.iter().any(|line| line.kind == "unsafe") {
        return Err(UnreadableReport::permanent(
            Code::SandboxNotIsolated,
            "programs in this sandbox can read the memory of their grader; use another sandbox host, or grade with `--option scicode.grading=official`, which programs can forge",
        ));
    }

    let mut results: BTreeMap<&str, (StepResult, &str, &Line)> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.kind == "step") {
        if let [name, result, note, ..] = line.sealed.as_slice() {
            let ending = match result.as_str() {
                "pass" => StepResult::Pass,
                "fail" => StepResult::Fail,
                "time out" => StepResult::TimeOut,
                _ => StepResult::NotRun,
            };
            results.entry(name).or_insert((ending, note, line));
        }
    }
    let asked: Vec<_> =
        problem.asked_steps().map(|step| (step.name, results.get(step.name).copied())).collect();
    let ending =
        |result: &Option<(StepResult, &str, &Line)>| result.map_or(StepResult::NotRun, |(ending, ..)| ending);
    if round.number < ROUNDS_MAX
        && !is_final(report, round)
        && let Some((name, _)) = asked.iter().find(|(_, result)| ending(result) == StepResult::NotRun)
    {
        return Err(UnreadableReport::retry(format!(
            "the program of step {name} was not run: {}",
            describe_end(report)
        )));
    }
    let killed = asked.iter().find(|(_, result)| result.is_some_and(|(_, note, _)| note == KILLED));
    if let (1, Some((name, _))) = (round.number, killed) {
        return Err(UnreadableReport::retry(format!(
            "the program of step {name} was killed from outside, perhaps for lack of memory"
        )));
    }

    let passed = asked.iter().filter(|(_, result)| ending(result) == StepResult::Pass).count();
    let total = problem.steps.len();
    let mut detail = Map::new();
    let mut put = |name: &str, value: Value| detail.insert(name.to_owned(), value);
    put(
        "steps",
        asked.iter().map(|(name, result)| ((*name).to_owned(), json!(ending(result).as_str()))).collect(),
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
    let by_step = |value: &dyn Fn(StepResult, &str, &Line) -> Option<Value>| -> Map<String, Value> {
        let values = asked.iter().filter_map(|(name, result)| {
            let (ending, note, line) = (*result)?;
            Some(((*name).to_owned(), value(ending, note, line)?))
        });
        values.collect()
    };
    put("seconds", by_step(&|_, _, line| Some(json!(line.seconds))).into());
    put("programs", by_step(&|_, _, line| Some(json!(line.sha256))).into());
    let complaints = by_step(&|ending, note, line| {
        let complaint = line.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(note);
        (ending != StepResult::Pass).then(|| json!(shorten(complaint.trim(), COMPLAINT_CHARS_MAX)))
    });
    let early = by_step(&|_, note, _| (note == "early-exit").then_some(Value::Null));
    let tampered = by_step(&|_, note, _| (note == "targets-changed").then_some(Value::Null));
    let isolated = benchmark.grading == GradingMode::Isolated;
    let graded = |modes: &[&str]| {
        by_step(&|_, _, line| {
            let mode = line.sealed.get(3).map_or("official", String::as_str);
            (isolated && modes.contains(&mode)).then_some(Value::Null)
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
    let first_wrong = asked.iter().position(|(_, result)| ending(result) != StepResult::Pass);
    let reason = match first_wrong.and_then(|at| asked.get(at)) {
        None => format!(
            "All {passed} steps that are asked pass; a problem with a given step officially never counts as right."
        ),
        Some((name, result)) => {
            let complaint =
                complaints.get(*name).and_then(Value::as_str).filter(|complaint| !complaint.is_empty());
            let complaint =
                complaint.map(|complaint| format!(": {}", shorten(complaint, 120))).unwrap_or_default();
            format!(
                "{passed} of {total} steps pass; step {name} ends with {}{complaint}.",
                ending(result).as_str()
            )
        }
    };
    if !complaints.is_empty() {
        put("complaints", complaints.into());
    }
    // The answer to the first wrong step decides the outcome.
    let answer = first_wrong.and_then(|at| body.steps.get(at)).map_or(&body.answer, |step| &step.answer);
    let finding = ParserResult {
        extracted: Some(format!("{passed}/{total}")),
        correct: passed == total,
        reason,
        detail,
    };
    Ok(grading::verdict_for(answer, finding))
}

/// Returns the lines that the driver wrote, identified by their seals.
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

/// Returns the error for a missing or invalid results file.
fn missing_results(report: &JobReport) -> UnreadableReport {
    if report.end == JobEnd::Exited(NO_SUCH_PROGRAM) {
        return UnreadableReport::permanent(
            Code::SandboxSetupNeeded,
            "install Python 3.10 to 3.12, then run `bench sandy setup`: there is no python3 in the sandbox",
        );
    }
    let found = match report.files.get(RESULTS) {
        None => "there is no results file".to_owned(),
        Some(HarvestedFile::Text(_)) => "the results file is not the grader's".to_owned(),
        Some(HarvestedFile::TooLong(bytes)) => format!("the results file has {bytes} bytes"),
        Some(HarvestedFile::NotAFile) => "the results file is not a file".to_owned(),
    };
    UnreadableReport::retry(format!("{found}: {}", describe_end(report)))
}

/// Returns true if missing results count as steps that were not run. This is the case after the last round, and if the
/// driver was stopped or exceeded the job's time limit, which is longer than all programs may take. It is not the case
/// if the driver itself failed.
fn is_final(report: &JobReport, round: Round<'_>) -> bool {
    let failed = report.stderr_tail.contains("Traceback") && report.stderr_tail.contains("driver.py");
    report.end.is_program_fault() || (round.number >= ROUNDS_MAX && !failed)
}

fn describe_end(report: &JobReport) -> String {
    let end = match report.end {
        JobEnd::Exited(code) => format!("the job ended with code {code}"),
        JobEnd::TimedOut => "the job exceeded its time limit".to_owned(),
        JobEnd::Vanished => "the job was killed".to_owned(),
        JobEnd::Halted => "the job was stopped by a program".to_owned(),
        JobEnd::OverLimit => "a program exceeded the sandbox's limits".to_owned(),
    };
    match report.stderr_tail.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(complaint) => format!("{end} ({})", shorten(complaint.trim(), COMPLAINT_CHARS_MAX)),
        None => end,
    }
}

/// Returns the driver's error about an unusable file with the expected values.
fn targets_problem(line: &Line) -> Option<UnreadableReport> {
    match (line.kind.as_str(), line.sealed.as_slice()) {
        ("targets", [state, why]) if state == "useless" => Some(UnreadableReport::ungradable(why)),
        ("targets", [_, why]) => Some(UnreadableReport::retry(why.as_str())),
        _ => None,
    }
}

/// Returns the reason why this sandbox can't grade any answer, starting with the remedy.
fn setup_problem(environment: &Line) -> Option<String> {
    let missing: Vec<&str> =
        environment.sealed.iter().filter_map(|entry| entry.strip_prefix("missing ")).collect();
    if !missing.is_empty() {
        // A missing module needs only its name; a broken one also needs its error.
        let (absent, broken): (Vec<&str>, Vec<&str>) = missing.into_iter().partition(|name| {
            environment
                .missing
                .get(*name)
                .is_none_or(|complaint| complaint.starts_with("ModuleNotFoundError"))
        });
        let absent = (!absent.is_empty()).then(|| format!("has no {}", absent.join(", ")));
        let broken = broken.into_iter().map(|name| {
            let complaint =
                environment.missing.get(name).map(|complaint| shorten(complaint, IMPORT_ERROR_CHARS_MAX));
            format!("cannot load {name} ({})", complaint.unwrap_or_default())
        });
        let all: Vec<String> = absent.into_iter().chain(broken).collect();
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

/// Returns warnings about versions that may make right programs fail.
fn too_new(environment: &Line) -> Vec<String> {
    let number = |name: &str| -> Option<(u32, u32)> {
        let mut parts = environment.versions.get(name)?.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    let mut warnings = Vec::new();
    if number("numpy").is_some_and(|version| version >= (2, 0)) {
        warnings.push(format!(
            "{}: programs and tests can't use functions that NumPy 2 removed",
            versions(environment)
        ));
    }
    if number("scipy").is_some_and(|version| version >= (1, 14)) {
        warnings.push(format!(
            "{}: programs and tests can't use `simps` and other functions that SciPy 1.14 removed",
            versions(environment)
        ));
    }
    warnings
}
