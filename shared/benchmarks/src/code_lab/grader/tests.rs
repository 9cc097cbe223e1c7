use std::collections::BTreeMap;

use bench_code_tasks::{TaskFiles, cheats};
use bench_domain::{Answer, Finish, HarvestedFile, JobEnd, Prompt, Stage};
use bench_items::Layout;
use bench_terminal_tasks::TaskPath;

use super::super::{CodeLab, task_row};
use super::*;
use crate::benchmark::Benchmark;
use crate::grading::Grading;
use crate::material::Templates;
use crate::testing::run;

const NONCE: &str = "nonce";

const TESTS: &str = r#"
import lab


class Sums(lab.Case):
    def test_two_numbers(self):
        done = self.program("python3", "sums.py", stdin="2 3\n")
        self.assertEqual((done.status, done.stdout), (0, "5\n"), done)

    def test_no_numbers(self):
        done = self.program("python3", "sums.py", stdin="\n")
        self.assertEqual(done.stdout, "0\n", done)

    def test_requests(self):
        driver = self.driver("python3", "driver.py")
        self.assertEqual(driver.call("sum", numbers=[1, 2, 3]), 6)
        with self.assertRaises(lab.Raised) as raised:
            driver.call("sum", numbers=["x"])
        self.assertEqual(raised.exception.kind, "TypeError")

    def test_many_requests(self):
        self.write("sub/numbers.txt", "1 1")
        self.assertEqual(self.read("sub/numbers.txt"), "1 1")
        process = self.process("python3", "-c", "while True: print(input())")
        process.send("a")
        self.assertEqual(process.line(), "a")
        self.assertNotEqual(process.wait().status, 0)
"#;

const DRIVER: &str = r#"
import json, sys
from sums import add

for line in sys.stdin:
    request = json.loads(line)
    try:
        print(json.dumps({"result": add(request["numbers"])}), flush=True)
    except Exception as error:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}), flush=True)
"#;

const WRONG: &str = "import sys\n\n\ndef add(numbers):\n    return 0\n\n\nif __name__ == \"__main__\":\n    print(add([int(word) for word in sys.stdin.read().split()]))\n";
const RIGHT: &str = "import sys\n\n\ndef add(numbers):\n    return sum(numbers)\n\n\nif __name__ == \"__main__\":\n    print(add([int(word) for word in sys.stdin.read().split()]))\n";

/// Returns a task whose four tests are recorded.
fn item(evaluation: &str) -> Item {
    let metadata = format!(
        r#"{{"language": "python", "type": "bug_fix", "difficulty": "easy", "instructions_file": "task.md", "eval": {evaluation}}}"#
    );
    let mut files = TaskFiles::default();
    let mut add = |path: &str, text: &str| {
        files.add(&TaskPath::new(path).unwrap(), None, text.as_bytes().to_vec()).unwrap();
    };
    add("metadata.json", &metadata);
    add("task.md", "Sums are wrong.");
    add("workspace/sums.py", WRONG);
    add("tests/test_sums.py", TESTS);
    add("tests/overlay/driver.py", DRIVER);
    let task = CodeTask::read(&files, "sums").unwrap();
    let tests = ["test_many_requests", "test_no_numbers", "test_requests", "test_two_numbers"];
    let tests: Vec<String> = tests.iter().map(|name| format!("test_sums.Sums.{name}")).collect();
    let proof = json!({ "task_digest": task.digest, "tests": tests, "repeats": 1, "wrong": {} });
    files.add(&TaskPath::new("proof.json").unwrap(), None, proof.to_string().into_bytes()).unwrap();
    CodeLab::DEFAULT.item(0, task_row("sums", &files)).unwrap().unwrap()
}

fn usual() -> Item {
    item(r#"{"command": ["lab"], "timeout_seconds": 60}"#)
}

/// Returns the body of an answer with whole files.
fn files(files: &[(&str, &str)]) -> SampleBody {
    let text: String =
        files.iter().map(|(path, text)| format!("File: {path}\n``````\n{text}\n``````\n")).collect();
    SampleBody::new("sums", Prompt::user("?"), Answer::local(text), "")
}

fn round(number: u32) -> Round<'static> {
    Round { number, nonce: NONCE }
}

fn report(item: &Item, body: &SampleBody) -> JobReport {
    let attachments = BTreeMap::new();
    let material = JobMaterial { templates: &Templates::new(), attachments: &attachments, nonce: NONCE };
    let folder = tempfile::tempdir().unwrap();
    run(&GRADER.job(item, body, &material).unwrap(), folder.path())
}

