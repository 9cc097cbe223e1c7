//! A host to test: every form of this machine, each with helpers to attack it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;

use bench_sandbox::isolation::{Exec, Form, Isolation, IsolationOptions, Limits, Output, Sandbox, forms};
use tempfile::TempDir;

/// Commands are over long before; a test that waits for it has failed.
pub(crate) const LONG: Duration = Duration::from_secs(240);
/// Names the helper to a suite that runs as another user: a copy that this user can reach.
pub(crate) const HELPER_VARIABLE: &str = "BENCH_SANDBOX_TEST_HELPER";
/// What an attack prints for each thing that was not possible.
const HELD: &str = "held ";
/// What it prints for each that was.
const BROKEN: &str = "BROKEN ";

/// One form, under test.
#[derive(Clone)]
pub(crate) struct At {
    isolation: Arc<dyn Isolation>,
    folder: Arc<TempDir>,
}

/// The helper program.
pub(crate) fn helper() -> PathBuf {
    std::env::var_os(HELPER_VARIABLE)
        .map_or_else(|| env!("CARGO_BIN_EXE_bench-sandbox-stage").into(), PathBuf::from)
}

/// Small, so that what gets through does little harm.
pub(crate) fn limits() -> Limits {
    Limits { memory_bytes: 256 << 20, processes: 48, disk_bytes: 24 << 20, open_files: 256 }
}

pub(crate) fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

/// Runs a test in every form that this machine allows; at least one must be.
pub(crate) async fn each_form<F, Fut>(test: F)
where
    F: Fn(At) -> Fut,
    Fut: Future<Output = ()>,
{
    each_form_with(|_| {}, test).await;
}

/// The same with options of the test's own.
pub(crate) async fn each_form_with<F, Fut>(change: impl FnOnce(&mut IsolationOptions), test: F)
where
    F: Fn(At) -> Fut,
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
                test(At { isolation, folder: folder.clone() }).await;
                tested += 1;
            }
            Err((name, reason)) => println!("form {name} is not possible here: {reason}"),
        }
    }
    assert!(tested > 0, "this machine allows no form");
}

/// Says what is missing, and puts a guard around these tests.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for tool in ["bash", "python3"] {
            let folders = ["/usr/local/bin", "/usr/bin", "/bin"];
            let there = folders.iter().any(|folder| Path::new(folder).join(tool).exists());
            assert!(there, "{tool} is missing in the system's folders: these tests need it");
        }
        guard();
    });
}

/// A cgroup around all of it, so that a fork bomb that gets through does not take the machine along. Only where version
/// 1 of the interface lets us; the group is left empty, and the next test run removes it.
fn guard() {
    let top = Path::new("/sys/fs/cgroup/pids");
    let Ok(entries) = std::fs::read_dir(top) else { return };
    for entry in
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("bench-guard-"))
    {
        // Fails while tests run in it.
        let _ = std::fs::remove_dir(entry.path());
    }
    let group = top.join(format!("bench-guard-{}", std::process::id()));
    let join = || {
        std::fs::create_dir(&group)?;
        std::fs::write(group.join("pids.max"), "3000")?;
        std::fs::write(group.join("cgroup.procs"), "0")
    };
    // Another run that begins now may remove the group before this one is in it.
    while let Err(error) = join() {
        if error.kind() != std::io::ErrorKind::NotFound {
            return;
        }
    }
}

impl At {
    pub(crate) fn isolation(&self) -> &Arc<dyn Isolation> {
        &self.isolation
    }

    pub(crate) fn form(&self) -> &Form {
        self.isolation.form()
    }

    pub(crate) fn has(&self, what: &str) -> bool {
        self.form().holds.iter().any(|holds| holds == what)
    }

    pub(crate) fn lacks(&self, what: &str) -> bool {
        self.form().lacks.iter().any(|lacks| lacks.contains(what))
    }

    pub(crate) fn is_confined(&self) -> bool {
        self.form().name == "confined"
    }

    /// A folder of the machine that belongs to the test.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn sandbox(&self) -> Arc<dyn Sandbox> {
        self.sandbox_of(&limits()).await
    }

    pub(crate) async fn sandbox_of(&self, limits: &Limits) -> Arc<dyn Sandbox> {
        self.isolation.create(limits).await.unwrap()
    }

    /// Runs a Python program that says of each of these things whether it was held; all must be.
    pub(crate) async fn attack(&self, sandbox: &Arc<dyn Sandbox>, program: &str, things: &[&str]) {
        sandbox.write("attack.py", format!("{PRELUDE}\n{program}").as_bytes()).await.unwrap();
        let output = run(sandbox, "python3 attack.py").await;
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(!out.contains(BROKEN), "{}: {out}\n{err}", self.form().name);
        for thing in things {
            let line = format!("{HELD}{thing}");
            assert!(
                out.lines().any(|said| said.starts_with(&line)),
                "{}: nothing is said of {thing}: {out}\n{err}",
                self.form().name
            );
        }
    }
}

/// For all attacks in Python.
pub(crate) const PRELUDE: &str = r#"
import ctypes, errno, os, platform, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)

def held(name, detail=""):
    print("held", name, detail, flush=True)

def broken(name, detail=""):
    print("BROKEN", name, detail, flush=True)

def visible():
    "Processes that can be seen."
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []

def refused(name, attempt):
    "Held when the attempt raises OSError."
    try:
        result = attempt()
    except OSError as error:
        held(name, error)
    else:
        broken(name, result)

def call(name, number, *arguments):
    "Held when the system call fails."
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result == -1:
        held(name, os.strerror(ctypes.get_errno()))
    else:
        broken(name, result)
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

/// What a command prints, without the last line's end. It must succeed.
pub(crate) async fn printed(sandbox: &Arc<dyn Sandbox>, command: &str) -> String {
    let output = run(sandbox, command).await;
    assert_eq!(output.exit_code, Some(0), "{command}: {} {}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout).trim_end_matches('\n').to_owned()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A command whose processes have a mark in their variables, which no others on this machine have.
pub(crate) fn marked(command: &str) -> (Exec, String) {
    let mark = uuid::Uuid::new_v4().to_string();
    let mut exec = exec(command);
    exec.env.insert("MARK".to_owned(), mark.clone());
    (exec, format!("MARK={mark}"))
}

/// Processes of the machine that have this in their variables.
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

/// Whether the process exists and is no zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']) && !rest.is_empty())
}

/// Waits until it is so; a test that waits for ever is stopped by its runner.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for turn in 0_u64.. {
        if is_so() {
            return;
        }
        assert!(turn < 60_000, "{what} does not come about");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
