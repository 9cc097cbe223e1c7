//! The job that grades a program, and the verdict in what it leaves behind.
//!
//! | process | does |
//! | --- | --- |
//! | `supervisor.py` | decodes the tests, starts the other process, bounds its time, writes `results.json` |
//! | the program's process | runs the program |
//!
//! [`GradingMode`] says where a program's outputs are compared with the expected ones:
//!
//! | way | the program's process | the supervisor |
//! | --- | --- | --- |
//! | isolated | `isolated.py`: gets the input of one test at a time, sends back what the program printed or returned | `compare.py`: holds the expected outputs, compares, ends the run at the first failure |
//! | official | `child.py`: gets inputs and expected outputs, compares with the official runner, or with ours (`runner.py`) | takes over the results that come behind a secret word |
//!
//! The official way lets a program that is written against its grader pass: it can find the expected outputs in its own
//! process, replace the comparison, or send the results itself. The isolated way leaves it nothing to gain: expected
//! outputs and comparison are in a process whose memory it cannot read (`PR_SET_DUMPABLE`, and another user where the
//! supervisor may choose one), which the program's process verifies before the program is loaded. Values come back as plain
//! data, so that no comparison is the program's own.
//!
//! What the supervisor writes carries a code made with a key that the program's process never gets. A file written by
//! anything else is no verdict.

use std::time::Duration;

use bench_domain::{
    Answer, Code, FileContent, JobEnd, JobFile, JobReport, JobSpec, ResultFile, SampleBody, Verdict,
};
use bench_items::Item;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{extract, row};
use crate::grading::{self, Finding, shortened};
use crate::item_problem::ItemProblem;
use crate::python;
use crate::scorers::sandbox::{GradingMode, JobMaterial, Round, SandboxFacts, SandboxGrader, Unread};

/// The official runner among the templates.
pub(super) const OFFICIAL_RUNNER: &str = "testing_util.py";

const SUPERVISOR: &str = include_str!("supervisor.py");
const COMPARE: &str = include_str!("compare.py");
const ISOLATED_CHILD: &str = include_str!("isolated.py");
const OFFICIAL_CHILD: &str = include_str!("child.py");
const OWN_RUNNER: &str = include_str!("runner.py");
/// Names of the two runners as modules.
const OFFICIAL_MODULE: &str = "testing_util";
const OWN_MODULE: &str = "runner";

const RESULTS: &str = "results.json";
const STARTED: &str = "started.json";
const RESULTS_BYTES_MAX: u64 = 4 << 20;
const STARTED_BYTES_MAX: u64 = 4 << 10;

/// For compilation and for each test, in whole seconds.
const TEST_SECONDS: u64 = 6;
/// Private tests that are reckoned with where their number is not known before they are decoded. Problems have up to
/// about a hundred.
const PRIVATE_TESTS_MAX: u64 = 500;
/// Tests that are reckoned with at most.
const TESTS_MAX: u64 = 2_000;
/// What the supervisor takes beside the program: to decode the tests, to start, and to clear away.
const BESIDE: Duration = Duration::from_secs(240);
/// What a program and its tests have.
const MEMORY_BYTES: u64 = 2 << 30;

/// Sandboxes of one sample.
const ROUNDS_MAX: u32 = 3;
/// Results that are kept one by one.
const RESULTS_KEPT_MAX: usize = 256;
/// Characters of code, of a message and of an error that are kept.
const EXTRACTED_CHARS_MAX: usize = 1_000;
const MESSAGE_CHARS_MAX: usize = 700;
const ERROR_CHARS_MAX: usize = 300;

/// Whether Python is there and new enough.
const PROBE: &str = "python3 -I -S -c 'import sys\nif sys.version_info < (3, 10):\n    \
                     sys.exit(print(\"the sandbox has Python \" + sys.version.split()[0] + \": 3.10 or later is needed\") or 1)'";

/// Codes of the official results.
const OUT_OF_TIME: i64 = -3;
const NO_RESULT: i64 = -5;

const NEEDS: &str = "Python 3.10 or later; numpy where programs may use it";
const VERDICT: &str = "Right is a program that passes all tests; the first failure ends the run. A time limit is tried once more before it counts.";

static ISOLATED_FACTS: SandboxFacts = SandboxFacts {
    needs: NEEDS,
    packages: &[],
    grader: "own, 6 s a test: outputs are compared in a process that the program cannot reach; the official verdicts on all vectors",
    rounds_max: ROUNDS_MAX,
    verdict: VERDICT,
};

