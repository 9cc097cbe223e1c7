//! Support for tests that run the command in a folder and environment of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Place {
    dir: TempDir,
}

/// Result of a command.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Builds the command, without the environment of the tests and without a network.
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
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn bench(&self, args: &[&str]) -> Done {
        Done::of(&self.command(args).output().unwrap())
    }

    /// Returns the JSON that a command prints. The command must succeed.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let done = self.bench(args);
        assert_eq!(done.code, 0, "{args:?}\n{}{}", done.out, done.err);
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {}", done.out))
    }
}

impl Done {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// Checks the exit code, and that there is one `error:` line and at most one `hint:`.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, part: &str) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        let lines: Vec<&str> = self.err.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(lines.len(), 1, "{}", self.err);
        assert!(lines[0].contains(part), "{part}: {}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }
}

pub(crate) fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/vectors").join(name)
}

/// Items in the dataset's own columns, whose correct answer is always C.
pub(crate) fn mmlu_items(count: usize) -> String {
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
