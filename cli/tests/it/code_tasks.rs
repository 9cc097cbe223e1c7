//! Programming tasks: proofs, runs of own tasks, artifacts, and models of LM Studio.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::provider::model_server;
use crate::support::{CommandOutput, TestDir};

const METADATA: &str = r#"{"language": "python", "instructions_file": "instructions.md", "eval": {"command": ["lab"], "timeout_seconds": 60},
  "admission": {"wrong": {"adds-one": {"fails": ["test_add.Add.test_numbers", "test_add.Add.test_zeros"], "why": "adds one too many"},
                          "doubles": {"fails": ["test_add.Add.test_numbers"], "why": "doubles the first"}}}}"#;
const TESTS: &str = "import lab\n\n\nclass Add(lab.Case):\n    def test_numbers(self):\n        self.assertEqual(self.program('python3', 'add.py', '2', '3').stdout, '5\\n')\n\n    def test_zeros(self):\n        self.assertEqual(self.program('python3', 'add.py', '0', '0').stdout, '0\\n')\n";

fn line(term: &str) -> String {
    format!("import sys\nprint(int(sys.argv[1]) {term})\n")
}

fn diff(term: &str) -> String {
    let (old, new) = ("- int(sys.argv[2])", term);
    format!(
        "--- a/add.py\n+++ b/add.py\n@@ -1,2 +1,2 @@\n import sys\n-print(int(sys.argv[1]) {old})\n+print(int(sys.argv[1]) {new})\n"
    )
}