static OFFICIAL_FACTS: SandboxFacts = SandboxFacts {
    needs: NEEDS,
    packages: &[],
    grader: "lcb_runner/evaluation/testing_util.py, 6 s a test; without it an own runner with the same verdicts",
    rounds_max: ROUNDS_MAX,
    verdict: VERDICT,
};

/// Runs one program against the tests of its problem.
#[derive(Debug)]
pub(super) struct Grader {
    mode: GradingMode,
}

static ISOLATED_GRADER: Grader = Grader { mode: GradingMode::Isolated };
static OFFICIAL_GRADER: Grader = Grader { mode: GradingMode::Official };

/// Returns the grader that compares in this way.
pub(super) fn grader(mode: GradingMode) -> &'static Grader {
    match mode {
        GradingMode::Isolated => &ISOLATED_GRADER,
        GradingMode::Official => &OFFICIAL_GRADER,
    }
}

/// The code in an answer: `None` where there is none to be run.
pub(super) fn code(answer: &Answer) -> Option<&str> {
    Some(extract::code(&answer.text)).filter(|code| !python::strip(code).is_empty())
}

/// The verdict on an answer without code. The official program runs the empty text, which fails.
pub(super) fn without_code(answer: &Answer) -> Verdict {
    let nothing = Finding { extracted: None, correct: false, reason: String::new(), detail: Map::new() };
    grading::settle(answer, nothing)
}

/// What only who has made the job can sign with: it is of this round, this item and this answer alone.
fn key(item: &Item, body: &SampleBody, nonce: &str) -> Result<[u8; 32], ItemProblem> {
    let mut hasher = Sha256::new();
    let answer =
        serde_json::to_string(&body.answer).map_err(|error| ItemProblem::Content(error.to_string()))?;
    let (public, private) = (row::tests(&item.row, row::PUBLIC)?, row::tests(&item.row, row::PRIVATE)?);
    for part in ["livecodebench", nonce, &item.id, &body.item_id, &public, &private, &answer] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    Ok(hasher.finalize().into())
}

/// How long the program may take: what its supervisor waits for so many tests.
fn wait_seconds(item: &Item) -> u64 {
    let count = |column| row::test_count(&item.row, column).map(|count| count as u64);
    let tests = count(row::PUBLIC).unwrap_or_default() + count(row::PRIVATE).unwrap_or(PRIVATE_TESTS_MAX);
    (TEST_SECONDS + 1) * tests.min(TESTS_MAX) + 5
}

