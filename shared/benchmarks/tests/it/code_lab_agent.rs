//! Jobs of the code lab's protocol `agent`: the project, commands in it, and what is collected.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use bench_benchmarks::{
    Benchmark, WorkspaceChange, WorkspaceCommand, WorkspaceCommandEnd, WorkspaceError, WorkspaceProtocol,
    code_lab, find, with_protocol,
};
use bench_code_tasks::{Answer, TaskFiles, Workspace};
use bench_domain::{FileContent, HarvestedFile, JobEnd, JobReport, JobSpec};
use bench_items::Item;
use bench_terminal_tasks::TaskPath;
use tempfile::TempDir;

const METADATA: &str = r#"{"language": "go", "instructions_file": "instructions.md", "eval": {"command": ["lab"], "build": [["go", "build", "-o", "{bin}/", "./..."]], "env": {"COLOR": "red"}}}"#;
const FILES: [(&str, &str); 4] = [
    ("main.go", "package main\n\nfunc main() {}\n"),
    ("docs/a.md", "a\n"),
    ("go.mod", "module x\n"),
    ("old.txt", "old\n"),
];

/// The folders of a sandbox, without its isolation: the tests only run commands of this file.
struct Sandbox {
    folder: TempDir,
    item: Item,
    protocol: &'static dyn WorkspaceProtocol,
    project: PathBuf,
}

impl Sandbox {
    /// Lays out the project.
    fn new() -> Self {
        let mut files = TaskFiles::default();
        let workspace = FILES.map(|(path, text)| (format!("workspace/{path}"), text));
        let others = [
            ("metadata.json", METADATA),
            ("instructions.md", "Say hello."),
            ("tests/test_hello.py", "SECRET_TEST = 1\n"),
            ("tests/overlay/driver.go", "// SECRET_OVERLAY\n"),
            ("solutions/reference.diff", "SECRET_REFERENCE"),
        ];
        let others = others.map(|(path, text)| (path.to_owned(), text));
        for (path, text) in workspace.into_iter().chain(others) {
            files.add(&TaskPath::new(&path).unwrap(), None, text.as_bytes().to_vec()).unwrap();
        }
        let benchmark: &dyn Benchmark = with_protocol(find("code_lab").unwrap(), Some("agent")).unwrap();
        let item = benchmark.item(0, code_lab::task_row("hello", &files)).unwrap().unwrap();
        let protocol = benchmark.workspace().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut sandbox = Self { folder, item, protocol, project: PathBuf::new() };
        fs::create_dir(sandbox.folder.path().join("tmp")).unwrap();
        let report = sandbox.run("layout", &protocol.layout(&sandbox.item).unwrap());
        let project = protocol.folder(&report).unwrap_or_else(|| panic!("{report:?}"));
        assert!(project.starts_with(&*sandbox.folder.path().to_string_lossy()), "{project}");
        sandbox.project = project.into();
        sandbox
    }

    fn project(&self) -> PathBuf {
        self.project.clone()
    }

