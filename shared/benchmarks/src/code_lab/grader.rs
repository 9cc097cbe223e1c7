//! The job that builds an answer's workspace and runs its task's tests, and the verdict read from its results.
//!
//! `supervisor.py` runs in the sandbox. It keeps the tests in its memory, starts the answer's programs as processes that
//! can't read it (`PR_SET_DUMPABLE`, and another user if it can switch to one), and signs its results with a key that
//! only the creator of the job can compute. Test files use `lab.py` to run programs; their assertions run in the supervisor. An
//! answer can therefore pass only by what its programs print and write.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_code_tasks::{Answer as Change, CodeTask, PackedFile, Workspace, WorkspaceFile, guard};
use bench_domain::{
    Code, EpisodeLog, FileContent, JobEnd, JobFile, JobReport, JobSpec, Outcome, ResultFile, SampleBody,
    Verdict,
};
use bench_items::Item;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

pub(super) use super::environment::probe;
use super::{artifacts, describe, environment, row};
use crate::grading::{self, ParserResult, shorten};
use crate::item_problem::ItemProblem;
use crate::scorers::sandbox::{JobMaterial, Round, SandboxGrader, SandboxMetadata, UnreadableReport};
use crate::signed::{describe_failure, read_signed, unsigned_text};

/// Program that grades an answer.
pub(super) const SUPERVISOR: &str = concat!(
    include_str!("../supervisor/capabilities.py"),
    include_str!("../supervisor/supervised.py"),
    include_str!("supervisor.py")
);
const LAB: &str = include_str!("lab.py");
const INSIDE: &str = include_str!("inside.py");

const RESULTS: &str = "results.json";
const STARTED: &str = "started.json";
const RESULTS_BYTES_MAX: u64 = 16 << 20;
const STARTED_BYTES_MAX: u64 = 4 << 10;
/// Memory for a build and its tests.
pub(super) const MEMORY_BYTES: u64 = 3 << 30;
/// Time that the supervisor needs in addition to the build and the tests.
const SUPERVISOR_TIME: Duration = Duration::from_secs(120);
/// Maximum number of sandboxes per sample.
const ROUNDS_MAX: u32 = 3;
/// Maximum number of failed tests that a verdict describes, and of characters of each description.
const FAILED_MAX: usize = 20;
const FAILURE_CHARS_MAX: usize = 500;
/// Maximum number of characters of a build's output in a verdict.
const BUILD_CHARS_MAX: usize = 2_000;

static METADATA: SandboxMetadata = SandboxMetadata {
    needs: "Python 3.10 or later; Node, g++, Go and Rust for their languages",
    packages: &[],
    grader: "own",
    rounds_max: ROUNDS_MAX,
    verdict: "Right is a change that passes every test of the reference solution.",
};

/// Grader of programming tasks.
#[derive(Debug)]
pub(crate) struct Grader;

pub(super) static GRADER: Grader = Grader;

/// Results of one job.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct TaskResults {
    /// The command that failed to build the workspace.
    #[serde(default)]
    pub build: Option<FailedBuild>,
    /// Output of the build, shortened in the middle.
    #[serde(default)]
    pub build_output: String,
    /// Time of the build, in seconds.
    #[serde(default)]
    pub build_seconds: f64,
    /// Results by the names of the tests.
    #[serde(default)]
    pub tests: BTreeMap<String, TestResult>,
    /// Output of the tests, shortened in the middle.
    #[serde(default)]
    pub test_output: String,
    /// Time of all tests, in seconds.
    #[serde(default)]
    pub test_seconds: f64,
    /// True if the time limit ended the tests.
    #[serde(default)]
    pub timed_out: bool,
    /// True if a program exceeded the time that a test gave it.
    #[serde(default)]
    pub was_late: bool,
    /// True if the system killed a program, as it does when memory runs out.
    #[serde(default)]
    pub was_killed: bool,
    /// True if programs ran as a user of their own.
    #[serde(default)]
    pub apart: bool,
    /// True if the answer's programs could read the memory of the supervisor, so that nothing was run.
    #[serde(default, rename = "unsafe")]
    pub is_unsafe: bool,
    /// Time limit of the build and the tests, in seconds, if they were run.
    #[serde(default)]
    pub limit_seconds: Option<f64>,
    /// Reason for that limit.
    #[serde(default)]
    pub limit_reason: String,
    /// Reason why the task's tests can't be loaded.
    #[serde(default)]
    pub problem: Option<String>,
    /// Error of the supervisor while it ran the answer.
    #[serde(default)]
    pub crash: Option<String>,
}

