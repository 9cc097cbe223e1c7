//! Files that decide how tests are built and run. An answer's changes of them are undone before its tests run.

mod inline;
mod manifest;

use std::collections::BTreeSet;

use crate::task::{CodeTask, Language};
use crate::workspace::{Workspace, WorkspaceFile};

/// Names of files that test runners, interpreters and build tools load by themselves.
const LOADED: [&str; 14] = [
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "setup.cfg",
    "pytest.py",
    "sitecustomize.py",
    "usercustomize.py",
    "build.rs",
    "rust-toolchain",
    "rust-toolchain.toml",
    "go.work",
    ".noderc",
    ".npmrc",
];
/// Folders of such files.
const FOLDERS: [&str; 2] = ["tests/", "vendor/"];

/// A workspace for its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarded {
    /// The answer's files, with those that decide about tests as the task has them.
    pub workspace: Workspace,
    /// Paths of files whose change by the answer was undone.
    pub restored: BTreeSet<String>,
}

/// Adds the task's tests to an answer's workspace, and undoes what the answer did to files that decide about them.
pub fn guard(task: &CodeTask, answer: &Workspace) -> Guarded {
    let mut workspace = answer.clone();
    let mut restored = BTreeSet::new();
    let mut put = |path: &str, file: Option<&WorkspaceFile>, is_answers: bool| {
        if workspace.get(path) == file {
            return;
        }
        if is_answers {
            restored.insert(path.to_owned());
        }
        match file {
            Some(file) => workspace.insert(path, file.clone()),
            None => drop(workspace.remove(path)),
        }
    };
    if !task.command.is_outside() {
        let all: BTreeSet<&String> =
            task.workspace.files().keys().chain(answer.files().keys()).filter(|path| decides(path)).collect();
        for path in all {
            put(path, task.workspace.get(path), true);
        }
        if task.language == Language::Rust {
            let sources = inline::restored(&task.workspace, answer);
            for (path, file) in sources.iter().filter(|(path, _)| !decides(path)) {
                put(path, file.as_ref(), true);
            }
            for (path, file) in &manifest::restored(&task.workspace, answer) {
                put(path, Some(file), true);
            }
        }
        for (path, file) in &task.tests {
            let path = format!("tests/{path}");
            put(
                &path,
                Some(file),
                answer.get(&path).is_some_and(|given| Some(given) != task.workspace.get(&path)),
            );
        }
    }
    for (path, file) in &task.overlay {
        put(path, Some(file), answer.get(path).is_some_and(|given| Some(given) != task.workspace.get(path)));
    }
    Guarded { workspace, restored }
}

/// Returns true for files that decide about tests in the answer's own process.
fn decides(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_test = name.ends_with("_test.go")
        || (name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py")));
    // Declared packages may be in the folder of the tests.
    let is_package = path.split('/').any(|part| matches!(part, "node_modules" | ".cargo"));
    is_test || is_package || LOADED.contains(&name) || FOLDERS.iter().any(|folder| path.starts_with(folder))
}
