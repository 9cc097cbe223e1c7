//! The job that grades a program, and the verdict read from its results.
//!
//! | process | does |
//! | --- | --- |
//! | `supervisor.py` | decodes the tests, starts the other process, limits its time, writes `results.json` |
//! | the program's process | runs the program |
//!
//! [`GradingMode`] decides where the program's outputs are compared with the expected ones:
//!
//! | mode | the program's process | the supervisor |
//! | --- | --- | --- |
//! | isolated | `isolated.py`: gets the input of one test at a time, sends back what the program printed or returned | `compare.py`: holds the expected outputs, compares, ends the run at the first failure |
//! | official | `child.py`: gets inputs and expected outputs, compares with the official runner, or with ours (`runner.py`) | accepts results that follow a secret token |
//!
//! In official mode, a program written against its grader can pass: it can find the expected outputs in its own
//! process, replace the comparison, or send the results itself. Isolated mode prevents this. Expected outputs and
//! comparison are in a process whose memory the program can't read (`PR_SET_DUMPABLE`, and another user if the
//! supervisor can switch to one). The program's process verifies this before it loads the program. Values are sent back
//! as plain data, so no comparison runs code of the program.
//!
//! The supervisor signs its output with a key that the program's process never receives. A file written by anything
//! else is not accepted as a verdict.

use std::time::Duration;

use bench_domain::{Answer, Code, FileContent, JobFile, JobReport, JobSpec, ResultFile, SampleBody, Verdict};
use bench_items::Item;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{extract, row};
use crate::grading::{self, ParserResult, shorten};
use crate::item_problem::ItemProblem;
use crate::python;
use crate::scorers::sandbox::{
    GradingMode, JobMaterial, Round, SandboxGrader, SandboxMetadata, UnreadableReport,
};
use crate::signed::{describe_failure, read_signed};

/// Name of the official runner among the templates.
pub(super) const OFFICIAL_RUNNER: &str = "testing_util.py";

const SUPERVISOR: &str = concat!(include_str!("../supervisor/supervised.py"), include_str!("supervisor.py"));
const COMPARE: &str = include_str!("compare.py");
const ISOLATED_CHILD: &str =
    concat!(include_str!("../supervisor/capabilities.py"), include_str!("isolated.py"));
const OFFICIAL_CHILD: &str = include_str!("child.py");
const OWN_RUNNER: &str = include_str!("runner.py");
/// Module names of the two runners.
const OFFICIAL_MODULE: &str = "testing_util";
const OWN_MODULE: &str = "runner";

const RESULTS: &str = "results.json";
const STARTED: &str = "started.json";
const RESULTS_BYTES_MAX: u64 = 4 << 20;
const STARTED_BYTES_MAX: u64 = 4 << 10;

/// Time limit for compilation and for each test, in whole seconds.
const TEST_SECONDS: u64 = 6;
/// Assumed number of private tests while they aren't decoded. Problems have up to about a hundred.
const PRIVATE_TESTS_MAX: u64 = 500;
/// Maximum number of tests that the time limit takes into account.
const TESTS_MAX: u64 = 2_000;
/// Time that the supervisor needs in addition to the program: to decode the tests, to start and to clean up.
const SUPERVISOR_TIME: Duration = Duration::from_secs(240);
/// Memory for a program and its tests.
const MEMORY_BYTES: u64 = 2 << 30;

/// Maximum number of sandboxes per sample.
const ROUNDS_MAX: u32 = 3;
/// Maximum number of results that are kept individually.
const RESULTS_KEPT_MAX: usize = 256;
/// Maximum numbers of characters of code, of a message and of an error that are kept.
const EXTRACTED_CHARS_MAX: usize = 1_000;
const MESSAGE_CHARS_MAX: usize = 700;
const ERROR_CHARS_MAX: usize = 300;

/// Checks that Python exists and is recent enough.
const PROBE: &str = "python3 -I -S -c 'import sys\nif sys.version_info < (3, 10):\n    \
                     sys.exit(print(\"the sandbox has Python \" + sys.version.split()[0] + \": 3.10 or later is needed\") or 1)'";

/// Error codes of the official program.
const OUT_OF_TIME: i64 = -3;
const NO_RESULT: i64 = -5;