impl SandboxGrader for Grader {
    fn facts(&self) -> &'static SandboxFacts {
        match self.mode {
            GradingMode::Isolated => &ISOLATED_FACTS,
            GradingMode::Official => &OFFICIAL_FACTS,
        }
    }

    fn code(&self, body: &SampleBody) -> Option<String> {
        code(&body.answer).map(str::to_owned)
    }

    fn job(
        &self,
        item: &Item,
        body: &SampleBody,
        material: &JobMaterial<'_>,
    ) -> Result<JobSpec, ItemProblem> {
        let (module, runner) = match (self.mode, material.templates.get(OFFICIAL_RUNNER)) {
            (GradingMode::Official, Some(official)) => (OFFICIAL_MODULE, official.as_str()),
            _ => (OWN_MODULE, OWN_RUNNER),
        };
        let isolated = self.mode == GradingMode::Isolated;
        let wait = wait_seconds(item);
        let task = json!({
            "key": hex::encode(key(item, body, material.nonce)?),
            "module": module,
            "isolated": isolated,
            "fn_name": row::method(&item.row)?,
            "timeout": TEST_SECONDS,
            "wait_max": wait,
        });
        let file = |path: &str, text: &str| JobFile {
            path: path.to_owned(),
            content: FileContent::Bytes(text.as_bytes().to_vec()),
        };
        let result = |path: &str, bytes_max| ResultFile { path: path.to_owned(), bytes_max };
        let mut files = vec![
            file("supervisor.py", SUPERVISOR),
            file("child.py", if isolated { ISOLATED_CHILD } else { OFFICIAL_CHILD }),
            file(&format!("{module}.py"), runner),
            file("task.json", &task.to_string()),
            file("program.txt", code(&body.answer).unwrap_or_default()),
            file("public.json", &row::tests(&item.row, row::PUBLIC)?),
            file("private.txt", &row::tests(&item.row, row::PRIVATE)?),
        ];
        if isolated {
            files.push(file("compare.py", COMPARE));
        }
        Ok(JobSpec {
            files,
            script: "exec python3 -I -B supervisor.py\n".to_owned(),
            time_limit: Duration::from_secs(wait) + BESIDE,
            memory_bytes: MEMORY_BYTES,
            probe: Some(PROBE.to_owned()),
            needs_landlock: false,
            results: vec![result(RESULTS, RESULTS_BYTES_MAX), result(STARTED, STARTED_BYTES_MAX)],
        })
    }

    fn read(
        &self,
        item: &Item,
        body: &SampleBody,
        report: &JobReport,
        round: Round<'_>,
    ) -> Result<Verdict, Unread> {
        let key = key(item, body, round.nonce).map_err(|problem| Unread::ungradable(&problem.to_string()))?;
        let code = code(&body.answer).unwrap_or_default();
        let left = signed(report, RESULTS, &key).and_then(|text| {
            serde_json::from_str::<Left>(&text)
                .map_err(|error| format!("{RESULTS} holds no results: {error}"))
        });
        let (graded, flagged) = match left {
            Ok(Left::Unreadable { problem }) => {
                let reason =
                    format!("The item's tests cannot be read: {}.", shortened(&problem, ERROR_CHARS_MAX));
                return Ok(Verdict::ungraded(Code::InvalidItem, reason));
            }
            Ok(Left::Unsafe { .. }) => {
                return Err(Unread::for_good(
                    Code::SandboxNotIsolated,
                    "programs in this sandbox can read the memory of their grader; use another sandbox host, or grade with `--option livecodebench.grading=official`, which programs can forge",
                ));
            }
            Ok(Left::Graded(graded)) => (graded, None),
            // The supervisor ends long before the job's time is up, unless something keeps it from that.
            Err(why) if report.end.is_held_up() => (Graded::taken_down(why.clone()), Some(why)),
            Err(why) if round.number < ROUNDS_MAX => return Err(Unread::again(told(&why, report))),
            // The sandbox had what the supervisor needs, each time, and only the program can have brought it down: it
            // was running then, or nothing tells that it never was.
            Err(why) if signed(report, STARTED, &key).is_ok() || !failed_by_itself(report) => {
                (Graded::taken_down(why.clone()), Some(why))
            }
            Err(why) => return Err(Unread::again(told(&why, report))),
        };
        if graded.metadata.error_code == Some(OUT_OF_TIME) && round.number == 1 {
            let why =
                "a test ran out of time, which a busy machine can do: it is run once more before that counts";
            return Err(Unread::again(why));
        }
        let mut detail = graded.detail(round.number);
        if let Some(isolation) = &report.isolation {
            detail.insert("isolation".into(), json!(isolation));
        }
        if let Some(flagged) = flagged {
            detail.insert("flagged".into(), json!(flagged));
        }
        let finding = Finding {
            extracted: Some(shortened(code, EXTRACTED_CHARS_MAX)),
            correct: graded.is_correct(),
            reason: graded.reason(),
            detail,
        };
        Ok(grading::settle(&body.answer, finding))
    }
}

/// Whether the supervisor ended with an error of its own.
fn failed_by_itself(report: &JobReport) -> bool {
    report.stderr_tail.contains("Traceback") && report.stderr_tail.contains("supervisor.py")
}

/// What the supervisor writes.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Left {
    Unreadable {
        problem: String,
    },
    /// The program was not run: it could have read the expected outputs.
    Unsafe {
        #[serde(rename = "unsafe")]
        _unsafe: bool,
    },
    Graded(Graded),
}

#[derive(Debug, Default, Deserialize)]
struct Graded {
    results: Vec<Value>,
    metadata: Metadata,
    /// Tests of the problem.
    #[serde(default)]
    tests: u64,
    #[serde(default)]
    grader: String,
    /// How long the program ran, in seconds.
    #[serde(default)]
    elapsed: f64,
    /// Whether it had less time than the official program gives.
    #[serde(default)]
    wait_cut: bool,
    #[serde(default)]
    numpy: bool,
    #[serde(default)]
    python: String,
    /// Whether it ran as a user of its own.
    #[serde(default)]
    apart: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    error: Option<String>,
    error_code: Option<i64>,
    error_message: Option<String>,
    #[serde(rename = "execution time")]
    execution_time: Option<f64>,
}

fn is_pass(result: &Value) -> bool {
    result.as_bool().unwrap_or_else(|| result.as_f64().is_some_and(|number| number > 0.0))
}