    fn run(&self, name: &str, spec: &JobSpec) -> JobReport {
        let folder = self.folder.path().join("jobs").join(name);
        for file in &spec.files {
            let FileContent::Bytes(bytes) = &file.content else { panic!("a stored file") };
            let path = folder.join(&file.path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
            assert!(!String::from_utf8_lossy(bytes).contains("SECRET_"), "{}", file.path);
        }
        let output = Command::new("/bin/bash")
            .args(["-c", &spec.script])
            .current_dir(&folder)
            .env("TMPDIR", self.folder.path().join("tmp"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let results = spec.results.iter().filter_map(|result| {
            let text = fs::read_to_string(folder.join(&result.path)).ok()?;
            assert!(text.len() as u64 <= result.bytes_max, "{} bytes", text.len());
            Some((result.path.clone(), HarvestedFile::Text(text)))
        });
        JobReport {
            end: JobEnd::Exited(output.status.code().unwrap_or(137)),
            files: results.collect(),
            stdout_tail: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr_tail: String::from_utf8_lossy(&output.stderr).into_owned(),
            elapsed_ms: Some(1),
            isolation: None,
        }
    }

    fn command(&self, number: u32, script: &str, seconds: u64) -> WorkspaceCommandEnd {
        let command = WorkspaceCommand {
            script: script.to_owned(),
            time_limit: Duration::from_secs(seconds),
            output_bytes_max: 1_000,
        };
        let report = self.run(&format!("do-{number}"), &self.protocol.command(&self.item, &command).unwrap());
        self.protocol.command_end(&report)
    }

    fn change(&self) -> Result<WorkspaceChange, WorkspaceError> {
        let report = self.run("collect", &self.protocol.collection(&self.item).unwrap());
        self.protocol.change(&self.item, &report)
    }
}

fn ok(output: &str, end: &WorkspaceCommandEnd) {
    assert_eq!((end.exit_code, end.output.as_str(), end.is_timed_out), (Some(0), output, false), "{end:?}");
}

#[test]
fn an_agent_works_in_the_project_and_its_change_is_collected() {
    let sandbox = Sandbox::new();
    ok("docs\ngo.mod\nmain.go\nold.txt\nred\n", &sandbox.command(1, "ls; echo $COLOR", 120));
    let project = sandbox.project();
    ok(
        "",
        &sandbox.command(
            2,
            "rm old.txt; echo b >> docs/a.md; mkdir -p cmd; printf 'package cmd' > cmd/c.go; : > cmd/empty",
            10,
        ),
    );
    // What tools leave, what isn't a text, and what isn't a file.
    for (path, content) in [
        ("__pycache__/x.pyc", "x"),
        (".git/config", "[core]\nfsmonitor = touch /tmp/owned\n"),
        ("out/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n"),
        ("out/big.txt", "x"),
        ("main.o", "x"),
        ("main.go.orig", "x"),
    ] {
        fs::create_dir_all(project.join(path).parent().unwrap()).unwrap();
        fs::write(project.join(path), content).unwrap();
    }
    fs::write(project.join("program"), b"\x7fELF\0").unwrap();
    fs::write(project.join("long.txt"), vec![b'x'; (1 << 20) + 1]).unwrap();
    symlink("/etc/hostname", project.join("link")).unwrap();
    symlink("/etc", project.join("docs/etc")).unwrap();
    ok("", &sandbox.command(3, "mkfifo pipe; echo x > $'docs/caf\\xe9'; mkdir $'d\\xff'", 120));
    let WorkspaceChange { reply, left_out } = sandbox.change().unwrap();
    let before = Workspace::from(FILES);
    let applied = Answer::read(&reply).unwrap().apply(&before).unwrap();
    let expected = Workspace::from([
        ("main.go", FILES[0].1),
        ("docs/a.md", "a\nb\n"),
        ("go.mod", FILES[2].1),
        ("cmd/c.go", "package cmd"),
        ("cmd/empty", ""),
    ]);
    assert_eq!(applied.workspace, expected, "{reply}");
    let mut lines: Vec<&str> = left_out.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "docs/caf\u{fffd}: its name isn't UTF-8",
            "docs/etc: it is a link",
            "d\u{fffd}: its name isn't UTF-8",
            "link: it is a link",
            "long.txt: it has 1048577 bytes, more than 1048576",
            "pipe: it is no regular file",
            "program: it is not a text",
        ]
    );
}

#[test]
fn a_project_without_changes_has_an_empty_change() {
    let sandbox = Sandbox::new();
    ok("", &sandbox.command(1, "touch main.go; mkdir empty", 120));
    assert_eq!(sandbox.change().unwrap(), WorkspaceChange::default());
}

#[test]
fn a_change_that_is_too_large_is_refused() {
    let sandbox = Sandbox::new();
    ok("", &sandbox.command(1, "for n in $(seq 501); do echo x > n$n; done", 120));
    let error = sandbox.change().unwrap_err();
    assert!(matches!(error, WorkspaceError::TooLarge(_)), "{error}");
}

#[test]
fn commands_have_limits_and_leave_no_processes() {
    let sandbox = Sandbox::new();
    let long = sandbox.command(1, "head -c 100000 /dev/zero | tr '\\0' x; echo end", 120);
    assert_eq!((long.output.len(), long.omitted_bytes), (2_000, 98_004));
    assert!(long.output.ends_with("xend\n"));
    let killed = sandbox.command(2, "echo before; kill -9 $$", 120);
    assert_eq!((killed.exit_code, killed.output.as_str()), (Some(137), "before\n"));
    // One process leaves its session and holds the output; another one writes forever.
    let left =
        sandbox.command(3, "setsid sleep 1000 & (while :; do echo x; done) & echo $! > pid; exit 3", 60);
    assert_eq!(left.exit_code, Some(3));
    // It did not end at its time limit, as it would if it waited for them.
    assert!(!left.is_timed_out, "{left:?}");
    let pid = fs::read_to_string(sandbox.project().join("pid")).unwrap();
    assert!(!PathBuf::from(format!("/proc/{}", pid.trim())).exists());
    let late = sandbox.command(4, "echo begun; sleep 1000", 5);
    assert_eq!((late.exit_code, late.is_timed_out, late.output.as_str()), (None, true, "begun\n"));
    assert!(late.elapsed_ms >= 5_000, "{}", late.elapsed_ms);
    let script = format!("# {}\necho done", "x".repeat(200_000));
    ok("done\n", &sandbox.command(5, &script, 10));
    // The results of earlier commands were read.
    assert!(!sandbox.folder.path().join("jobs/do-4/result.json").exists());
}

#[test]
fn an_agent_that_breaks_its_sandbox_sees_that() {
    let sandbox = Sandbox::new();
    let gone = sandbox.command(1, "rm -rf ../../task*", 120);
    assert_eq!(gone.exit_code, Some(0), "{gone:?}");
    let broken = sandbox.command(2, &format!("rm -rf {}/jobs/layout", sandbox.folder.path().display()), 120);
    assert!(matches!(broken.exit_code, Some(0 | 126)), "{broken:?}");
    fs::remove_dir_all(sandbox.folder.path().join("jobs/layout")).ok();
    let after = sandbox.command(3, "true", 120);
    assert_eq!(after.exit_code, Some(2), "{after:?}");
    assert!(after.output.contains("can't open file"), "{}", after.output);
    // Its files are gone, and so they are in its change.
    let change = sandbox.change().unwrap();
    let applied = Answer::read(&change.reply).unwrap().apply(&Workspace::from(FILES)).unwrap();
    assert!(applied.workspace.files().is_empty(), "{}", change.reply);
}
