use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;

use bench_domain::{Finish, HarvestedFile, JobEnd, Outcome, Prompt};
use bench_items::{Layout, Row};

use super::*;
use crate::Round;
use crate::benchmark::Benchmark;
use crate::livecodebench::LiveCodeBench;
use crate::material::Templates;
use crate::testing::run;

mod attacks;

/// Number of concurrent jobs: the number of cores of a small machine.
const AT_ONCE: usize = 3;

const NONCE: &str = "nonce";

const BOTH: [GradingMode; 2] = [GradingMode::Isolated, GradingMode::Official];

fn round(number: u32) -> Round<'static> {
    Round { number, nonce: NONCE }
}

fn vectors_path() -> String {
    format!("{}/../../tests/data/vectors/livecodebench.jsonl", env!("CARGO_MANIFEST_DIR"))
}

fn vectors() -> Vec<Value> {
    let text = std::fs::read_to_string(vectors_path()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn to_item(row: &Value) -> Item {
    LiveCodeBench::LATEST.item(0, row.as_object().unwrap().clone()).unwrap().unwrap()
}

fn fence(code: &str) -> SampleBody {
    let answer = Answer::local(format!("So:\n```python\n{code}\n```\n"));
    SampleBody::new("0", Prompt::user("?"), answer, "")
}

fn python() -> Command {
    let mut command = Command::new("python3");
    command.args(["-I", "-B"]);
    let version = "import sys; sys.exit(sys.version_info < (3, 10))";
    let found = command.arg("-c").arg(version).status();
    assert!(
        found.is_ok_and(|status| status.success()),
        "these tests run programs: python3 of version 3.10 or later has to be on PATH"
    );
    let mut command = Command::new("python3");
    command.args(["-I", "-B"]);
    command
}

fn job(grading: GradingMode, item: &Item, body: &SampleBody) -> JobSpec {
    let attachments = BTreeMap::new();
    let material = JobMaterial { templates: &Templates::new(), attachments: &attachments, nonce: NONCE };
    grader(grading).job(item, body, &material).unwrap()
}

fn run_job(grading: GradingMode, item: &Item, body: &SampleBody) -> JobReport {
    let folder = tempfile::tempdir().unwrap();
    run(&job(grading, item, body), folder.path())
}

/// Reads a report. The grading mode doesn't matter.
fn read(
    item: &Item,
    body: &SampleBody,
    report: &JobReport,
    number: u32,
) -> Result<Verdict, UnreadableReport> {
    grader(GradingMode::Isolated).read(item, body, report, round(number))
}

/// Returns the verdict after the second round.
fn grade_program(grading: GradingMode, item: &Item, body: &SampleBody) -> Verdict {
    let report = run_job(grading, item, body);
    read(item, body, &report, 2).unwrap_or_else(|why| panic!("{why}: {report:?}"))
}

/// Calls a function for each element, several at once.
fn for_each<T: Sync>(all: &[T], act: impl Fn(&T) + Sync) {
    let left = Mutex::new(all.iter());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some(next) = next else { return };
                    act(next);
                }
            });
        }
    });
}

#[test]
fn programs_have_the_official_verdicts() {
    drop(python());
    let rows = vectors();
    let mut work = Vec::new();
    for row in &rows {
        let item = to_item(&row["row"]);
        for candidate in row["candidates"].as_array().unwrap() {
            work.push((item.clone(), candidate));
        }
    }
    assert_eq!(work.len(), 147);
    // Programs that run into the time limit take longest and go first.
    work.sort_by_key(|(_, candidate)| candidate["official"]["metadata"]["error_code"] != json!(-3));
    let work: Vec<_> =
        work.into_iter().flat_map(|work| BOTH.map(|grading| (grading, work.clone()))).collect();
    for_each(&work, |(grading, (item, candidate))| {
        let code = candidate["code"].as_str().unwrap();
        let body = fence(code);
        assert_eq!(super::code(&body.answer), Some(code));
        let verdict = grade_program(*grading, item, &body);
        let official = &candidate["official"];
        let name = format!("{grading:?} {}", candidate["id"]);
        assert_eq!(verdict.detail["results"], official["results"], "{name}: {verdict:?}");
        let official_code = official["metadata"].get("error_code");
        assert_eq!(verdict.detail.get("error_code"), official_code, "{name}: {verdict:?}");
        assert_eq!(verdict.is_correct(), official["passed"].as_bool(), "{name}: {verdict:?}");
        assert_eq!(verdict.reason.is_empty(), verdict.score == Some(1.0), "{name}: {verdict:?}");
        let named = if *grading == GradingMode::Isolated { "isolated" } else { "own" };
        assert_eq!(
            (&verdict.detail["grader"], &verdict.detail["isolation"]),
            (&json!(named), &json!("none"))
        );
    });
}