impl Graded {
    /// A program that has brought its supervisor down each time.
    fn taken_down(error: String) -> Self {
        Self {
            results: vec![json!(-2)],
            metadata: Metadata {
                error: Some(error),
                error_code: Some(NO_RESULT),
                error_message: Some("TestRunnerError".into()),
                execution_time: None,
            },
            ..Self::default()
        }
    }

    fn is_correct(&self) -> bool {
        self.results.iter().all(is_pass)
    }

    fn passed(&self) -> usize {
        self.results.iter().take_while(|result| is_pass(result)).count()
    }

    fn reason(&self) -> String {
        let message = self.metadata.error_message.as_deref().unwrap_or("no message");
        let message = shortened(message, ERROR_CHARS_MAX);
        let error = self.metadata.error.as_deref().map(|error| shortened(error, ERROR_CHARS_MAX));
        let error = error.map(|error| format!(": {error}")).unwrap_or_default();
        let code = self.metadata.error_code.unwrap_or_default();
        if code == NO_RESULT {
            return format!("The program left no result ({code}){error}.");
        }
        if message.starts_with("Error during testing") {
            let message = message.trim_end_matches([':', ' ']);
            return format!("The program could not be run ({code}): {message}.");
        }
        format!("Test {} of {} failed ({code}): {message}{error}.", self.passed() + 1, self.tests)
    }

    fn detail(&self, round: u32) -> Map<String, Value> {
        let Metadata { error, error_code, error_message, execution_time } = &self.metadata;
        let mut detail = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                detail.insert(name.to_owned(), value);
            }
        };
        if self.results.len() <= RESULTS_KEPT_MAX {
            put("results", json!(self.results));
        }
        put("tests", json!(self.tests));
        put("tests_passed", json!(self.passed()));
        put("error_code", json!(error_code));
        put("error_message", json!(error_message.as_deref().map(|text| shortened(text, MESSAGE_CHARS_MAX))));
        put("error", json!(error.as_deref().map(|text| shortened(text, ERROR_CHARS_MAX))));
        put("execution_time", json!(execution_time));
        put("elapsed_seconds", json!(self.elapsed));
        let grader = match self.grader.as_str() {
            "isolated" => "isolated",
            OFFICIAL_MODULE => "official",
            _ => "own",
        };
        put("grader", json!(grader));
        put("grading", json!(if grader == "isolated" { grader } else { "official" }));
        put("python", json!(Some(&self.python).filter(|version| !version.is_empty())));
        put("numpy", json!(self.numpy));
        put("own_user", json!(self.apart));
        put("wait_cut", json!(Some(true).filter(|_| self.wait_cut)));
        put("round", json!(round));
        detail
    }
}

/// A result file with the code over its text.
#[derive(Deserialize)]
struct Signed {
    text: String,
    code: String,
}

/// The text of a result file, if the supervisor has written it.
fn signed(report: &JobReport, path: &str, key: &[u8]) -> Result<String, String> {
    let Some(file) = report.files.get(path) else { return Err(format!("{path} is not there")) };
    let text = report.text(path).ok_or_else(|| format!("{path} cannot be read: {file:?}"))?;
    let Signed { text, code } =
        serde_json::from_str(text).map_err(|error| format!("{path} is not what was written: {error}"))?;
    let inner = Sha256::new().chain_update(key).chain_update(format!("{path}\n{text}")).finalize();
    let expected = hex::encode(Sha256::new().chain_update(key).chain_update(inner).finalize());
    match expected == code {
        true => Ok(text),
        false => Err(format!("{path} was written by something else than its supervisor")),
    }
}

/// Why there is no verdict, with what the job said at its end.
fn told(why: &str, report: &JobReport) -> String {
    let end = match report.end {
        JobEnd::Exited(status) => format!("the job left with status {status}"),
        JobEnd::TimedOut => "the job's time was up".to_owned(),
        JobEnd::Vanished => "the job vanished".to_owned(),
        JobEnd::Halted => "the job was stopped by its program".to_owned(),
        JobEnd::OverLimit => "the program went over the sandbox's limits".to_owned(),
    };
    let last = report.stderr_tail.trim().lines().last().unwrap_or_default();
    let said =
        if last.is_empty() { String::new() } else { format!(": {}", shortened(last, ERROR_CHARS_MAX)) };
    format!("{why}; {end}{said}")
}

#[cfg(test)]
mod tests;
