//! Support for the tests: every form that this machine allows, and helpers for attacks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;

use bench_sandbox::isolation::{Exec, Form, Isolation, IsolationOptions, Limits, Output, Sandbox, forms};
use tempfile::TempDir;
use tokio::sync::RwLock;

/// Time limit of commands. They end long before; a test that reaches it has failed.
pub(crate) const LONG: Duration = Duration::from_secs(240);
/// Variable with the path of the helper program, for a test run as another user: a copy that this user can execute.
pub(crate) const HELPER_VARIABLE: &str = "BENCH_SANDBOX_TEST_HELPER";
/// Prefix that an attack prints for each attempt that failed, as it should.
const PREVENTED: &str = "prevented ";
/// Prefix that it prints for each attempt that succeeded.
const SUCCEEDED: &str = "SUCCEEDED ";

/// Held for writing by tests that start as many processes as they can. In a form without a user of its own, these count for
/// the user of the tests, so that programs of other tests would get no process meanwhile.
static PROCESSES: RwLock<()> = RwLock::const_new(());

/// A form under test.
#[derive(Clone)]
pub(crate) struct TestForm {
    isolation: Arc<dyn Isolation>,
    folder: Arc<TempDir>,
}

/// Returns the path of the helper program.
pub(crate) fn helper() -> PathBuf {
    std::env::var_os(HELPER_VARIABLE)
        .map_or_else(|| env!("CARGO_BIN_EXE_bench-sandbox-stage").into(), PathBuf::from)
}

/// Copies a program in another process. If this process wrote the copy, processes that other tests start at that moment would
/// have it open for writing, and it couldn't be executed ("text file busy").
pub(crate) fn copy_program(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").args([from, to]).status().unwrap();
    assert!(status.success(), "cp: {status}");
}

/// Returns small limits, so that a successful attack does little harm.
pub(crate) fn limits() -> Limits {
    Limits { memory_bytes: 256 << 20, processes: 48, disk_bytes: 24 << 20, open_files: 256 }
}

pub(crate) fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

/// Runs a test in every form that this machine allows; fails if there is none.
pub(crate) async fn each_form<F, Fut>(test: F)
where
    F: Fn(TestForm) -> Fut,
    Fut: Future<Output = ()>,
{
    each_form_with(|_| {}, test).await;
}

/// Does the same while no other test runs, for a test that starts as many processes as it can.
pub(crate) async fn each_form_alone<F, Fut>(test: F)
where
    F: Fn(TestForm) -> Fut,
    Fut: Future<Output = ()>,
{
    let _alone = PROCESSES.write().await;
    each_form_of(|_| {}, test).await;
}

/// Does the same with changed options, beside other tests.
pub(crate) async fn each_form_with<F, Fut>(change: impl FnOnce(&mut IsolationOptions), test: F)
where
    F: Fn(TestForm) -> Fut,
    Fut: Future<Output = ()>,
{
    let _beside_others = PROCESSES.read().await;
    each_form_of(change, test).await;
}

async fn each_form_of<F, Fut>(change: impl FnOnce(&mut IsolationOptions), test: F)
where
    F: Fn(TestForm) -> Fut,
    Fut: Future<Output = ()>,
{
    prepare();
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let mut options = IsolationOptions::new(helper(), folder.path().join("sandboxes"));
    change(&mut options);
    let outcomes = tokio::task::spawn_blocking(move || forms(&options)).await.unwrap();
    let mut tested = 0;
    for outcome in outcomes {
        match outcome {
            Ok(isolation) => {
                println!("form: {}", isolation.form().name);
                test(TestForm { isolation, folder: folder.clone() }).await;
                tested += 1;
            }
            Err((name, reason)) => println!("form {name} is not possible here: {reason}"),
        }
    }
    assert!(tested > 0, "this machine allows no form");
}

/// Checks that the required tools exist, and creates a cgroup around these tests.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for tool in ["bash", "python3"] {
            let folders = ["/usr/local/bin", "/usr/bin", "/bin"];
            let there = folders.iter().any(|folder| Path::new(folder).join(tool).exists());
            assert!(there, "these tests need {tool} in a folder of the system");
        }
        guard();
    });
}