const NEEDS: &str = "Python 3.10 or later; numpy where programs may use it";
const VERDICT: &str = "Right is a program that passes all tests; the first failure ends the run. A time limit is tried once more before it counts.";

static ISOLATED_FACTS: SandboxMetadata = SandboxMetadata {
    needs: NEEDS,
    packages: &[],
    grader: "own, 6 s a test: outputs are compared in a process that the program cannot reach; the official verdicts on all vectors",
    rounds_max: ROUNDS_MAX,
    verdict: VERDICT,
};

static OFFICIAL_FACTS: SandboxMetadata = SandboxMetadata {
    needs: NEEDS,
    packages: &[],
    grader: "lcb_runner/evaluation/testing_util.py, 6 s a test; without it an own runner with the same verdicts",
    rounds_max: ROUNDS_MAX,
    verdict: VERDICT,
};

/// Grader that runs a program against the tests of its problem.
#[derive(Debug)]
pub(super) struct Grader {
    mode: GradingMode,
}

static ISOLATED_GRADER: Grader = Grader { mode: GradingMode::Isolated };
static OFFICIAL_GRADER: Grader = Grader { mode: GradingMode::Official };

/// Returns the grader for a mode.
pub(super) fn grader(mode: GradingMode) -> &'static Grader {
    match mode {
        GradingMode::Isolated => &ISOLATED_GRADER,
        GradingMode::Official => &OFFICIAL_GRADER,
    }
}

/// Returns the code in an answer; `None` if it has none.
pub(super) fn code(answer: &Answer) -> Option<&str> {
    Some(extract::code(&answer.text)).filter(|code| !python::strip(code).is_empty())
}

/// Returns the verdict for an answer without code. The official program runs the empty text, which fails.
pub(super) fn no_code_verdict(answer: &Answer) -> Verdict {
    let nothing = ParserResult { extracted: None, correct: false, reason: String::new(), detail: Map::new() };
    grading::verdict_for(answer, nothing)
}

/// Returns the signing key of a job. It depends on the round, the item and the answer, and only the creator of the job
/// can compute it.
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

/// Returns the time limit for the program in seconds: the supervisor's own limit for its number of tests.
fn wait_seconds(item: &Item) -> u64 {
    let count = |column| row::test_count(&item.row, column).map(|count| count as u64);
    let tests = count(row::PUBLIC).unwrap_or_default() + count(row::PRIVATE).unwrap_or(PRIVATE_TESTS_MAX);
    (TEST_SECONDS + 1) * tests.min(TESTS_MAX) + 5
}

impl SandboxGrader for Grader {
    fn metadata(&self) -> &'static SandboxMetadata {
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
            time_limit: Duration::from_secs(wait) + SUPERVISOR_TIME,
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
    ) -> Result<Verdict, UnreadableReport> {
        let key = key(item, body, round.nonce)
            .map_err(|problem| UnreadableReport::ungradable(&problem.to_string()))?;
        let code = code(&body.answer).unwrap_or_default();
        let output = read_signed(report, RESULTS, &key).and_then(|text| {
            serde_json::from_str::<SupervisorOutput>(&text)
                .map_err(|error| format!("`{RESULTS}` holds no results: {error}"))
        });
        let (graded, flagged) = match output {
            Ok(SupervisorOutput::Unreadable { problem }) => {
                let reason =
                    format!("The item's tests cannot be read: {}.", shorten(&problem, ERROR_CHARS_MAX));
                return Ok(Verdict::ungraded(Code::InvalidItem, reason));
            }
            Ok(SupervisorOutput::Unsafe { .. }) => {
                return Err(UnreadableReport::permanent(
                    Code::SandboxNotIsolated,
                    "programs in this sandbox can read the memory of their grader; use another sandbox host, or grade with `--option livecodebench.grading=official`, which programs can forge",
                ));
            }
            Ok(SupervisorOutput::GradedTests(graded)) => (graded, None),
            // The supervisor ends long before the job's time limit, unless something prevents that.
            Err(why) if report.end.is_program_fault() => {
                (GradedTests::without_result(why.clone()), Some(why))
            }
            Err(why) if round.number < ROUNDS_MAX => {
                return Err(UnreadableReport::retry(describe_failure(&why, report)));
            }
            // The sandbox met the supervisor's requirements in every round, so only the program can have killed it: the
            // program was running then, or nothing shows that it never ran.
            Err(why) if read_signed(report, STARTED, &key).is_ok() || !failed_by_itself(report) => {
                (GradedTests::without_result(why.clone()), Some(why))
            }
            Err(why) => return Err(UnreadableReport::retry(describe_failure(&why, report))),
        };
        if graded.metadata.error_code == Some(OUT_OF_TIME) && round.number == 1 {
            let why = "a test exceeded its time limit, which a busy machine can cause; the program is run once more";
            return Err(UnreadableReport::retry(why));
        }
        let mut detail = graded.detail(round.number);
        if let Some(isolation) = &report.isolation {
            detail.insert("isolation".into(), json!(isolation));
        }
        if let Some(flagged) = flagged {
            detail.insert("flagged".into(), json!(flagged));
        }
        let finding = ParserResult {
            extracted: Some(shorten(code, EXTRACTED_CHARS_MAX)),
            correct: graded.is_correct(),
            reason: graded.reason(),
            detail,
        };
        Ok(grading::verdict_for(&body.answer, finding))
    }
}