/// Writes a task, and returns its folder.
fn task(dir: &TestDir, name: &str) -> PathBuf {
    let folder = dir.path(name);
    for (path, content) in [
        ("metadata.json", METADATA.to_owned()),
        ("instructions.md", "The sum is a difference.\n".to_owned()),
        ("workspace/add.py", line("- int(sys.argv[2])")),
        ("tests/test_add.py", TESTS.to_owned()),
        ("solutions/reference.diff", diff("+ int(sys.argv[2])")),
        ("solutions/wrong-adds-one.diff", diff("+ int(sys.argv[2]) + 1")),
        ("solutions/wrong-doubles.diff", diff("* 2")),
    ] {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn check(dir: &TestDir, args: &[&str]) -> CommandOutput {
    dir.bench(&[&["tasks", "check"], args].concat())
}

#[test]
fn a_task_is_proven_and_its_proof_recorded() {
    let dir = TestDir::new();
    let folder = task(&dir, "tasks/add");
    let proven = check(&dir, &["tasks", "--repeat", "2", "--record"]);
    assert_eq!(proven.code, 0, "{}{}", proven.stdout, proven.stderr);
    assert!(
        proven.stdout.starts_with("add: proven; the reference passes 2 tests 2 times in "),
        "{}",
        proven.stdout
    );
    assert!(
        proven.stdout.trim_end().ends_with("2 wrong solutions fail as named, 10 cheats earn nothing"),
        "{}",
        proven.stdout
    );
    let proof: Value = serde_json::from_slice(&std::fs::read(folder.join("proof.json")).unwrap()).unwrap();
    assert_eq!(proof["tests"], serde_json::json!(["test_add.Add.test_numbers", "test_add.Add.test_zeros"]));
    assert_eq!((&proof["repeats"], proof["task_digest"].as_str().unwrap().len()), (&2.into(), 64));
    let again = dir.json(&["tasks", "check", "tasks/add", "--cheats", "none", "--json"]);
    assert_eq!((&again[0]["proven"], &again[0]["cheats"]), (&true.into(), &0.into()), "{again}");

    // A folder of tasks whose parts are wrong: each is named, and the others are checked.
    let broken = task(&dir, "tasks/broken");
    std::fs::write(broken.join("solutions/reference.diff"), diff("+ 1")).unwrap();
    std::fs::remove_file(task(&dir, "tasks/none").join("instructions.md")).unwrap();
    let lenient = task(&dir, "tasks/wrong");
    std::fs::write(lenient.join("solutions/wrong-doubles.diff"), diff("+ int(sys.argv[2])")).unwrap();
    let found = check(&dir, &["tasks", "--cheats", "none"]);
    found.assert_refused(1, "3 tasks not proven");
    for part in [
        "none: NOT proven\n  the task `none`: `instructions.md`: the file is missing; ",
        "\nadd: proven; ",
        "broken: NOT proven\n  reference, run 1: it fails test_add.Add.test_numbers, test_add.Add.test_zeros: tests/test_add.py:6: '3\\n' != '5\\n'",
        "wrong: NOT proven\n  wrong solution doubles: it passes, although doubles the first",
    ] {
        assert!(found.stdout.contains(part), "{part}\n{}", found.stdout);
    }
    let files = check(&dir, &["tasks/add", "--no-episodes"]);
    assert_eq!((files.code, files.stdout.as_str()), (0, "add: its files are accepted\n"));
    std::fs::create_dir(dir.path("empty")).unwrap();
    check(&dir, &["tasks/add", "empty"])
        .assert_refused(2, "`empty` is no programming task, unlike the others");
}

#[test]
fn own_tasks_are_run_and_leave_artifacts() {
    let dir = TestDir::new();
    task(&dir, "tasks/add");
    let run = ["run", "--benchmark", "code_lab", "--dataset", "code_lab=tasks", "--out", "out", "--model"];
    let right = dir.bench(&[&run[..], &["oracle"]].concat());
    assert_eq!(right.code, 0, "{}{}", right.stdout, right.stderr);
    dir.write(
        "replies.jsonl",
        r#"{"id": "add", "response": "File: add.py\n```\nimport sys\nprint(5)\n```\n"}"#,
    );
    let wrong = dir.bench(&[&run[..], &["replay:replies.jsonl"]].concat());
    assert_eq!(wrong.code, 0, "{}{}", wrong.stdout, wrong.stderr);
    let written = dir.bench(&["artifacts", "latest", "--out", "artifacts"]);
    assert_eq!(written.code, 0, "{}{}", written.stdout, written.stderr);
    let folder = dir.path("artifacts").join("add__replay_replies.jsonl__sample00__lvl_base");
    let text = |name: &str| {
        std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    assert_eq!(text("response.txt"), "File: add.py\n```\nimport sys\nprint(5)\n```\n");
    assert_eq!(
        text("patch.diff"),
        format!(
            "--- a/add.py\n+++ b/add.py\n@@ -1,2 +1,2 @@\n import sys\n-{}+print(5)\n",
            line("- int(sys.argv[2])").lines().last().unwrap().to_owned() + "\n"
        )
    );
    assert!(text("prompt.txt").contains("The sum is a difference."));
    assert!(text("stdout.log").contains("--- failed in "));
    let tests: Value = serde_json::from_str(&text("tests.json")).unwrap();
    assert_eq!(tests[1]["outcome"], "failed", "{tests}");
    let attempts: Value =
        serde_json::from_slice(&std::fs::read(dir.path("artifacts/attempts.json")).unwrap()).unwrap();
    assert_eq!(
        (&attempts[0]["status"], &attempts[0]["task_id"]),
        (&"failed".into(), &"add".into()),
        "{attempts}"
    );
    assert!(dir.path("artifacts/manifest.json").exists());
    let printed = dir.bench(&["artifacts", "latest", "--file", "response.txt"]);
    assert_eq!(printed.stdout.trim_end(), text("response.txt").trim_end());
}

/// Runs a model of LM Studio beside a command that writes down what it is asked, and exits with this status for `load`.
fn run_on_lm_studio(dir: &TestDir, status: i32) -> (CommandOutput, String) {
    let (address, _) = model_server(200);
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> \"{}\"\n[ \"$1\" != load ] || exit {status}\n",
        dir.path("asked").display()
    );
    std::fs::create_dir_all(dir.path("bin")).unwrap();
    let program = dir.write("bin/lms", script);
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run =
        ["run", "--demo", "--benchmark", "mmlu_pro", "--limit", "2", "--yes", "--model", "lmstudio/small"];
    let mut command = dir.command(&run);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(dir.path("bin")).chain(std::env::split_paths(&path))).unwrap();
    command.env("PATH", path).env("LMSTUDIO_BASE_URL", &address);
    let output = CommandOutput::new(&command.output().unwrap());
    let asked = std::fs::read_to_string(dir.path("asked")).unwrap_or_default();
    let port = address.trim_end_matches("/v1").rsplit(':').next().unwrap().to_owned();
    (output, asked.replace(&port, "PORT"))
}

#[test]
fn lm_studio_loads_a_model_before_its_run_and_unloads_it_after() {
    let dir = TestDir::new();
    let (output, asked) = run_on_lm_studio(&dir, 0);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("Loading lmstudio/small"), "{}", output.stderr);
    assert_eq!(
        asked,
        "load small --exact -y --host 127.0.0.1 --port PORT\nunload small --host 127.0.0.1 --port PORT\n"
    );

    let dir = TestDir::new();
    let (output, asked) = run_on_lm_studio(&dir, 3);
    output.assert_refused(1, "LM Studio could not load `small`");
    assert_eq!(asked, "load small --exact -y --host 127.0.0.1 --port PORT\n", "nothing was loaded");
    assert_eq!(dir.json(&["runs", "--json"]), serde_json::json!([]), "nothing was ordered");
}