/// Moves the tests into a cgroup, so that a fork bomb doesn't take the machine down if a sandbox fails. Only possible
/// with cgroups version 1; the next test run removes the empty group.
fn guard() {
    let top = Path::new("/sys/fs/cgroup/pids");
    let Ok(entries) = std::fs::read_dir(top) else { return };
    for entry in
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("bench-guard-"))
    {
        // Fails while another test run uses it.
        let _ = std::fs::remove_dir(entry.path());
    }
    let group = top.join(format!("bench-guard-{}", std::process::id()));
    let join = || {
        std::fs::create_dir(&group)?;
        std::fs::write(group.join("pids.max"), "3000")?;
        std::fs::write(group.join("cgroup.procs"), "0")
    };
    // A concurrent test run may remove the group before this process is in it.
    while let Err(error) = join() {
        if error.kind() != std::io::ErrorKind::NotFound {
            return;
        }
    }
}

impl TestForm {
    pub(crate) fn isolation(&self) -> &Arc<dyn Isolation> {
        &self.isolation
    }

    pub(crate) fn description(&self) -> &Form {
        self.isolation.form()
    }

    pub(crate) fn has(&self, what: &str) -> bool {
        self.description().holds.iter().any(|holds| holds == what)
    }

    pub(crate) fn lacks(&self, what: &str) -> bool {
        self.description().lacks.iter().any(|lacks| lacks.contains(what))
    }

    pub(crate) fn is_confined(&self) -> bool {
        self.description().name == "confined"
    }

    /// Returns a folder on the machine that belongs to the test.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn sandbox(&self) -> Arc<dyn Sandbox> {
        self.sandbox_with_limits(&limits()).await
    }

    pub(crate) async fn sandbox_with_limits(&self, limits: &Limits) -> Arc<dyn Sandbox> {
        self.isolation.create(limits).await.unwrap()
    }

    /// Runs a Python program that prints for each of `things` whether it was prevented; all must be.
    pub(crate) async fn attack(&self, sandbox: &Arc<dyn Sandbox>, program: &str, things: &[&str]) {
        sandbox.write("attack.py", format!("{PRELUDE}\n{program}").as_bytes()).await.unwrap();
        let output = run(sandbox, "python3 attack.py").await;
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(!out.contains(SUCCEEDED), "{}: {out}\n{err}", self.description().name);
        for thing in things {
            let line = format!("{PREVENTED}{thing}");
            assert!(
                out.lines().any(|said| said.starts_with(&line)),
                "{}: no result for {thing}: {out}\n{err}",
                self.description().name
            );
        }
    }
}

/// Python code for all attacks.
pub(crate) const PRELUDE: &str = r#"
import ctypes, errno, os, platform, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)

def prevented(name, detail=""):
    print("prevented", name, detail, flush=True)

def succeeded(name, detail=""):
    print("SUCCEEDED", name, detail, flush=True)

def visible():
    "Returns the visible processes."
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []

def refused(name, attempt):
    "Prevented when the attempt raises OSError."
    try:
        result = attempt()
    except OSError as error:
        prevented(name, error)
    else:
        succeeded(name, result)

def call(name, number, *arguments):
    "Prevented when the system call fails."
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result == -1:
        prevented(name, os.strerror(ctypes.get_errno()))
    else:
        succeeded(name, result)
"#;

pub(crate) fn exec(command: &str) -> Exec {
    Exec {
        command: command.to_owned(),
        cwd: None,
        env: BTreeMap::new(),
        timeout: LONG,
        output_bytes_max: 1 << 20,
    }
}

pub(crate) async fn run(sandbox: &Arc<dyn Sandbox>, command: &str) -> Output {
    sandbox.exec(&exec(command)).await.unwrap()
}

/// Returns the output of a command without the last newline. The command must succeed.
pub(crate) async fn stdout_of(sandbox: &Arc<dyn Sandbox>, command: &str) -> String {
    let output = run(sandbox, command).await;
    assert_eq!(output.exit_code, Some(0), "{command}: {} {}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout).trim_end_matches('\n').to_owned()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns a command whose processes have a unique mark in their environment, and the mark.
pub(crate) fn marked_command(command: &str) -> (Exec, String) {
    let mark = uuid::Uuid::new_v4().to_string();
    let mut exec = exec(command);
    exec.env.insert("MARK".to_owned(), mark.clone());
    (exec, format!("MARK={mark}"))
}

/// Returns the processes on the machine that have this variable in their environment.
pub(crate) fn processes_with(variable: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|item| item == variable.as_bytes())
        })
        .collect()
}

/// Returns true if the process exists and isn't a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']) && !rest.is_empty())
}

/// Waits until the condition is true.
pub(crate) async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    for turn in 0_u64.. {
        if condition() {
            return;
        }
        assert!(turn < 60_000, "timed out waiting for {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
