use std::io::{Cursor, Write};

use proptest::prelude::*;

use super::*;
use crate::{Answer, OUTSIDE, cheats, guard, prompt};

fn files(all: &[(&str, &str)]) -> TaskFiles {
    let mut files = TaskFiles::default();
    for (path, text) in all {
        files.add(&TaskPath::new(path).unwrap(), None, text.as_bytes().to_vec()).unwrap();
    }
    files
}

const METADATA: &str =
    r#"{"language": "python", "instructions_file": "instructions.md", "eval": {"command": ["lab"]}}"#;
const USUAL: [(&str, &str); 5] = [
    ("metadata.json", METADATA),
    ("instructions.md", "Make it right.\n"),
    ("workspace/a.py", "a = 1\n"),
    ("tests/test_a.py", "import lab\n"),
    ("tests/overlay/driver.py", "import a\n"),
];

fn with(path: &str, text: &str) -> TaskFiles {
    let kept = USUAL.into_iter().filter(|(name, _)| *name != path);
    files(&kept.chain([(path, text)]).collect::<Vec<_>>())
}

fn without(path: &str) -> TaskFiles {
    files(&USUAL.into_iter().filter(|(name, _)| *name != path).collect::<Vec<_>>())
}

#[test]
fn a_task_has_defaults_and_parts() {
    let task = CodeTask::read(&files(&USUAL), "folder").unwrap();
    assert_eq!((task.id.as_str(), task.language, task.timeout.as_secs()), ("folder", Language::Python, 300));
    assert_eq!(task.workspace.files().keys().collect::<Vec<_>>(), ["a.py"]);
    assert_eq!(task.tests.keys().collect::<Vec<_>>(), ["test_a.py"]);
    assert_eq!(task.overlay.keys().collect::<Vec<_>>(), ["driver.py"]);
    assert!(task.proof.is_none() && task.reference.is_none() && task.wrong.is_empty());

    // The metadata of the reference harness, with all of its fields.
    let metadata = r#"{"task_id": "py_x", "language": "python", "type": "bug_fix", "difficulty": "easy", "instructions_file": "instructions.md", "workspace_dir": "workspace", "tests_dir": "tests", "eval": {"command": ["pytest", "-q"], "timeout_seconds": 120}, "scoring": {"tests_passed": 1.0}, "tags": ["python", "math"]}"#;
    let task = CodeTask::read(&with("metadata.json", metadata), "folder").unwrap();
    assert_eq!((task.id.as_str(), task.kind.as_str(), task.tags.len()), ("py_x", "bug_fix", 2));
    assert_eq!(task.command, TestCommand::Pytest(vec!["-q".to_owned()]));
}

