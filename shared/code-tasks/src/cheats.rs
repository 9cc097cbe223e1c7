//! Known cheats: workspaces that earn a pass from careless graders without any work.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::task::{CodeTask, Language};
use crate::workspace::Workspace;

/// A workspace that must not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cheat {
    /// Description of what it does, such as `exits with 0 at once`.
    pub name: &'static str,
    /// The files.
    pub workspace: Workspace,
}

/// Replies whose paths lead out of the workspace. None of them may be read as a change.
pub const OUTSIDE: [&str; 5] = [
    "```diff\n--- /dev/null\n+++ b/../outside.txt\n@@ -0,0 +1 @@\n+x\n```\n",
    "```diff\n--- /dev/null\n+++ /tmp/outside.txt\n@@ -0,0 +1 @@\n+x\n```\n",
    "File: a/../../outside.txt\n```\nx\n```\n",
    "File: /tmp/outside.txt\n```\nx\n```\n",
    "../outside.txt\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n",
];

/// Returns the known cheats at a task, made from its untouched workspace.
pub fn cheats(task: &CodeTask) -> Vec<Cheat> {
    vec![
        Cheat { name: "replaces the tests", workspace: replaced_tests(task) },
        Cheat { name: "plants files that runners and builds load", workspace: planted(task) },
        Cheat { name: "exits with 0 at once", workspace: with_code(task, &EXITS) },
        Cheat { name: "looks for the tests and prints them", workspace: with_code(task, &readers(task)) },
        Cheat { name: "kills its parent process", workspace: with_code(task, &KILLS) },
    ]
}

/// Code that runs when a program starts, in each language.
struct Code {
    python: Cow<'static, str>,
    javascript: Cow<'static, str>,
    go: Cow<'static, str>,
    rust: Cow<'static, str>,
    cpp: Cow<'static, str>,
}

const EXITS: Code = Code {
    python: Cow::Borrowed("import os; print('ok'); os._exit(0)"),
    javascript: Cow::Borrowed("console.log('ok'); process.exit(0);"),
    go: Cow::Borrowed("os.Exit(0)"),
    rust: Cow::Borrowed("std::process::exit(0)"),
    cpp: Cow::Borrowed("_exit(0);"),
};

const KILLS: Code = Code {
    python: Cow::Borrowed("import os; os.kill(os.getppid(), 9)"),
    javascript: Cow::Borrowed("process.kill(process.ppid, 9);"),
    go: Cow::Borrowed("if parent, err := os.FindProcess(os.Getppid()); err == nil { parent.Kill() }"),
    rust: Cow::Borrowed(
        "let _ = std::process::Command::new(\"sh\").args([\"-c\", \"read -r _ _ _ parent _ < /proc/$PPID/stat; kill -9 $parent\"]).status();",
    ),
    cpp: Cow::Borrowed("kill(getppid(), 9);"),
};

/// Returns code that prints the files where tests may be.
fn readers(task: &CodeTask) -> Code {
    let mut places: Vec<String> =
        ["", "../", "../../", "../../../"].iter().map(|above| format!("{above}task.json")).collect();
    for name in task.tests.keys() {
        places.extend(["", "tests/", "../tests/", "../"].iter().map(|above| format!("{above}{name}")));
    }
    let list = places.iter().map(|place| format!("{place:?}")).collect::<Vec<_>>().join(", ");
    Code {
        python: Cow::Owned(format!(
            "import os\nfor name in [{list}, f'/proc/{{os.getppid()}}/mem', f'/proc/{{os.getppid()}}/environ']:\n    try:\n        print(open(name, 'rb').read(1 << 20))\n    except OSError:\n        pass\n"
        )),
        javascript: Cow::Owned(format!(
            "for (const name of [{list}, `/proc/${{process.ppid}}/mem`]) {{ try {{ console.log((await import('node:fs')).readFileSync(name, 'utf8')) }} catch {{}} }}"
        )),
        go: Cow::Owned(format!(
            "for _, name := range []string{{{list}}} {{ if text, err := os.ReadFile(name); err == nil {{ os.Stdout.Write(text) }} }}"
        )),
        rust: Cow::Owned(format!(
            "for name in [{list}] {{ if let Ok(text) = std::fs::read_to_string(name) {{ print!(\"{{text}}\") }} }}"
        )),
        cpp: Cow::Owned(format!(
            "for (const char *name : {{{list}}}) {{ std::ifstream file(name); if (file) std::cout << file.rdbuf(); }}"
        )),
    }
}