/// Returns true if the supervisor ended with an error of its own.
fn failed_by_itself(report: &JobReport) -> bool {
    report.stderr_tail.contains("Traceback") && report.stderr_tail.contains("supervisor.py")
}

/// Output of the supervisor.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum SupervisorOutput {
    Unreadable {
        problem: String,
    },
    /// The program was not run, because it could have read the expected outputs.
    Unsafe {
        #[serde(rename = "unsafe")]
        _unsafe: bool,
    },
    GradedTests(GradedTests),
}

#[derive(Debug, Default, Deserialize)]
struct GradedTests {
    results: Vec<Value>,
    metadata: ResultMetadata,
    /// Number of tests of the problem.
    #[serde(default)]
    tests: u64,
    #[serde(default)]
    grader: String,
    /// Run time of the program in seconds.
    #[serde(default)]
    elapsed: f64,
    /// True if the program had less time than the official program allows.
    #[serde(default)]
    wait_cut: bool,
    #[serde(default)]
    numpy: bool,
    #[serde(default)]
    python: String,
    /// True if the program ran as a separate user.
    #[serde(default)]
    apart: bool,
}

#[derive(Debug, Default, Deserialize)]
struct ResultMetadata {
    error: Option<String>,
    error_code: Option<i64>,
    error_message: Option<String>,
    #[serde(rename = "execution time")]
    execution_time: Option<f64>,
}

fn is_pass(result: &Value) -> bool {
    result.as_bool().unwrap_or_else(|| result.as_f64().is_some_and(|number| number > 0.0))
}

impl GradedTests {
    /// Creates the result of a program that killed its supervisor in every round.
    fn without_result(error: String) -> Self {
        Self {
            results: vec![json!(-2)],
            metadata: ResultMetadata {
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

    fn passed_count(&self) -> usize {
        self.results.iter().take_while(|result| is_pass(result)).count()
    }

    fn reason(&self) -> String {
        let message = self.metadata.error_message.as_deref().unwrap_or("no message");
        let message = shorten(message, ERROR_CHARS_MAX);
        let error = self.metadata.error.as_deref().map(|error| shorten(error, ERROR_CHARS_MAX));
        let error = error.map(|error| format!(": {error}")).unwrap_or_default();
        let code = self.metadata.error_code.unwrap_or_default();
        if code == NO_RESULT {
            return format!("The program left no result ({code}){error}.");
        }
        if message.starts_with("Error during testing") {
            let message = message.trim_end_matches([':', ' ']);
            return format!("The program could not be run ({code}): {message}.");
        }
        format!("Test {} of {} failed ({code}): {message}{error}.", self.passed_count() + 1, self.tests)
    }

    fn detail(&self, round: u32) -> Map<String, Value> {
        let ResultMetadata { error, error_code, error_message, execution_time } = &self.metadata;
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
        put("tests_passed", json!(self.passed_count()));
        put("error_code", json!(error_code));
        put("error_message", json!(error_message.as_deref().map(|text| shorten(text, MESSAGE_CHARS_MAX))));
        put("error", json!(error.as_deref().map(|text| shorten(text, ERROR_CHARS_MAX))));
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

#[cfg(test)]
mod tests;