/// A build command that failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FailedBuild {
    /// The command.
    pub argv: Vec<String>,
    /// Exit status, negative for a signal; `None` if the time was up.
    pub status: Option<i64>,
}

/// Result of a test.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TestResult {
    /// `passed` or `failed`.
    pub outcome: String,
    /// Run time in seconds.
    pub seconds: f64,
    /// Place and message of the failure.
    #[serde(default)]
    pub text: String,
}

impl TestResult {
    /// Returns true if the test passed.
    pub fn is_passed(&self) -> bool {
        self.outcome == "passed"
    }
}

/// Tests that a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent<'a> {
    /// All of them.
    All,
    /// All up to the first one that fails.
    FirstFailure,
    /// The tests of these names. Runners in the answer's own process run all.
    Only(&'a [String]),
}

/// Verdict on what was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    BuildFailed,
    TimedOut,
    OutOfMemory,
    TestsFailed,
    TestsPassed,
}

impl Finding {
    const fn as_str(self) -> &'static str {
        match self {
            Self::BuildFailed => "build-failed",
            Self::TimedOut => "timed-out",
            Self::OutOfMemory => "out-of-memory",
            Self::TestsFailed => "tests-failed",
            Self::TestsPassed => "tests-passed",
        }
    }
}

impl TaskResults {
    /// Returns the tests that an answer must pass and didn't, in alphabetical order. Without recorded names, these are all
    /// that ran.
    pub fn missed(&self, recorded: Option<&[String]>) -> Vec<String> {
        let is_passed = |name: &String| self.tests.get(name).is_some_and(TestResult::is_passed);
        match recorded {
            Some(names) => names.iter().filter(|name| !is_passed(name)).cloned().collect(),
            None => self.tests.keys().filter(|name| !is_passed(name)).cloned().collect(),
        }
    }

    /// Returns true if the workspace was built and every test passed that must. Without recorded names, at least one test
    /// and all that ran.
    pub fn passes(&self, recorded: Option<&[String]>) -> bool {
        self.missed(recorded).is_empty() && !self.tests.is_empty() && self.build.is_none()
    }

    fn finding(&self, recorded: Option<&[String]>) -> Finding {
        let is_done = self.passes(recorded);
        match &self.build {
            _ if is_done => Finding::TestsPassed,
            Some(FailedBuild { status: None, .. }) => Finding::TimedOut,
            _ if self.was_killed => Finding::OutOfMemory,
            Some(_) => Finding::BuildFailed,
            None if self.timed_out => Finding::TimedOut,
            None => Finding::TestsFailed,
        }
    }
}

/// Returns the job that builds a workspace and runs a task's tests.
///
/// `key` signs the results; a program that knows it can forge them.
pub fn task_job(task: &CodeTask, workspace: &Workspace, key: &[u8; 32], extent: Extent<'_>) -> JobSpec {
    // Only tests outside of the answer's process are kept from its programs.
    let tests = if task.command.is_outside() { pack(&task.tests) } else { BTreeMap::new() };
    let mut work = place(task, guard(task, workspace).workspace.files());
    let own = json!({
        "key": hex::encode(key),
        "tests": tests,
        "args": task.command.parts().1,
        "timeout_seconds": task.timeout.as_secs(),
        "calibration": environment::calibration(task),
        "stops_at_failure": extent == Extent::FirstFailure,
        "only": match extent {
            Extent::Only(names) => Some(names),
            _ => None,
        },
    });
    if let Value::Object(own) = own {
        work.extend(own);
    }
    JobSpec {
        files: vec![
            file("supervisor.py", SUPERVISOR),
            file("lab.py", LAB),
            file("inside.py", INSIDE),
            file("task.json", &Value::Object(work).to_string()),
        ],
        script: "exec python3 -I -B supervisor.py\n".to_owned(),
        time_limit: environment::time_limit_max(task) + SUPERVISOR_TIME,
        memory_bytes: MEMORY_BYTES,
        probe: Some(probe(task)),
        needs_landlock: false,
        results: vec![result(RESULTS, RESULTS_BYTES_MAX), result(STARTED, STARTED_BYTES_MAX)],
    }
}

/// Returns what the class `Host` of the supervisor needs to make the place where programs of a task run, with these files.
pub(super) fn place(task: &CodeTask, files: &BTreeMap<String, WorkspaceFile>) -> Map<String, Value> {
    let place = json!({
        "files": pack(files),
        "build": task.build,
        "runner": task.command.parts().0,
        "env": task.env,
        "working_dir": task.working_dir,
        "packages": environment::packages(task),
    });
    match place {
        Value::Object(place) => place,
        _ => Map::new(),
    }
}