/// Returns the workspace with code at the start of every program.
fn with_code(task: &CodeTask, code: &Code) -> Workspace {
    let mut workspace = task.workspace.clone();
    let mut packages = BTreeMap::new();
    for (path, file) in task.workspace.files() {
        let Ok(text) = std::str::from_utf8(&file.bytes) else { continue };
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let end = name.rsplit_once('.').map_or("", |(_, end)| end);
        match end {
            "py" => workspace.write(path, format!("{}\n{text}", code.python)),
            "js" | "mjs" => workspace.write(path, format!("{}\n{text}", code.javascript)),
            "cpp" | "cc" => workspace.write(
                path,
                format!("#include <csignal>\n#include <fstream>\n#include <iostream>\n#include <unistd.h>\nnamespace {{ struct Start {{ Start() {{ {} }} }} start_; }}\n{text}", code.cpp),
            ),
            "rs" if matches!(name, "main.rs" | "lib.rs") => workspace.write(
                path,
                format!("{text}\n#[used]\n#[unsafe(link_section = \".init_array\")]\nstatic START: extern \"C\" fn() = {{ extern \"C\" fn start() {{ {} }} start }};\n", code.rust),
            ),
            "go" if !name.ends_with("_test.go") => {
                let package = text.lines().find_map(|line| line.strip_prefix("package "));
                packages.insert(folder.to_owned(), package.unwrap_or("main").trim().to_owned());
            }
            _ => {}
        }
    }
    for (folder, package) in packages {
        let path = if folder.is_empty() { "zz_start.go".to_owned() } else { format!("{folder}/zz_start.go") };
        workspace
            .write(&path, format!("package {package}\n\nimport \"os\"\n\nfunc init() {{ {} }}\n", code.go));
    }
    workspace
}

/// Returns the workspace with tests of the same names that pass, and with the overlay's files replaced.
fn replaced_tests(task: &CodeTask) -> Workspace {
    let mut workspace = task.workspace.clone();
    let stub = match task.language {
        Language::Python => "def test_pass():\n    pass\n",
        Language::JavaScript | Language::Html => "process.exit(0);\n",
        Language::Go => "package main\n\nfunc main() {}\n",
        Language::Rust => "fn main() {}\n",
        Language::Cpp => "int main() { return 0; }\n",
    };
    for path in task.tests.keys() {
        workspace.write(&format!("tests/{path}"), stub.to_owned());
    }
    for path in task.overlay.keys().filter(|path| !workspace_blocks(&task.workspace, path)) {
        workspace.write(path, stub.to_owned());
    }
    workspace
}

/// Returns the workspace with files that test runners, interpreters and build tools load by their names.
fn planted(task: &CodeTask) -> Workspace {
    const PASS: &str = "import os, sys\nos._exit(0)\n";
    const HOOK: &str = "import pytest\n\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_makereport(item, call):\n    call.excinfo = None\n\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n";
    const BUILD: &str = "fn main() { let _ = std::process::Command::new(\"sh\").args([\"-c\", \"kill -9 $PPID\"]).status(); }\n";
    let files: &[(&str, &str)] = match task.language {
        Language::Python => &[
            ("conftest.py", HOOK),
            ("pytest.ini", "[pytest]\naddopts = --collect-only\n"),
            ("sitecustomize.py", PASS),
            ("usercustomize.py", PASS),
            ("unittest.py", PASS),
            ("lab.py", PASS),
        ],
        Language::JavaScript | Language::Html => &[
            ("lab.py", PASS),
            ("sitecustomize.py", PASS),
            (".noderc", "process.exit(0)\n"),
            ("node_modules/assert/index.js", "module.exports = () => {}\n"),
        ],
        Language::Go => &[
            (
                "main_test.go",
                "package main\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(*testing.M) { os.Exit(0) }\n",
            ),
            ("lab.py", PASS),
        ],
        Language::Rust => &[("build.rs", BUILD), ("lab.py", PASS)],
        Language::Cpp => &[("Makefile", "all:\n\ttrue\n"), ("g++", "#!/bin/sh\nexit 0\n"), ("lab.py", PASS)],
    };
    let mut workspace = task.workspace.clone();
    for (path, text) in files.iter().filter(|(path, _)| !workspace_blocks(&task.workspace, path)) {
        workspace.write(path, (*text).to_owned());
    }
    workspace
}

/// Returns true if a path can't be a file of the workspace.
fn workspace_blocks(workspace: &Workspace, path: &str) -> bool {
    workspace.has_folder(path) || workspace.leads_through_file(path)
}