fn graded(item: &Item, body: &SampleBody) -> Verdict {
    let report = report(item, body);
    GRADER.read(item, body, &report, round(ROUNDS_MAX)).unwrap_or_else(|why| panic!("{why}: {report:?}"))
}

fn shown(verdict: &Verdict) -> (&str, Outcome) {
    (verdict.detail["verdict"].as_str().unwrap(), verdict.outcome)
}

#[test]
fn a_right_answer_passes_every_recorded_test() {
    let item = usual();
    assert_eq!(Benchmark::expected(&CodeLab::DEFAULT, &item), "passes all 4 tests");
    let verdict = graded(&item, &files(&[("sums.py", RIGHT)]));
    assert_eq!(shown(&verdict), ("tests-passed", Outcome::Correct), "{verdict:?}");
    assert_eq!((verdict.score, verdict.reason.as_str()), (Some(1.0), ""));
    assert_eq!((&verdict.detail["tests_passed"], &verdict.detail["tests"]), (&json!(4), &json!(4)));
    assert_eq!(verdict.extracted.as_deref(), Some("whole files: sums.py"));
}

#[test]
fn a_wrong_answer_names_the_tests_that_it_fails() {
    let wrong = RIGHT.replace("return sum(numbers)", "return sum(map(int, numbers)) + 1");
    let verdict = graded(&usual(), &files(&[("sums.py", &wrong)]));
    assert_eq!(shown(&verdict), ("tests-failed", Outcome::Incorrect), "{verdict:?}");
    assert_eq!(verdict.reason, "3 of 4 tests failed, the first of them test_sums.Sums.test_no_numbers.");
    let message = verdict.detail["failed"][0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("tests/test_sums.py:12: ") && message.contains("'1\\n' != '0\\n'"),
        "{message}"
    );
}

#[test]
fn answers_that_cannot_be_run_say_why() {
    let item = usual();
    let verdict = |text: &str, finish| {
        let answer = Answer { finish, ..Answer::local(text) };
        Benchmark::grade(&CodeLab::DEFAULT, &item, &answer)
    };
    let right = files(&[("sums.py", RIGHT)]).answer.text;
    assert_eq!(verdict(&right, Finish::Stop), Grading::NeedsTurn(Stage::Sandbox));
    for (text, finish, expected, outcome) in [
        ("", Finish::Stop, "no-answer", Outcome::NoAnswer),
        ("<think>I think.</think>\n", Finish::Stop, "no-answer", Outcome::Unparsed),
        ("Just return the sum.", Finish::Stop, "not-parsed", Outcome::Unparsed),
        ("```diff\n--- a/x\n", Finish::Length, "not-parsed", Outcome::Truncated),
        ("I can't help.", Finish::Refused, "not-parsed", Outcome::Refused),
        ("File: ../x\n```\nx\n```\n", Finish::Stop, "not-parsed", Outcome::Unparsed),
        (
            "```diff\n--- a/none.py\n+++ b/none.py\n@@ -1 +1 @@\n-a\n+b\n```\n",
            Finish::Stop,
            "not-applied",
            Outcome::Incorrect,
        ),
    ] {
        let verdict = verdict(text, finish).done().unwrap();
        assert_eq!(shown(&verdict), (expected, outcome), "{text}: {verdict:?}");
        assert!(verdict.reason.ends_with('.'), "{}", verdict.reason);
    }
}

