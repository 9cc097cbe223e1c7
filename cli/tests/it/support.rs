//! Support for tests that run the command in a folder and environment of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Temporary folder with an environment of its own: no variables of the tests, no network, `home` as home directory and
/// `data` as data directory, and a locale with UTF-8. Commands run in it.
pub(crate) struct TestDir {
    dir: TempDir,
}

/// Exit code and output of a command.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file, and returns its path.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Builds a `bench` command.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("BENCH_HOME", self.path("data"))
            .env("HF_HUB_OFFLINE", "1")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }

    /// Runs a `bench` command to its end.
    pub(crate) fn bench(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::new(&self.command(args).output().unwrap())
    }

    /// Returns the JSON that a command prints. The command must succeed.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.bench(args);
        assert_eq!(output.code, 0, "{args:?}\n{}{}", output.stdout, output.stderr);
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.stdout))
    }
}

impl CommandOutput {
    pub(crate) fn new(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// Checks the exit code, and that there is one `error:` line and at most one `hint:`.
    #[track_caller]
    pub(crate) fn assert_refused(&self, code: i32, part: &str) {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        let lines: Vec<&str> = self.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(lines.len(), 1, "{}", self.stderr);
        assert!(lines[0].contains(part), "{part}: {}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }
}

/// Returns the path of a file of test vectors.
pub(crate) fn vector_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/vectors").join(name)
}

/// Returns rows of MMLU-Pro in the dataset's own columns, as JSONL: one with a worked example, and `count` rows whose
/// correct answer is always C.
pub(crate) fn mmlu_pro_rows(count: usize) -> String {
    let shot = serde_json::json!({
        "question": "Shot?", "options": ["a", "b", "c"], "answer": "A", "answer_index": 0, "category": "math",
        "cot_content": "A: Let's think step by step. The answer is (A).", "question_id": 0, "src": "own",
    });
    let items = (0..count).map(|n| {
        serde_json::json!({
            "question": format!("Question {n}?"), "options": ["x", "y", "z"], "answer": "C", "answer_index": 2,
            "category": "math", "cot_content": "", "question_id": n + 1, "src": "own",
        })
    });
    std::iter::once(shot).chain(items).map(|row| format!("{row}\n")).collect()
}