fn pack(files: &BTreeMap<String, WorkspaceFile>) -> BTreeMap<String, PackedFile> {
    files.iter().map(|(path, file)| (path.clone(), file.into())).collect()
}

/// Returns a text as a file of a job.
pub(super) fn file(path: &str, text: &str) -> JobFile {
    JobFile { path: path.to_owned(), content: FileContent::Bytes(text.as_bytes().to_vec()) }
}

/// Returns a file that a job writes.
pub(super) fn result(path: &str, bytes_max: u64) -> ResultFile {
    ResultFile { path: path.to_owned(), bytes_max }
}

/// Reads the results of a job.
///
/// # Errors
/// Says why there are none: the file is missing, can't be read, or wasn't written by the supervisor.
pub fn read_results(report: &JobReport, key: &[u8; 32]) -> Result<TaskResults, String> {
    let text = read_signed(report, RESULTS, key)?;
    serde_json::from_str(&text).map_err(|error| format!("`{RESULTS}` holds no results: {error}"))
}

/// Returns the results in a report that was read before, without checking who wrote them.
pub(super) fn unsigned_results(report: &JobReport) -> Option<TaskResults> {
    serde_json::from_str(&unsigned_text(report, RESULTS)?).ok()
}

/// Returns the signing key of a job. It depends on the round, the task and the answer.
fn key(task: &CodeTask, body: &SampleBody, nonce: &str) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in ["code_lab", nonce, &task.digest, &body.item_id, &body.answer.text] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

impl SandboxGrader for Grader {
    fn metadata(&self) -> &'static SandboxMetadata {
        &METADATA
    }

    // Artifacts show the change.
    fn code(&self, _body: &SampleBody) -> Option<String> {
        Some(String::new())
    }

    fn artifacts(&self, item: &Item, body: &SampleBody) -> Vec<EpisodeLog> {
        artifacts::artifacts(item, body)
    }

    fn job(
        &self,
        item: &Item,
        body: &SampleBody,
        material: &JobMaterial<'_>,
    ) -> Result<JobSpec, ItemProblem> {
        let task = row::task(item)?;
        if let Some(why) = task.ungradable() {
            return Err(ItemProblem::Content(why));
        }
        let change =
            Change::read(&body.answer.text).map_err(|error| ItemProblem::Content(error.to_string()))?;
        let applied =
            change.apply(&task.workspace).map_err(|error| ItemProblem::Content(error.to_string()))?;
        Ok(task_job(&task, &applied.workspace, &key(&task, body, material.nonce), Extent::All))
    }

    fn read(
        &self,
        item: &Item,
        body: &SampleBody,
        report: &JobReport,
        round: Round<'_>,
    ) -> Result<Verdict, UnreadableReport> {
        let task = row::task(item).map_err(|problem| UnreadableReport::ungradable(&problem.to_string()))?;
        let key = key(&task, body, round.nonce);
        let results = match read_results(report, &key) {
            Ok(results) if results.is_unsafe => {
                return Err(UnreadableReport::permanent(
                    Code::SandboxNotIsolated,
                    "programs in this sandbox can read the memory of their grader; use another sandbox host",
                ));
            }
            Ok(TaskResults { problem: Some(problem), .. }) => {
                let reason =
                    format!("The task's tests can't be loaded: {}.", shorten(&problem, FAILURE_CHARS_MAX));
                return Ok(Verdict::ungraded(Code::InvalidItem, reason));
            }
            Ok(TaskResults { crash: Some(crash), .. }) if round.number < ROUNDS_MAX => {
                return Err(UnreadableReport::retry(shorten(&crash, FAILURE_CHARS_MAX)));
            }
            Ok(results) => results,
            // The supervisor ends long before the job's time limit, unless something prevents that.
            Err(_) if report.end.is_program_fault() => TaskResults {
                timed_out: report.end != JobEnd::OverLimit,
                was_killed: report.end == JobEnd::OverLimit,
                ..TaskResults::default()
            },
            Err(why) if round.number < ROUNDS_MAX => {
                return Err(UnreadableReport::retry(describe_failure(&why, report)));
            }
            Err(why) if read_signed(report, STARTED, &key).is_ok() => {
                TaskResults { crash: Some(why), ..TaskResults::default() }
            }
            Err(why) => return Err(UnreadableReport::retry(describe_failure(&why, report))),
        };
        let finding = results.finding(task.recorded_tests());
        if round.number == 1
            && finding != Finding::TestsPassed
            && (finding == Finding::TimedOut || results.was_late)
        {
            let why = "a program exceeded its time limit, which a busy machine can cause; the answer is run once more";
            return Err(UnreadableReport::retry(why));
        }
        Ok(verdict(&task, body, report, &results, finding, round.number))
    }
}