#[test]
fn builds_that_fail_and_programs_that_hang_have_verdicts_of_their_own() {
    let build = r#"{"command": ["lab"], "build": [["python3", "-m", "py_compile", "sums.py"]], "timeout_seconds": 60}"#;
    let verdict = graded(&item(build), &files(&[("sums.py", "def add(:")]));
    assert_eq!(shown(&verdict), ("build-failed", Outcome::Incorrect), "{verdict:?}");
    assert!(verdict.detail["build_output"].as_str().unwrap().contains("SyntaxError"), "{verdict:?}");

    let item = item(r#"{"command": ["lab"], "timeout_seconds": 2}"#);
    let body = files(&[("sums.py", "while True:\n    pass\n")]);
    let report = report(&item, &body);
    let first = GRADER.read(&item, &body, &report, round(1)).unwrap_err();
    assert!(first.retry, "a busy machine can cause it");
    let verdict = GRADER.read(&item, &body, &report, round(2)).unwrap();
    assert_eq!(shown(&verdict), ("timed-out", Outcome::Incorrect), "{verdict:?}");

    let verdict = graded(&usual(), &files(&[("sums.py", "import os\nos.kill(os.getpid(), 9)\n")]));
    assert_eq!(shown(&verdict), ("out-of-memory", Outcome::Incorrect), "{verdict:?}");
}

#[test]
fn known_cheats_earn_nothing() {
    let item = usual();
    let task = row::task(&item).unwrap();
    for cheat in cheats(&task) {
        let key = [7; 32];
        let folder = tempfile::tempdir().unwrap();
        let report = run(&task_job(&task, &cheat.workspace, &key, Extent::FirstFailure), folder.path());
        let passes = read_results(&report, &key).is_ok_and(|results| results.passes(task.recorded_tests()));
        assert!(!passes, "{}: {report:?}", cheat.name);
    }
}

/// Programs of an answer that try to get at the grader or its files.
#[test]
fn programs_reach_neither_the_tests_nor_the_results() {
    const LEFT: &str = "import os, subprocess\nsubprocess.Popen(['sh', '-c', 'while true; do echo {} > results.json; echo {} > ../results.json; done'])\n";
    const SEARCH: &str = r"
import glob, os
found = []
for above in ['.', '..', f'/proc/{os.getppid()}/cwd']:
    for path in glob.glob(above + '/**/*', recursive=True):
        try:
            text = open(path, 'rb').read()
        except OSError:
            continue
        found += [path for word in [b'test_no_' + b'numbers', b'stops_at_' + b'failure'] if word in text]
try:
    found += [open(f'/proc/{os.getppid()}/mem', 'rb').name]
except OSError:
    pass
if found:
    open('leak', 'w').write(str(found))
";
    let item = usual();
    let search = format!("{SEARCH}{RIGHT}");
    let left = format!("{LEFT}{RIGHT}");
    for code in [&search, &left] {
        let verdict = graded(&item, &files(&[("sums.py", code)]));
        assert_eq!(shown(&verdict).0, "tests-passed", "{verdict:?}");
    }
    // A program that finds the tests would leave a file, which this test looks for.
    let looks = TESTS.replace(
        "        self.assertEqual(done.stdout, \"0\\n\", done)",
        "        self.assertEqual(done.stdout, \"0\\n\", done)\n        self.assertFalse(self.exists(\"leak\"), self.exists(\"leak\") and self.read(\"leak\"))",
    );
    let mut row = item.row.clone();
    row["files"]["tests/test_sums.py"]["text"] = json!(looks);
    row["files"].as_object_mut().unwrap().remove("proof.json");
    let item = CodeLab::DEFAULT.item(0, row).unwrap().unwrap();
    let verdict = graded(&item, &files(&[("sums.py", &search)]));
    assert_eq!(shown(&verdict).0, "tests-passed", "{verdict:?}");
}

#[test]
fn tests_write_through_no_link_of_a_program() {
    let links = "import os\nos.symlink('/tmp', 'sub')\nprint(5)\n";
    let mut row = usual().row;
    row["files"]["tests/test_sums.py"]["text"] = json!(
        "import lab\n\n\nclass Links(lab.Case):\n    def test_link(self):\n        self.program('python3', 'sums.py')\n        self.write('sub/x', '')\n"
    );
    row["files"].as_object_mut().unwrap().remove("proof.json");
    let item = CodeLab::DEFAULT.item(0, row).unwrap().unwrap();
    let verdict = graded(&item, &files(&[("sums.py", links)]));
    assert_eq!(
        verdict.detail["failed"][0]["message"], "tests/test_sums.py:7: sub/x leads through a link",
        "{verdict:?}"
    );
}

#[test]
fn overlay_files_are_those_of_the_task() {
    let stub = "import sys\nfor line in sys.stdin:\n    print('{\"result\": 6}', flush=True)\n";
    let verdict = graded(&usual(), &files(&[("sums.py", RIGHT), ("driver.py", stub)]));
    assert_eq!(shown(&verdict).0, "tests-passed", "{verdict:?}");
    assert_eq!(verdict.detail["restored"], json!(["driver.py"]));
}

#[test]
fn results_of_another_writer_are_no_verdict() {
    let item = usual();
    let body = files(&[("sums.py", RIGHT)]);
    let forged = json!({ "text": json!({ "tests": {} }).to_string(), "code": "00" }).to_string();
    let report = |end, files: &[(&str, &str)]| JobReport {
        end,
        files: files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), HarvestedFile::Text((*text).to_owned())))
            .collect(),
        stdout_tail: String::new(),
        stderr_tail: String::new(),
        elapsed_ms: None,
        isolation: None,
    };
    let exited = report(JobEnd::Exited(0), &[(RESULTS, &forged)]);
    for number in 1..=ROUNDS_MAX {
        assert!(GRADER.read(&item, &body, &exited, round(number)).unwrap_err().retry);
    }
    for (end, expected) in [(JobEnd::TimedOut, "timed-out"), (JobEnd::OverLimit, "out-of-memory")] {
        let verdict = GRADER.read(&item, &body, &report(end, &[]), round(2)).unwrap();
        assert_eq!(shown(&verdict), (expected, Outcome::Incorrect));
    }
}