#[test]
fn a_missing_or_wrong_part_is_named() {
    for (files, expected) in [
        (without("metadata.json"), "`metadata.json`: the file is missing; "),
        (without("instructions.md"), "`instructions.md`: the file is missing; "),
        (without("workspace/a.py"), "`workspace`: the file is missing; "),
        (without("tests/test_a.py"), "`tests`: the file is missing; "),
        (with("instructions.md", " \n"), "`instructions.md`: the file is empty; "),
        (with("metadata.json", "{"), "`metadata.json` line 1: the file is not valid JSON: "),
        (
            with("metadata.json", r#"{"language": "cobol", "instructions_file": "instructions.md"}"#),
            "`metadata.json` line 1: `language` must be one of `python`, `javascript`, `go`, `rust`, `cpp`, `html`, not `cobol`",
        ),
        (
            with("metadata.json", r#"{"language": "go"}"#),
            "`metadata.json` line 1: the field `instructions_file` is missing; add it",
        ),
        (
            with(
                "metadata.json",
                r#"{"language": "go", "instructions_file": "instructions.md", "eval": {"env": {"A": 1}}}"#,
            ),
            "`metadata.json` line 1: `eval.env.A` must be a text, not integer `1`",
        ),
        (
            with(
                "metadata.json",
                r#"{"language": "go", "instructions_file": "instructions.md", "workspace_dir": "../x"}"#,
            ),
            "`metadata.json`: `workspace_dir` is `../x`; ",
        ),
        (
            with(
                "metadata.json",
                r#"{"language": "go", "instructions_file": "instructions.md", "eval": {"timeout_seconds": 0}}"#,
            ),
            "`metadata.json`: `eval.timeout_seconds` is `0`; ",
        ),
        (
            with(
                "metadata.json",
                r#"{"language": "go", "instructions_file": "instructions.md", "eval": {"command": []}}"#,
            ),
            "`metadata.json`: `eval` is `[]`; ",
        ),
        (
            with(
                "metadata.json",
                r#"{"language": "go", "instructions_file": "instructions.md", "eval": {"working_dir": "/etc"}}"#,
            ),
            "`metadata.json`: `eval.working_dir` is `/etc`; ",
        ),
    ] {
        let refusal = CodeTask::read(&files, "folder").unwrap_err().to_string();
        assert!(refusal.starts_with(expected), "{refusal}");
    }
}

#[test]
fn commands_are_told_by_their_words() {
    let command =
        |argv: &[&str]| TestCommand::new(&argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    for (argv, expected) in [
        (&["lab"][..], ("lab", 0)),
        (&["pytest", "-q"], ("pytest", 1)),
        (&["python", "-m", "pytest", "-q", "tests"], ("pytest", 2)),
        (&["go", "test", "./..."], ("go", 1)),
        (&["cargo", "test"], ("cargo", 1)),
        (&["node", "tests/run-tests.js"], ("node", 1)),
        (&["node", "-e", "1"], ("other", 3)),
        (&["bash", "tests/run-tests.sh"], ("other", 2)),
        (&["go", "run", "."], ("other", 3)),
    ] {
        let (runner, args) = {
            let command = command(argv);
            let (runner, args) = command.parts();
            (runner, args.len())
        };
        assert_eq!((runner, args), expected, "{argv:?}");
    }
    let script = r#"{"language": "cpp", "instructions_file": "instructions.md", "eval": {"command": ["bash", "run.sh"]}}"#;
    let task = CodeTask::read(&with("metadata.json", script), "folder").unwrap();
    assert!(task.ungradable().unwrap().contains("`bash run.sh` reports no tests"));
}

#[test]
fn a_proof_tells_which_solutions_were_run() {
    let task = CodeTask::read(&with("solutions/reference.diff", "x"), "folder").unwrap();
    let proof = |solutions: &str| {
        format!(
            r#"{{"task_digest": "{}", "solutions_digest": "{solutions}", "tests": [], "repeats": 1, "wrong": {{}}}}"#,
            task.digest
        )
    };
    for (solutions, text, is_proven) in [
        (task.solutions_digest.as_str(), "x", true),
        (task.solutions_digest.as_str(), "y", false),
        (task.digest.as_str(), "x", false),
    ] {
        let mut all = with("solutions/reference.diff", text);
        let content = proof(solutions).into_bytes();
        all.add(&TaskPath::new("proof.json").unwrap(), None, content).unwrap();
        let task = CodeTask::read(&all, "folder").unwrap();
        assert!(task.proof.is_some());
        assert_eq!(task.are_solutions_proven(), is_proven, "{solutions} {text}");
    }
}

#[test]
fn a_proof_holds_for_the_files_that_it_was_made_of() {
    let digest = CodeTask::read(&files(&USUAL), "folder").unwrap().digest;
    let proof =
        format!(r#"{{"task_digest": "{digest}", "tests": ["test_a.A.test"], "repeats": 5, "wrong": {{}}}}"#);
    let proven = with("proof.json", &proof);
    let task = CodeTask::read(&proven, "folder").unwrap();
    assert_eq!(task.recorded_tests().unwrap(), ["test_a.A.test"]);
    assert_eq!(task.digest, digest, "the proof isn't part of the digest");
    for path in
        ["metadata.json", "instructions.md", "workspace/a.py", "tests/test_a.py", "tests/overlay/driver.py"]
    {
        let mut changed = TaskFiles::default();
        for (name, file) in proven.files() {
            let mut bytes = file.bytes.clone();
            if name == path {
                bytes.push(b'\n');
            }
            changed.add(&TaskPath::new(name).unwrap(), None, bytes).unwrap();
        }
        assert!(CodeTask::read(&changed, "folder").unwrap().proof.is_none(), "{path}");
    }
}

#[test]
fn an_archive_may_have_folders_above_the_task() {
    let zip = |all: &[(&str, &str)]| {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (path, text) in all {
            zip.start_file(*path, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        Cursor::new(zip.finish().unwrap().into_inner())
    };
    let below: Vec<(String, &str)> =
        USUAL.iter().map(|(path, text)| (format!("top/{path}"), *text)).collect();
    let below: Vec<(&str, &str)> = below.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let read = |all: &[(&str, &str)]| {
        TaskFiles::from_archive(zip(all)).and_then(|files| files.rooted_at(METADATA_FILE))
    };
    assert_eq!(read(&below).unwrap(), files(&USUAL));
    assert_eq!(read(&USUAL).unwrap(), files(&USUAL));
    let two = [("a/metadata.json", "{}"), ("b/metadata.json", "{}")];
    assert_eq!(read(&two).unwrap_err().code(), "several_tasks");
    assert_eq!(read(&[("x", "y")]).unwrap_err().code(), "missing_file");
    // A file that is just above the limit, and one that compresses as no file of a project does.
    let large: String = (0..(3_u32 << 17)).map(|number| format!("{number:8}")).collect();
    let refused = read(&[("metadata.json", "{}"), ("big", &large)]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`big`: the file has more than 2097152 bytes; make it smaller, or let the build or the tests generate it"
    );
    let bomb = "0".repeat(3 << 20);
    assert_eq!(read(&[("metadata.json", "{}"), ("big", &bomb)]).unwrap_err().code(), "ratio_too_high");
}

#[test]
fn packed_files_are_the_same_files() {
    let mut task = files(&USUAL);
    task.add(&TaskPath::new("workspace/tool").unwrap(), Some(0o755), vec![0xff, 0xfe]).unwrap();
    assert_eq!(TaskFiles::unpack(task.pack()).unwrap(), task);
}

#[test]
fn the_request_has_the_files_and_no_tests() {
    let mut task = CodeTask::read(&files(&USUAL), "folder").unwrap();
    task.workspace.write("README.md", "```\ncode\n```\n".to_owned());
    let text = prompt(&task, crate::OfferedForms::Any, false);
    assert!(
        text.contains("\nFile: a.py\n```\na = 1\n```\n") && text.contains("````\n```\ncode\n```\n````"),
        "{text}"
    );
    assert!(!text.contains("test_a.py") && !text.contains("driver.py"), "{text}");
    let text = prompt(&task, crate::OfferedForms::Only(crate::Form::Diff), true);
    assert!(text.contains("\nFile: tests/test_a.py\n") && text.contains("\nFile: driver.py\n"), "{text}");
    assert!(!text.contains("SEARCH"), "{text}");
}

#[test]
fn files_that_decide_about_tests_are_restored() {
    let metadata = r#"{"language": "go", "instructions_file": "instructions.md", "eval": {"command": ["go", "test", "./..."]}}"#;
    let all = [
        ("metadata.json", metadata),
        ("instructions.md", "Fix it.\n"),
        ("workspace/a.go", "package a\n"),
        ("workspace/a_test.go", "package a // tests\n"),
        ("tests/extra.txt", "data\n"),
    ];
    let task = CodeTask::read(&files(&all), "folder").unwrap();
    let answer = "File: a.go\n```\npackage a // new\n```\nFile: a_test.go\n```\npackage a\n```\nFile: b_test.go\n```\npackage a\n```\nFile: tests/extra.txt\n```\nx\n```\nFile: go.work\n```\nx\n```\nFile: b.go\n```\npackage a\n```\n";
    let applied = Answer::read(answer).unwrap().apply(&task.workspace).unwrap();
    let guarded = guard(&task, &applied.workspace);
    let text = |path: &str| {
        guarded.workspace.get(path).map(|file| String::from_utf8_lossy(&file.bytes).into_owned())
    };
    assert_eq!(text("a.go").as_deref(), Some("package a // new\n"));
    assert_eq!(text("a_test.go").as_deref(), Some("package a // tests\n"));
    assert_eq!(text("tests/extra.txt").as_deref(), Some("data\n"));
    assert_eq!((text("b_test.go"), text("go.work"), text("b.go").is_some()), (None, None, true));
    let restored: Vec<&str> = guarded.restored.iter().map(String::as_str).collect();
    assert_eq!(restored, ["a_test.go", "b_test.go", "go.work", "tests/extra.txt"]);
}

#[test]
fn tests_within_rust_sources_and_their_manifest_are_restored() {
    let metadata = r#"{"language": "rust", "instructions_file": "instructions.md", "eval": {"command": ["cargo", "test"]}}"#;
    let manifest = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\n";
    let tests =
        "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() { assert_eq!(super::add(2, 3), 5); }\n}\n";
    let source = format!("pub fn add(a: i32, b: i32) -> i32 {{ a - b }}\n{tests}");
    let all = [
        ("metadata.json", metadata),
        ("instructions.md", "Fix it.\n"),
        ("workspace/Cargo.toml", manifest),
        ("workspace/src/lib.rs", source.as_str()),
    ];
    let task = CodeTask::read(&files(&all), "folder").unwrap();
    let guarded = |reply: String| {
        let applied = Answer::read(&reply).unwrap().apply(&task.workspace).unwrap();
        let guarded = guard(&task, &applied.workspace);
        let text =
            |path: &str| String::from_utf8(guarded.workspace.get(path).unwrap().bytes.clone()).unwrap();
        (text("src/lib.rs"), text("Cargo.toml"), guarded.restored.into_iter().collect::<Vec<_>>())
    };
    let right = source.replace("a - b", "a + b");
    let whole = |text: &str| format!("File: src/lib.rs\n```\n{text}```\n");
    assert_eq!(guarded(whole(&right)), (right, manifest.to_owned(), vec![]));
    let emptied = source.replace("assert_eq!(super::add(2, 3), 5);", "");
    let (text, _, restored) = guarded(whole(&emptied));
    assert!(text.contains(tests) && !text.contains("fn adds() {}"), "{text}");
    assert_eq!(restored, ["src/lib.rs"]);
    let other = format!(
        "File: Cargo.toml\n```\n{manifest}[lib]\ntest = false\n```\n{}",
        whole("pub fn add(a: i32, b: i32) -> i32 { a - b }\n")
    );
    let (text, read, restored) = guarded(other);
    assert!(text.ends_with(&format!("\n{tests}")) && read == manifest, "{text}");
    assert_eq!(restored, ["Cargo.toml", "src/lib.rs"]);
}

#[test]
fn cheats_change_every_language() {
    for (language, path, text) in [
        ("python", "workspace/a.py", "a = 1\n"),
        ("javascript", "workspace/a.mjs", "export const a = 1\n"),
        ("go", "workspace/cmd/a.go", "package main\n\nfunc main() {}\n"),
        ("rust", "workspace/src/main.rs", "fn main() {}\n"),
        ("cpp", "workspace/a.cpp", "int main() {}\n"),
        ("html", "workspace/a.js", "let a = 1\n"),
    ] {
        let metadata = format!(
            r#"{{"language": "{language}", "instructions_file": "instructions.md", "eval": {{"command": ["lab"]}}}}"#
        );
        let all = [
            ("metadata.json", metadata.as_str()),
            ("instructions.md", "Do.\n"),
            (path, text),
            ("tests/test_a.py", "import lab\n"),
        ];
        let task = CodeTask::read(&files(&all), "folder").unwrap();
        for cheat in cheats(&task) {
            assert_ne!(cheat.workspace, task.workspace, "{language}: {}", cheat.name);
        }
        for reply in OUTSIDE {
            assert!(
                !Answer::read(reply).is_ok_and(|answer| answer.apply(&task.workspace).is_ok()),
                "{reply}"
            );
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_metadata_is_read_or_refused(text in any::<String>()) {
        let _ = CodeTask::read(&with("metadata.json", &text), "folder");
    }
}
