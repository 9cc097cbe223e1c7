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
fn fewer_wrong_solutions_are_run_if_the_proof_has_the_others() {
    let dir = TestDir::new();
    let folder = task(&dir, "add");
    let third =
        r#""triples": {"fails": ["test_add.Add.test_numbers"], "why": "triples the first"}, "doubles""#;
    std::fs::write(folder.join("metadata.json"), METADATA.replace(r#""doubles""#, third)).unwrap();
    let triples = folder.join("solutions/wrong-triples.diff");
    std::fs::write(&triples, diff("* 3")).unwrap();
    let fewer = ["add", "--cheats", "none", "--wrong", "2"];
    let all = "3 wrong solutions fail as named\n";
    let unproven = check(&dir, &fewer);
    assert!(unproven.stdout.ends_with(&format!(" s, {all}")), "{}{}", unproven.stdout, unproven.stderr);
    assert_eq!(check(&dir, &["add", "--cheats", "none", "--record"]).code, 0);
    let proven = check(&dir, &fewer);
    assert!(proven.stdout.ends_with(&format!(" s, 2 of {all}")), "{}{}", proven.stdout, proven.stderr);
    let run = dir.json(&[&["tasks", "check"], &fewer[..], &["--json"]].concat());
    assert_eq!(run[0]["wrong"], serde_json::json!(["adds-one", "doubles"]));
    // A solution that was changed since isn't in the proof, and would pass.
    std::fs::write(&triples, diff("+ int(sys.argv[2])")).unwrap();
    let changed = check(&dir, &fewer);
    changed.assert_refused(1, "1 task not proven");
    assert!(
        changed.stdout.contains("wrong solution triples: it passes, although triples the first"),
        "{}",
        changed.stdout
    );
    assert_eq!(check(&dir, &["add", "--wrong", "1"]).code, 2);
    assert_eq!(check(&dir, &["add", "--wrong", "2", "--record"]).code, 2);
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
    let summary: Value =
        serde_json::from_slice(&std::fs::read(dir.path("artifacts/summary.json")).unwrap()).unwrap();
    let model = "replay:replies.jsonl";
    assert_eq!(
        (&summary["models"], &summary["tasks"], &summary["status_counts"], &summary["metrics"]["pass_at_1"]),
        (
            &serde_json::json!([model]),
            &serde_json::json!(["add"]),
            &serde_json::json!({ "failed": 1 }),
            &serde_json::json!({ model: 0.0 })
        ),
        "{summary}"
    );
    assert_eq!(summary["attempts"], attempts, "the same attempts");
    assert_eq!(summary["metrics_by_thinking_level"][model]["base"]["failed"], 1, "{summary}");
    let printed = dir.bench(&["artifacts", "latest", "--file", "response.txt"]);
    assert_eq!(printed.stdout.trim_end(), text("response.txt").trim_end());
}

const CALC: [(&str, &str); 4] = [
    (
        "metadata.json",
        r#"{"language": "python", "instructions_file": "instructions.md", "eval": {"command": ["pytest", "-q"]}}"#,
    ),
    ("instructions.md", "The sum is a difference.\n"),
    ("workspace/calc.py", "def add(a, b):\n    return a - b\n"),
    (
        "tests/test_calc.py",
        "import pytest\nfrom calc import add\n\n\ndef test_version():\n    assert pytest.__version__ == '7.4.4'\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
    ),
];

/// Writes a task of the format's reference harness, which declares pytest.
fn calc(dir: &TestDir, requirements: &str) {
    for (path, content) in CALC.into_iter().chain([("requirements.txt", requirements)]) {
        let path = dir.path("calc").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

/// Runs a right reply on the task, and returns the sample.
fn graded(dir: &TestDir) -> Value {
    run_calc(dir, "def add(a, b):\n    return a + b\n")
}

/// Runs a stored reply with this source on the task, and returns the sample.
fn run_calc(dir: &TestDir, source: &str) -> Value {
    let response = format!("File: calc.py\n```\n{source}```\n");
    dir.write("right.jsonl", serde_json::json!({ "id": "calc", "response": response }).to_string());
    let done = dir.bench(&[
        "run",
        "--benchmark",
        "code_lab",
        "--dataset",
        "code_lab=calc",
        "--model",
        "replay:right.jsonl",
        "--out",
        "out",
        "--yes",
    ]);
    let items = dir.json(&["runs", "latest", "--items", "--json"]);
    let item = items.pointer("/items/0").or_else(|| items.get(0)).cloned();
    item.unwrap_or_else(|| panic!("{items}\n{}{}", done.stdout, done.stderr))
}

#[test]
fn the_oracle_has_no_answer_without_a_reference() {
    let dir = TestDir::new();
    calc(&dir, "pytest==7.4.4\n");
    let run = ["run", "--benchmark", "code_lab", "--dataset", "code_lab=calc", "--out", "out", "--model"];
    dir.bench(&[&run[..], &["oracle", "--yes"]].concat());
    let items = dir.json(&["runs", "latest", "--items", "--json"]);
    let item = items.pointer("/items/0").or_else(|| items.get(0)).unwrap();
    assert_eq!(item["outcome"], "infrastructure-error", "{item}");
    assert!(item.to_string().contains("the task `calc` has no reference solution"), "{item}");
}

#[test]
fn declared_packages_are_installed_before_and_used_by_tests() {
    let dir = TestDir::new();
    calc(&dir, "pytest==7.4.4\n");
    // Without its packages, a task isn't run.
    let missing = graded(&dir);
    assert_eq!(missing["outcome"], "infrastructure-error", "{missing}");
    assert!(
        missing.to_string().contains("not runnable here: the packages of requirements.txt are not installed"),
        "{missing}"
    );
    let install = || dir.bench(&["sandy", "setup", "--packages", "calc"]);
    let installed = install();
    assert_eq!(
        installed.code, 0,
        "this test needs a package index with pytest 7.4.4 for pip: {}{}",
        installed.stdout, installed.stderr
    );
    let names = || {
        let entries = std::fs::read_dir(dir.path("data/packages")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let found = names();
    let [lock, folder, digests] = found.as_slice() else { panic!("{found:?}") };
    assert!(
        lock == "lock" && folder.starts_with("pip-") && digests.starts_with(&format!("{folder}-3.")),
        "{found:?}"
    );
    let digests = std::fs::read_to_string(dir.path("data/packages").join(digests)).unwrap();
    assert!(digests.contains("pytest==7.4.4 --hash=sha256:"), "{digests}");
    let again = install();
    assert!(again.stderr.contains("installed already"), "{}", again.stderr);
    assert_eq!(names(), found);
    // The answer is run, without asking for it again.
    let repeated = dir.bench(&["requeue", "latest", "--item", "calc", "--yes"]);
    assert_eq!(repeated.code, 0, "{}{}", repeated.stdout, repeated.stderr);
    let right = dir.json(&["runs", "latest", "--items", "--json"]);
    assert!(right.to_string().contains("tests-passed"), "{right}");
    dir.bench(&["requeue", "latest", "--item", "calc", "--sample", "1", "--yes"])
        .assert_refused(2, "sample 1 of `calc` was graded");
    dir.bench(&["requeue", "latest", "--item", "other", "--yes"])
        .assert_refused(2, "the run has no item `other`");
    // Tests that the answer leaves out count as failed, also if others are left.
    let other = dir.path("calc/tests/test_other.py");
    std::fs::write(other, "def test_nothing():\n    assert True\n").unwrap();
    let skipping = run_calc(&dir, "import pytest\npytest.skip('later', allow_module_level=True)\n");
    assert_eq!(skipping["outcome"], "incorrect", "{skipping}");
}

const CRATE: [(&str, &str); 5] = [
    (
        "metadata.json",
        r#"{"language": "rust", "instructions_file": "i.md", "eval": {"command": ["cargo", "test"]}}"#,
    ),
    ("i.md", "Five.\n"),
    (
        "workspace/Cargo.toml",
        "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nitoa = \"1\"\n",
    ),
    (
        "workspace/Cargo.lock",
        "version = 4\n\n[[package]]\nname = \"itoa\"\nversion = \"1.0.19\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"3bd1574e617a9a6c1f8f8181bd7e841e1f20e4277607ef28945765188d6284d4\"\n\n[[package]]\nname = \"x\"\nversion = \"0.1.0\"\ndependencies = [\n \"itoa\",\n]\n",
    ),
    ("workspace/src/lib.rs", ""),
];
const MODULE: [(&str, &str); 6] = [
    (
        "metadata.json",
        r#"{"language": "javascript", "instructions_file": "i.md", "eval": {"command": ["node", "tests/run.mjs"]}}"#,
    ),
    ("i.md", "Two days.\n"),
    (
        "workspace/package.json",
        r#"{"name": "x", "devDependencies": {"ms": "2.1.3"}, "scripts": {"preinstall": "touch scripts-ran", "prepare": "touch scripts-ran"}}"#,
    ),
    (
        "workspace/package-lock.json",
        r#"{"name": "x", "lockfileVersion": 3, "packages": {"": {"name": "x", "hasInstallScript": true, "devDependencies": {"ms": "2.1.3"}},
            "node_modules/ms": {"version": "2.1.3", "dev": true, "integrity": "sha512-6FlzubTLZG3J2a/NVCAleEhjzq5oxgHyaCU9yYXvcLsvoVaHJq/s5xXI6/XXP6tz7R9xAOtHnSO/tXtF3WRTlA=="}}}"#,
    ),
    ("workspace/days.mjs", "export const days = \"1 day\"\n"),
    (
        "tests/run.mjs",
        "import assert from \"node:assert\"\nimport ms from \"ms\"\nimport { days } from \"../days.mjs\"\nassert.equal(ms(days), 2 * 24 * 3600 * 1000)\n",
    ),
];

#[test]
fn packages_of_cargo_and_npm_are_installed_by_their_lock_files() {
    let dir = TestDir::new();
    for (task, files) in [("more/crate", &CRATE[..]), ("more/module", &MODULE[..])] {
        for (path, content) in files {
            let path = dir.path(task).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }
    let mut install = dir.command(&["sandy", "setup", "--packages", "more"]);
    // The toolchain that builds the project finds its own settings in the home directory.
    for name in ["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        install.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    if let Some(home) = std::env::var_os("HOME") {
        install.env("HOME", home);
    }
    // Tests need what this setting leaves out.
    install.env("NODE_ENV", "production");
    let installed = CommandOutput::new(&install.output().unwrap());
    assert_eq!(
        installed.code, 0,
        "this test needs npm and cargo, and registries with ms 2.1.3 and itoa 1.0.19: {}",
        installed.stderr
    );
    let packages = dir.path("data/packages");
    let names: Vec<PathBuf> =
        std::fs::read_dir(&packages).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(names.iter().any(|folder| folder.join("vendor/itoa-1.0.19/Cargo.toml").is_file()), "{names:?}");
    assert!(names.iter().any(|folder| folder.join("node_modules/ms/index.js").is_file()), "{names:?}");
    assert!(!installed.stderr.contains("scripts-ran"), "{}", installed.stderr);
    dir.write(
        "days.jsonl",
        r#"{"id": "module", "response": "File: days.mjs\n```\nexport const days = \"2 days\"\n```\n"}"#,
    );
    let run = ["run", "--benchmark", "code_lab", "--dataset", "code_lab=more", "--item", "module", "--model"];
    let done = dir.bench(&[&run[..], &["replay:days.jsonl", "--out", "out", "--yes"]].concat());
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let items = dir.json(&["runs", "latest", "--items", "--json"]);
    assert!(items.to_string().contains("tests-passed"), "{items}");
}

#[test]
fn declarations_that_leave_a_choice_are_refused() {
    let dir = TestDir::new();
    calc(&dir, "pytest>=7\n");
    let why = "`requirements.txt` doesn't fix its packages: `pytest>=7` is no `NAME==VERSION`";
    dir.bench(&["sandy", "setup", "--packages", "calc"]).assert_refused(1, why);
    let checked = check(&dir, &["calc", "--cheats", "none"]);
    checked.assert_refused(1, "1 task not proven");
    assert!(checked.stdout.contains(why), "{}", checked.stdout);
    // So does a check of the files, which says what it leaves open.
    let files = check(&dir, &["calc", "--no-episodes"]);
    files.assert_refused(1, "1 task refused");
    assert!(files.stdout.starts_with("calc: refused; ") && files.stdout.contains(why), "{}", files.stdout);
    assert!(!files.stderr.contains("Nothing was run"), "{}", files.stderr);
    calc(&dir, "pytest==7.4.4\n");
    let files = check(&dir, &["calc", "--no-episodes"]);
    assert_eq!((files.code, files.stdout.as_str()), (0, "calc: its files are accepted\n"));
    for part in [
        "calc: it has no reference solution, so that it can't be proven",
        "Nothing was run: whether the reference passes",
    ] {
        assert!(files.stderr.contains(part), "{part}: {}", files.stderr);
    }
    dir.bench(&["sandy", "setup", "--packages", "none"]).assert_refused(2, "`none` has no programming task");
}

#[test]
fn a_missing_part_of_a_task_is_named() {
    let dir = TestDir::new();
    for part in ["metadata.json", "instructions.md", "workspace", "tests"] {
        let folder = task(&dir, "tasks/add");
        let path = folder.join(part);
        match path.is_dir() {
            true => std::fs::remove_dir_all(&path).unwrap(),
            false => std::fs::remove_file(&path).unwrap(),
        }
        // Beside another task, it isn't left out either.
        task(&dir, "tasks/complete");
        for given in ["tasks", "tasks/add"] {
            let checked = check(&dir, &[given, "--no-episodes"]);
            checked.assert_refused(1, "1 task refused");
            let why = format!("add: refused; the task `add`: `{part}`: the file is missing");
            assert!(checked.stdout.contains(&why), "{part}: {}", checked.stdout);
            let dataset = format!("code_lab={given}");
            let run = ["run", "--benchmark", "code_lab", "--model", "nop", "--yes", "--dataset", &dataset];
            dir.bench(&run).assert_refused(1, &format!("`{part}`: the file is missing"));
        }
    }
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