#[test]
fn tests_that_cannot_be_loaded_are_the_tasks_fault() {
    let mut row = usual().row;
    row["files"]["tests/test_sums.py"]["text"] = json!("import no_such_module\n");
    let item = CodeLab::DEFAULT.item(0, row).unwrap().unwrap();
    let verdict = graded(&item, &files(&[("sums.py", RIGHT)]));
    assert_eq!(
        (verdict.outcome, verdict.code),
        (Outcome::InfrastructureError, Some(Code::InvalidItem)),
        "{verdict:?}"
    );
    assert!(verdict.reason.contains("no_such_module"), "{}", verdict.reason);
}

#[test]
fn a_task_without_a_reference_has_no_oracle() {
    let mut row = usual().row;
    let item = CodeLab::DEFAULT.item(0, row.clone()).unwrap().unwrap();
    let agent = &super::super::agent::CodeLabAgent;
    for missing in
        [Benchmark::missing_oracle(&CodeLab::DEFAULT, &item), Benchmark::missing_oracle(agent, &item)]
    {
        assert_eq!(missing.as_deref(), Some("the task `sums` has no reference solution"));
    }
    let reference =
        "--- a/sums.py\n+++ b/sums.py\n@@ -5,1 +5,1 @@\n-    return 0\n+    return sum(numbers)\n";
    row["files"]["solutions/reference.diff"] = json!({ "text": reference });
    let item = CodeLab::DEFAULT.item(0, row).unwrap().unwrap();
    assert_eq!(Benchmark::missing_oracle(&CodeLab::DEFAULT, &item), None);
    let answer = Answer::local(Benchmark::oracle(&CodeLab::DEFAULT, &item));
    assert_eq!(Benchmark::grade(&CodeLab::DEFAULT, &item, &answer), Grading::NeedsTurn(Stage::Sandbox));
}

#[test]
fn a_tasks_own_python_path_does_not_hide_its_packages() {
    let own = r#"{"command": ["lab"], "timeout_seconds": 60, "env": {"PYTHONPATH": "lib:more"}}"#;
    let path_of = |evaluation: &str, env: &str| {
        let mut row = item(evaluation).row;
        row["files"]["requirements.txt"] = json!({ "text": "six==1.16.0\n" });
        row["files"]["tests/test_sums.py"]["text"] = json!(format!(
            "import lab\n\n\nclass Path(lab.Case):\n    def test_path(self):\n        print_path = 'import os; print(os.environ[\"PYTHONPATH\"])'\n        self.assertEqual(self.program('python3', '-c', print_path, env={env}).stdout, '')\n"
        ));
        row["files"].as_object_mut().unwrap().remove("proof.json");
        let item = CodeLab::DEFAULT.item(0, row).unwrap().unwrap();
        let name = row::task(&item).unwrap().dependencies.unwrap()[0].name();
        let verdict = graded(&item, &files(&[("sums.py", RIGHT)]));
        let message = verdict.detail["failed"][0]["message"].as_str().unwrap().to_owned();
        (message, format!("/{name}/site"))
    };
    for (evaluation, env, after) in [
        (own, "None", ":lib:more\\n"),
        (own, "{'PYTHONPATH': 'sub'}", ":sub\\n"),
        (r#"{"command": ["lab"], "timeout_seconds": 60}"#, "None", "\\n"),
    ] {
        let (message, site) = path_of(evaluation, env);
        assert!(message.contains(&format!("{site}{after}'")), "{after}: {message}");
    }
}

#[test]
fn every_bundled_task_is_admitted() {
    for (line, index) in CodeLab::DEFAULT.spec().demo.items.lines().zip(0..) {
        let row = serde_json::from_str(line).unwrap();
        let item = CodeLab::DEFAULT.item(index, row).unwrap().unwrap();
        let task = row::task(&item).unwrap();
        assert!(
            task.proof.is_some(),
            "the proof of `{}` isn't that of its files; run `bench tasks check --record`",
            task.id
        );
        assert!(task.command.is_outside(), "{}", task.id);
        let answer = Answer::local(Benchmark::oracle(&CodeLab::DEFAULT, &item));
        assert_eq!(
            Benchmark::grade(&CodeLab::DEFAULT, &item, &answer),
            Grading::NeedsTurn(Stage::Sandbox),
            "{}",
            task.id
        );
    }
}