#[test]
fn reference_programs_of_the_demo_pass() {
    drop(python());
    let demo = LiveCodeBench::LATEST.spec().demo.items;
    let rows: Vec<Row> = demo.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let encoded = |row: &&Row| row::test_count(row, row::PRIVATE).is_none();
    assert!(rows.iter().filter(encoded).count() >= 10);
    for_each(&rows, |row| {
        let item = LiveCodeBench::LATEST.item(0, row.clone()).unwrap().unwrap();
        let oracle = LiveCodeBench::LATEST.oracle(&item);
        let body = SampleBody::new("0", Prompt::default(), Answer::local(oracle), "");
        let verdict = grade_program(GradingMode::Isolated, &item, &body);
        assert_eq!(verdict.score, Some(1.0), "{}: {verdict:?}", row["question_title"]);
        assert!(verdict.detail["tests"].as_u64().unwrap() >= 3);
        assert_eq!(verdict.detail["tests"], verdict.detail["tests_passed"]);
    });
}

#[test]
fn tests_are_read_as_python_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let supervisor = folder.path().join("supervisor.py");
    std::fs::write(&supervisor, SUPERVISOR).unwrap();
    let output = python()
        .args(["-c", include_str!("../check_supervisor.py")])
        .arg(&supervisor)
        .arg(vectors_path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout, "all is as it should be\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn values_compare_as_they_do_in_the_official_process() {
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in [("isolated.py", ISOLATED_CHILD), ("compare.py", COMPARE)] {
        std::fs::write(folder.path().join(name), source).unwrap();
    }
    let output =
        python().args(["-c", include_str!("../check_compare.py")]).arg(folder.path()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout, "all is as it should be\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_sandbox_that_exposes_the_expected_outputs_gives_no_verdict() {
    let (item, body) = (doubling(1), fence("print(1)"));
    let why = read(&item, &body, &report_with(&item, &body, r#"{"unsafe": true}"#), 1).unwrap_err();
    assert!(!why.retry && why.to_string().contains("livecodebench.grading=official"), "{why}");
}

fn doubling(tests: usize) -> Item {
    let test = |at: usize| json!({"input": format!("{at}\n"), "output": format!("{}\n", 2 * at), "testtype": "stdin"});
    let tests: Vec<Value> = (0..tests).map(test).collect();
    to_item(&json!({
        "question_content": "Double the number.", "difficulty": "easy", "public_test_cases": "[]",
        "private_test_cases": Value::Array(tests).to_string(), "metadata": "{}",
    }))
}

#[test]
fn a_process_that_outlives_its_run_changes_nothing() {
    drop(python());
    BOTH.into_iter().for_each(outliving_process_changes_nothing);
}

fn outliving_process_changes_nothing(grading: GradingMode) {
    let item = doubling(1);
    let folder = tempfile::tempdir().unwrap();
    // In a session of its own and without its parent, the process waits for the results and replaces them by its own.
    let program = format!(
        "import posix, time\n\
         if posix.fork() == 0:\n    posix.setsid()\n    if posix.fork() == 0:\n        for _ in range(200):\n            \
         with open({:?}, 'w') as file: file.write('{{\"text\": \"{{}}\", \"code\": \"\"}}')\n            time.sleep(0.01)\n    \
         posix._exit(0)\nprint(1)",
        folder.path().join(RESULTS)
    );
    let body = fence(&program);
    let report = run(&job(grading, &item, &body), folder.path());
    std::thread::sleep(std::time::Duration::from_millis(100));
    let after = std::fs::read_to_string(folder.path().join(RESULTS)).unwrap();
    assert_eq!(report.text(RESULTS), Some(after.as_str()), "something is still writing");
    let verdict = read(&item, &body, &report, 1).unwrap();
    assert_eq!((verdict.outcome, &verdict.detail["error_code"]), (Outcome::Incorrect, &json!(-2)));
}

#[test]
fn a_program_that_kills_its_supervisor_is_wrong_after_the_last_round() {
    drop(python());
    let item = doubling(1);
    let body = fence("import posix\nposix.kill(posix.getppid(), 9)");
    let report = run_job(GradingMode::Isolated, &item, &body);
    assert!(report.text(RESULTS).is_none() && report.text(STARTED).is_some(), "{report:?}");
    for round in 1..ROUNDS_MAX {
        assert!(read(&item, &body, &report, round).is_err());
    }
    let verdict = read(&item, &body, &report, ROUNDS_MAX).unwrap();
    assert_eq!((verdict.outcome, &verdict.detail["error_code"]), (Outcome::Incorrect, &json!(-5)));
    assert!(verdict.detail.contains_key("flagged"));
    // The program may have removed all traces of its run, but the sandbox met the supervisor's requirements.
    let nothing = JobReport { files: BTreeMap::new(), ..report };
    assert!(read(&item, &body, &nothing, 1).is_err());
    let verdict = read(&item, &body, &nothing, ROUNDS_MAX).unwrap();
    assert!(verdict.outcome == Outcome::Incorrect && verdict.detail.contains_key("flagged"));
    // A supervisor that is stopped forever runs into the job's time limit.
    let stopped = JobReport { end: bench_domain::JobEnd::TimedOut, ..nothing };
    assert_eq!(read(&item, &body, &stopped, 1).unwrap().outcome, Outcome::Incorrect);
    // The same happens if the job's wrapper notices that the supervisor is stopped.
    let halted = JobReport { end: bench_domain::JobEnd::Halted, ..stopped.clone() };
    assert_eq!(read(&item, &body, &halted, 1).unwrap().outcome, Outcome::Incorrect);
    // A failure of the supervisor itself says nothing about the program.
    let stderr_tail = "Traceback (most recent call last):\n  File \"supervisor.py\", line 1".to_owned();
    let failed = JobReport { end: bench_domain::JobEnd::Exited(1), stderr_tail, ..stopped };
    let why = read(&item, &body, &failed, ROUNDS_MAX).unwrap_err();
    assert!(why.to_string().contains("is missing"), "{why}");
}

/// Returns a report with these results, signed like the supervisor's.
fn report_with(item: &Item, body: &SampleBody, text: &str) -> JobReport {
    let key = key(item, body, NONCE).unwrap();
    let inner = Sha256::new().chain_update(key).chain_update(format!("{RESULTS}\n{text}")).finalize();
    let code = hex::encode(Sha256::new().chain_update(key).chain_update(inner).finalize());
    let file = json!({"text": text, "code": code}).to_string();
    JobReport {
        end: JobEnd::Exited(0),
        files: BTreeMap::from([(RESULTS.to_owned(), HarvestedFile::Text(file))]),
        stdout_tail: String::new(),
        stderr_tail: String::new(),
        elapsed_ms: None,
        isolation: None,
    }
}

#[test]
fn a_time_limit_counts_when_it_is_exceeded_twice() {
    let (item, body) = (doubling(2), fence("while True: pass"));
    let text = json!({
        "results": [true, -3], "tests": 2, "elapsed": 6.0, "grader": "testing_util",
        "metadata": {"error_code": -3, "error_message": "Time Limit Exceeded", "error": "TimeoutException()"},
    });
    let report = report_with(&item, &body, &text.to_string());
    assert!(read(&item, &body, &report, 1).is_err());
    let verdict = read(&item, &body, &report, 2).unwrap();
    assert_eq!(verdict.reason, "Test 2 of 2 failed (-3): Time Limit Exceeded: TimeoutException().");
    assert_eq!((&verdict.detail["grader"], &verdict.detail["round"]), (&json!("official"), &json!(2)));
    let mut cut = body.clone();
    cut.answer.finish = Finish::Length;
    let report = report_with(&item, &cut, &text.to_string());
    assert_eq!(read(&item, &cut, &report, 2).unwrap().outcome, Outcome::Truncated);
}

#[test]
fn results_of_another_writer_give_no_verdict() {
    let (item, body) = (doubling(1), fence("print(1)"));
    let text = json!({"results": [true], "tests": 1, "metadata": {"execution time": 0.1}}).to_string();
    let good = report_with(&item, &body, &text);
    assert_eq!(read(&item, &body, &good, 1).unwrap().score, Some(1.0));
    // The same file for another answer, another item and with other content.
    let other = SampleBody { answer: Answer { latency_ms: 1, ..body.answer.clone() }, ..body.clone() };
    assert!(read(&item, &other, &good, 1).is_err());
    assert!(read(&doubling(2), &body, &good, 1).is_err());
    let with = |file: HarvestedFile| JobReport {
        files: BTreeMap::from([(RESULTS.to_owned(), file)]),
        ..good.clone()
    };
    let changed = good.text(RESULTS).unwrap().replace("0.1", "0.2");
    for file in [
        HarvestedFile::Text(changed),
        HarvestedFile::Text(text.clone()),
        HarvestedFile::Text(String::new()),
        HarvestedFile::Text("[".repeat(100_000)),
        HarvestedFile::Text(r#"{"text": "{}", "code": ""}"#.into()),
        HarvestedFile::TooLong(1 << 40),
        HarvestedFile::NotAFile,
    ] {
        for round in 1..ROUNDS_MAX {
            assert!(read(&item, &body, &with(file.clone()), round).is_err(), "{file:?}");
        }
        // After the last round the program is held responsible: it is never right, and the verdict is flagged.
        let verdict = read(&item, &body, &with(file.clone()), ROUNDS_MAX).unwrap();
        assert!(verdict.score == Some(0.0) && verdict.detail.contains_key("flagged"), "{file:?}");
    }
    for garbage in ["", "{}", "[]", r#"{"results": 7, "metadata": {}}"#] {
        assert!(read(&item, &body, &report_with(&item, &body, garbage), 1).is_err(), "{garbage}");
    }
}

#[test]
fn an_item_without_readable_tests_is_not_graded() {
    drop(python());
    let item = to_item(&json!({
        "question_content": "?", "public_test_cases": "[]", "private_test_cases": "eJxx", "metadata": "{}",
    }));
    let verdict = grade_program(GradingMode::Isolated, &item, &fence("print(1)"));
    assert_eq!((verdict.outcome, verdict.score), (Outcome::InfrastructureError, None));
    assert!(verdict.reason.starts_with("The item's tests cannot be read: "), "{verdict:?}");
}

#[test]
fn without_tests_a_program_that_compiles_is_right() {
    drop(python());
    let item = doubling(0);
    assert_eq!(grade_program(GradingMode::Isolated, &item, &fence("print(1)")).score, Some(1.0));
    let broken = grade_program(GradingMode::Isolated, &item, &fence("print(1"));
    assert_eq!((broken.score, &broken.detail["results"]), (Some(0.0), &json!([-4])));
    assert!(broken.reason.starts_with("The program could not be run (-4): "), "{}", broken.reason);
}

#[test]
fn answers_never_get_into_the_script() {
    let (item, body) = (doubling(40), fence("$(touch /tmp/x); `id` '\"\\"));
    let job = job(GradingMode::Isolated, &item, &body);
    assert_eq!(job.script, "exec python3 -I -B supervisor.py\n");
    let paths: Vec<&str> = job.files.iter().map(|file| file.path.as_str()).collect();
    let common =
        ["supervisor.py", "child.py", "runner.py", "task.json", "program.txt", "public.json", "private.txt"];
    assert_eq!(paths, [&common[..], &["compare.py"]].concat());
    // Longer than the supervisor waits.
    assert_eq!(job.time_limit, Duration::from_secs(7 * 40 + 5) + SUPERVISOR_TIME);
    let encoded = vectors().iter().map(|row| to_item(&row["row"])).next().unwrap();
    assert!(
        super::tests::job(GradingMode::Official, &encoded, &body).time_limit < Duration::from_secs(2 * 3600)
    );

    let official = Templates::from([(OFFICIAL_RUNNER.to_owned(), "def run_test(): pass".to_owned())]);
    let attachments = BTreeMap::new();
    let material = JobMaterial { templates: &official, attachments: &attachments, nonce: NONCE };
    // The official runner compares in its own process, so isolated mode runs the program with our runner.
    for (grading, module) in [(GradingMode::Official, "testing_util"), (GradingMode::Isolated, "runner")] {
        let job = grader(grading).job(&item, &body, &material).unwrap();
        let file =
            |path: &str| job.files.iter().find(|file| file.path == path).map(|file| file.content.clone());
        let official = Some(FileContent::Bytes(b"def run_test(): pass".to_vec()));
        assert_eq!(file("testing_util.py") == official, grading == GradingMode::Official);
        let Some(FileContent::Bytes(task)) = file("task.json") else { panic!("no task") };
        let task: Value = serde_json::from_slice(&task).unwrap();
        assert_eq!((&task["module"], &task["wait_max"]), (&json!(module), &json!(285)));
        assert_eq!(task["isolated"], json!(grading == GradingMode::Isolated));
    }
}