fn verdict(
    task: &CodeTask,
    body: &SampleBody,
    report: &JobReport,
    results: &TaskResults,
    finding: Finding,
    round: u32,
) -> Verdict {
    let missed = results.missed(task.recorded_tests());
    let total = task.recorded_tests().map_or(results.tests.len(), <[String]>::len);
    let passed = total.saturating_sub(missed.len());
    let failed: Vec<Value> = missed
        .iter()
        .take(FAILED_MAX)
        .map(|name| {
            let text = results.tests.get(name).map_or("the test did not run", |test| test.text.as_str());
            json!({ "test": name, "message": shorten(text, FAILURE_CHARS_MAX) })
        })
        .collect();
    let change = Change::read(&body.answer.text).ok();
    let applied = change.as_ref().and_then(|change| change.apply(&task.workspace).ok());
    let mut detail = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            detail.insert(name.to_owned(), value);
        }
    };
    put("verdict", json!(finding.as_str()));
    put("language", json!(task.language.as_str()));
    put("task_digest", json!(task.digest));
    put("form", json!(change.as_ref().map(|change| change.form().to_string())));
    put("changed", json!(applied.as_ref().map(|applied| &applied.changed)));
    let restored = applied.as_ref().map(|applied| guard(task, &applied.workspace).restored);
    put("restored", json!(restored.filter(|restored| !restored.is_empty())));
    put("tests_are_outside", json!(task.command.is_outside()));
    put("moved_hunks", json!(applied.as_ref().map(|applied| applied.moved_hunks).filter(|moved| *moved > 0)));
    put("tests", json!(total));
    put("tests_passed", json!(passed));
    if !failed.is_empty() && finding != Finding::BuildFailed {
        put("failed", Value::Array(failed));
    }
    if finding == Finding::BuildFailed {
        put("build_output", json!(tail(&results.build_output, BUILD_CHARS_MAX)));
    }
    put("limit_seconds", json!(results.limit_seconds));
    put("limit_reason", json!(results.limit_seconds.map(|_| &results.limit_reason)));
    put("build_seconds", json!(results.build_seconds));
    put("test_seconds", json!(results.test_seconds));
    put("own_user", json!(results.apart));
    put("isolation", json!(report.isolation));
    put("crash", json!(results.crash.as_deref().map(|crash| shorten(crash, FAILURE_CHARS_MAX))));
    put("round", json!(round));
    let reason = match finding {
        Finding::TestsPassed => String::new(),
        Finding::BuildFailed => match &results.build {
            Some(FailedBuild { argv, status: Some(status) }) => {
                format!("The build failed: {} ended with status {status}.", shorten(&argv.join(" "), 200))
            }
            _ => "The build failed.".to_owned(),
        },
        Finding::TimedOut => {
            let limit = results.limit_seconds.unwrap_or(task.timeout.as_secs_f64());
            format!("The build and the tests took longer than {limit} s.")
        }
        Finding::OutOfMemory => {
            "The system killed a program of the answer, which used too much memory.".to_owned()
        }
        Finding::TestsFailed => match missed.first() {
            Some(first) => format!("{} of {total} tests failed, the first of them {first}.", missed.len()),
            None => "No test was run.".to_owned(),
        },
    };
    let extracted = change.as_ref().map(describe);
    let correct = finding == Finding::TestsPassed;
    let verdict = grading::verdict_for(
        &body.answer,
        ParserResult { extracted, correct, reason: reason.clone(), detail },
    );
    // An answer that was cut off after its change is wrong for what the tests say.
    match verdict.outcome {
        Outcome::Truncated => Verdict { reason: format!("{} {reason}", verdict.reason), ..verdict },
        _ => verdict,
    }
}

/// Returns the end of a text.
fn tail(text: &str, chars_max: usize) -> &str {
    let skipped = text.chars().count().saturating_sub(chars_max);
    text.char_indices().nth(skipped).map_or("", |(at, _)| text.get(at..).unwrap_or_default())
}

#[cfg(test)]
mod tests;
