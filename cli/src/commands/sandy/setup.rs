//! `bench sandy setup`: the Python environment of code benchmarks.
//!
//! The environment is made in a folder of its own and tried out. After that, the link `current` is set to it, so an
//! incomplete environment is never used. Packages are those that SciCode names, pinned, because another version could
//! give another verdict.

mod packages;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use bench_sandbox::isolation::Exec;
use clap::Args;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use uuid::Uuid;

use self::packages::{IMPORTS, MINOR_MAX, MINOR_MIN, packages};
use crate::commands::run::interrupt::Interrupt;
use crate::exit::{ExitStatus, Problem};
use crate::output;
use bench_stack::sandboxes::python::{PythonEnvironment, current_link, folder};
use bench_stack::sandboxes::{SandboxSettings, SandboxesError};

/// File that describes an environment. Only complete environments have it.
const MARKER: &str = "bench-environment.json";
const LOCK: &str = "lock";
/// Maximum time to load the packages in a sandbox, the first time from a slow disk.
const TRY_TIMEOUT: Duration = Duration::from_secs(180);
/// Maximum number of bytes of a program's error output to keep.
const COMPLAINT_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of characters of a line from pip if the terminal width is unknown.
const LINE_CHARS_MAX: usize = 100;
const INDENT: &str = "  ";
/// Runs a module as `python -m` does, and has the kernel end it with its parent process: nothing else would if the
/// parent is killed. On systems without `prctl`, the module runs without this.
const RUN_MODULE: &str = "import runpy, sys\ntry:\n    import ctypes\n    ctypes.CDLL(None).prctl(1, 9)\n\
    except Exception:\n    pass\ndel sys.argv[0]\nrunpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)";
/// Places to look for Python. Every sandbox sees the machine's own Python, others only if they can be shared.
const PROGRAMS: [&str; 6] = [
    "/usr/bin/python3",
    "/usr/bin/python3.12",
    "/usr/bin/python3.11",
    "/usr/bin/python3.10",
    "python3",
    "python3.12",
];
/// Prints version and installation, and if Python can make environments.
const PROBE: &str = "import json, sys\ntry:\n    import venv, ensurepip\n    makes = True\nexcept ImportError:\n    makes = False\n\
    print(json.dumps({'major': sys.version_info[0], 'minor': sys.version_info[1], 'version': sys.version.split()[0], 'makes': makes}))";

#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Python 3.10 to 3.12 to make it with [default: the machine's own]
    #[arg(long, value_name = "PYTHON")]
    program: Option<PathBuf>,
    /// Make it again although there is one
    #[arg(long)]
    again: bool,
}

/// Description of the parts of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Made {
    program: PathBuf,
    version: String,
    packages: Vec<String>,
}

/// Python program of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Program {
    #[serde(skip)]
    path: PathBuf,
    major: u32,
    minor: u32,
    version: String,
    makes: bool,
}

impl Program {
    /// Returns the reason why the program can't make an environment, if any.
    fn lacks(&self) -> Option<String> {
        if self.major != 3 || !(MINOR_MIN..=MINOR_MAX).contains(&self.minor) {
            return Some(format!(
                "{} is Python {}: the packages are built for 3.{MINOR_MIN} to 3.{MINOR_MAX}",
                self.path.display(),
                self.version
            ));
        }
        (!self.makes).then(|| {
            let (path, minor) = (self.path.display(), self.minor);
            format!("{path} cannot make environments: install its venv module, such as python3.{minor}-venv")
        })
    }
}

pub(super) async fn run(args: &SetupArgs, settings: &SandboxSettings) -> anyhow::Result<ExitStatus> {
    let interrupt = Interrupt::listen();
    tokio::select! {
        made = make(args, settings) => made.map(|()| ExitStatus::Success),
        () = interrupt.wait() => {
            output::note("Stopped; nothing was changed. `bench sandy setup` begins anew.");
            Ok(ExitStatus::Interrupted)
        }
    }
}

async fn make(args: &SetupArgs, settings: &SandboxSettings) -> anyhow::Result<()> {
    bench_embedded::secure_data_dir(&settings.data_dir)?;
    let all = folder(&settings.data_dir);
    fs::create_dir_all(&all).with_context(|| format!("could not make {}", all.display()))?;
    let _lock = lock(&all)?;
    let program = find_program(args.program.as_deref()).await?;
    let made = Made {
        program: program.path.clone(),
        version: program.version.clone(),
        packages: packages().into_iter().map(str::to_owned).collect(),
    };
    if !args.again && is_current(&settings.data_dir, &made) {
        output::note(&format!("There is one already: {}", current_link(&settings.data_dir).display()));
        return Ok(());
    }
    let place = all.join(format!("env-{}", Uuid::new_v4().simple()));
    let half_made = HalfMade(Some(&place));
    install(&place, &program, &made, settings).await?;
    half_made.keep();
    let link = current_link(&settings.data_dir);
    let before = fs::read_link(&link).ok();
    let name = place.file_name().context("the folder has no name")?;
    switch(&link, Path::new(name))?;
    clear(&all, [Some(name), before.as_deref().and_then(Path::file_name)]);
    output::print(&link.display().to_string())
}

/// Folder that is removed on drop, such as after cancellation, unless it was completed.
struct HalfMade<'a>(Option<&'a Path>);

impl HalfMade<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for HalfMade<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            // If this fails, the next setup removes the folder.
            let _ = fs::remove_dir_all(place);
        }
    }
}

/// Makes the environment and tries it out.
async fn install(
    place: &Path,
    program: &Program,
    made: &Made,
    settings: &SandboxSettings,
) -> anyhow::Result<()> {
    output::note(&format!(
        "Making an environment with Python {} ({})",
        program.version,
        program.path.display()
    ));
    let mut venv = python_module(&program.path, "venv");
    venv.arg(place);
    run_step(venv, "the environment could not be made").await?;
    output::note(&format!("Installing {} packages", made.packages.len()));
    let python = place.join("bin/python3");
    let mut pip = python_module(&python, "pip");
    pip.args(["install", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]);
    // The list includes all dependencies. `pip check` below verifies that.
    pip.args(["--no-deps", "--progress-bar", "off"]).args(&made.packages);
    run_step(pip, "the packages could not be installed").await?;
    let mut check = python_module(&python, "pip");
    check.args(["check", "--disable-pip-version-check"]);
    run_step(check, "the packages do not fit together").await?;
    output::note("Trying it out");
    let mut tries = Command::new(&python);
    tries.args(["-I", "-c", IMPORTS]);
    run_step(tries, "the packages cannot be used").await?;
    open_to_all(place).with_context(|| format!("could not let others read {}", place.display()))?;
    try_in_sandbox(place, settings).await?;
    let marker = serde_json::to_vec_pretty(made).context("could not write what it was made of")?;
    fs::write(place.join(MARKER), marker).context("could not write what it was made of")
}

/// Checks that programs in a sandbox can use the environment: they run as another user and see less of the machine.
async fn try_in_sandbox(place: &Path, settings: &SandboxSettings) -> anyhow::Result<()> {
    let settings = SandboxSettings { python: Some(place.to_owned()), ..settings.clone() };
    let (isolation, settings) = tokio::task::spawn_blocking(move || (settings.isolation(), settings)).await?;
    let isolation = match isolation {
        Ok(isolation) => isolation,
        // The environment may be meant for another machine. This one reports the problem when it is used here.
        Err(SandboxesError::Isolation(reason)) => {
            output::warn(&format!("not tried in a sandbox: {reason}"));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let config = settings.config(None);
    let sandbox = isolation.create(&config.limits).await?;
    let tried = sandbox.exec(&trial(TRY_TIMEOUT)).await?;
    sandbox.end().await;
    match tried.exit_code {
        Some(0) => Ok(()),
        None => Err(Problem::failure("the packages take too long to be loaded in a sandbox").into()),
        Some(_) => {
            let complaint = String::from_utf8_lossy(&tried.stderr);
            Err(explained("the packages cannot be used in a sandbox", &complaint)
                .hint("name a Python that is installed below /usr with --program")
                .into())
        }
    }
}

/// Returns the command that loads and uses each package in a sandbox.
pub(in crate::commands) fn trial(timeout: Duration) -> Exec {
    Exec {
        command: format!("python3 -I -c \"{IMPORTS}\""),
        cwd: None,
        env: BTreeMap::new(),
        timeout,
        output_bytes_max: 64 << 10,
    }
}

/// Returns the reason why the machine's own Python can't make an environment, or `None` if it can.
pub(in crate::commands) async fn obstacle() -> Option<anyhow::Error> {
    find_program(None).await.err()
}

/// Returns true if the current environment was made of the same parts.
fn is_current(data_dir: &Path, made: &Made) -> bool {
    let Ok(Some(current)) = PythonEnvironment::current(data_dir) else { return false };
    let marker = fs::read(current.folder.join(MARKER)).ok();
    marker.and_then(|marker| serde_json::from_slice::<Made>(&marker).ok()).as_ref() == Some(made)
}

fn lock(all: &Path) -> anyhow::Result<File> {
    let path = all.join(LOCK);
    let lock = File::create(&path).with_context(|| format!("could not write {}", path.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            Err(Problem::failure("another `bench sandy setup` is at work in this data directory").into())
        }
        Err(TryLockError::Error(error)) => Err(error).context("could not lock the Python environments"),
    }
}

async fn find_program(named: Option<&Path>) -> anyhow::Result<Program> {
    if let Some(path) = named {
        let program = look_at(path.as_os_str()).await.map_err(|why| {
            Problem::usage(format!("--program: {} is no Python that works: {why}", path.display()))
        })?;
        return match program.lacks() {
            None => Ok(program),
            Some(lacks) => Err(Problem::failure(format!("--program: {lacks}")).into()),
        };
    }
    let mut lacking = Vec::new();
    for name in PROGRAMS {
        let Ok(program) = look_at(OsStr::new(name)).await else { continue };
        match program.lacks() {
            None => return Ok(program),
            Some(lacks) if !lacking.contains(&lacks) => lacking.push(lacks),
            Some(_) => {}
        }
    }
    let why = if lacking.is_empty() { "there is no python3".to_owned() } else { lacking.join("; ") };
    Err(Problem::failure(format!("no environment can be made: {why}"))
        .hint("install Python 3.10 to 3.12 with its venv module (Debian: apt install python3-venv), or name one with --program")
        .into())
}

async fn look_at(name: &OsStr) -> Result<Program, String> {
    let asked = Command::new(name).args(["-I", "-c", PROBE]).stdin(Stdio::null()).kill_on_drop(true).output();
    let told = asked.await.map_err(|error| error.to_string())?;
    let mut program: Program =
        serde_json::from_slice(&told.stdout).map_err(|_| "it does not say its version".to_owned())?;
    program.path = PathBuf::from(name);
    Ok(program)
}

/// Builds a command for a Python module that ends with this process.
fn python_module(python: &Path, module: &str) -> Command {
    let mut command = Command::new(python);
    command.args(["-I", "-c", RUN_MODULE, module]);
    command
}

/// Process group of a program and its children. Dropping it kills them all.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Disarms the group after the program ended: its id may soon belong to other processes.
    fn let_go(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Fails if no process is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Shortens a line to the maximum length at a word boundary, with an ellipsis.
fn fitted(line: &str, chars_max: usize) -> String {
    if line.chars().count() <= chars_max {
        return line.to_owned();
    }
    let kept: String = line.chars().take(chars_max.saturating_sub(1)).collect();
    let is_between = line.get(kept.len()..).is_some_and(|rest| rest.starts_with(' '));
    let words = if is_between {
        kept.as_str()
    } else {
        kept.rsplit_once(' ').map_or(kept.as_str(), |(words, _)| words)
    };
    format!("{}…", words.trim_end_matches([' ', ',']))
}

/// Runs a program to its end and shows its progress.
async fn run_step(mut command: Command, failure: &str) -> anyhow::Result<()> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // Only this process receives Ctrl-C. It then ends the other program and its children.
    command.process_group(0);
    // The caller's Python settings must not affect this Python.
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").env_remove("VIRTUAL_ENV");
    let mut child = command.spawn().with_context(|| failure.to_owned())?;
    let group = Group::of(&child);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let chars_max = output::error_width().map_or(LINE_CHARS_MAX, usize::from).saturating_sub(INDENT.len());
    let shows = async {
        let mut said = String::new();
        let Some(stdout) = stdout else { return said };
        let mut lines = BufReader::new(stdout).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if ["Collecting ", "Downloading ", "Installing "]
                .iter()
                .any(|start| line.trim().starts_with(start))
            {
                output::note(&format!("{INDENT}{}", fitted(line.trim(), chars_max)));
            } else if said.len() < LINE_CHARS_MAX * 10 {
                said = format!("{said}{line}\n");
            }
        }
        said
    };
    let complains = async {
        let mut kept = Vec::new();
        let Some(mut stderr) = stderr else { return kept };
        // Error output that can't be read is dropped. The exit code is reported in any case.
        let _ = (&mut stderr).take(COMPLAINT_BYTES_MAX).read_to_end(&mut kept).await;
        let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        kept
    };
    let (status, said, complaint) = tokio::join!(child.wait(), shows, complains);
    group.let_go();
    if status.with_context(|| failure.to_owned())?.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&complaint);
    let text = if complaint.trim().is_empty() { said.as_str() } else { &*complaint };
    Err(explained(failure, text).into())
}

/// Summarizes the error output of pip or Python in one sentence.
fn explained(failure: &str, complaint: &str) -> Problem {
    let unreachable = [
        "NewConnectionError",
        "Temporary failure in name resolution",
        "Name or service not known",
        "Network is unreachable",
        "Connection refused",
        "ProxyError",
        "ConnectTimeoutError",
        "Read timed out",
        "SSLError",
    ];
    if unreachable.iter().any(|part| complaint.contains(part)) {
        return Problem::failure(format!("{failure}: the package index cannot be reached"))
            .hint("connect to the network, or set PIP_INDEX_URL to an index that can be reached");
    }
    if complaint.contains("(from versions: none)") {
        return Problem::failure(format!("{failure}: the package index has none, or cannot be reached"))
            .hint("connect to the network, or set PIP_INDEX_URL to an index that can be reached");
    }
    if complaint.contains("No matching distribution found") {
        let line = complaint.lines().find(|line| line.contains("No matching distribution found"));
        let line = line.unwrap_or_default().trim().trim_start_matches("ERROR: ");
        return Problem::failure(format!("{failure}: {line}")).hint(
            "the package index has no build of it for this Python and machine; try another with --program",
        );
    }
    if complaint.contains("No module named pip") {
        return Problem::failure(format!("{failure}: there is no pip"))
            .hint("install it (Debian: apt install python3-venv), or name another Python with --program");
    }
    if complaint.contains("No space left on device") {
        return Problem::failure(format!("{failure}: the disk is full")).hint("it takes about 500 MiB");
    }
    let last = complaint.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
    let last: String = last.chars().take(300).collect();
    Problem::failure(format!("{failure}: {last}"))
}

/// Grants everyone the read and execute permissions of the owner, since sandboxes run as another user.
fn open_to_all(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            open_to_all(&entry.path())?;
        }
        open_one(&entry.path())?;
    }
    open_one(folder)
}

fn open_one(path: &Path) -> std::io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    let readable = (mode & 0o500) >> 3 | (mode & 0o500) >> 6;
    if mode & readable == readable {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode((mode | readable) & 0o7777))
}

/// Points the link to the name atomically.
fn switch(link: &Path, name: &Path) -> anyhow::Result<()> {
    let new = link.with_extension("new");
    let failed = || format!("could not write {}", link.display());
    match fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).with_context(failed),
        _ => {}
    }
    symlink(name, &new).and_then(|()| fs::rename(&new, link)).with_context(failed)
}

/// Removes all environments except `kept`: older and incomplete ones. `kept` has the previous one, which may be in use.
fn clear(all: &Path, kept: [Option<&OsStr>; 2]) {
    let Ok(entries) = fs::read_dir(all) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("env-"));
        if !is_ours || kept.contains(&Some(name.as_os_str())) {
            continue;
        }
        if let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::warn!(%error, "Could not remove {}: {error}", entry.path().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_become_one_sentence() {
        let failure = "the packages could not be installed";
        for (complaint, part) in [
            (
                "WARNING: Retrying… NewConnectionError('<pip…>: Failed to establish')\nERROR: No matching distribution found for numpy==1.26.4",
                "cannot be reached",
            ),
            (
                "ERROR: Could not find a version\nERROR: No matching distribution found for numpy==1.26.4\n",
                "No matching distribution found for numpy==1.26.4",
            ),
            ("/x/python3: No module named pip", "there is no pip"),
            ("OSError: [Errno 28] No space left on device", "disk is full"),
            ("a\nb: broken\n\n", "b: broken"),
            ("", "it said nothing"),
        ] {
            let text = explained(failure, complaint).to_string();
            assert!(text.starts_with(failure) && text.contains(part) && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn lines_are_cut_between_words() {
        let line = "Installing collected packages: mpmath, numpy, packaging";
        assert_eq!(fitted(line, 100), line);
        assert_eq!(fitted(line, line.len()), line);
        assert_eq!(fitted(line, line.len() - 1), "Installing collected packages: mpmath, numpy…");
        assert_eq!(fitted("one two three", 8), "one two…");
        assert_eq!(fitted("one two three", 7), "one…");
        assert_eq!(fitted("ééééé", 3), "éé…");
        assert_eq!(fitted("x y", 0), "…");
    }

    #[tokio::test]
    async fn what_is_given_up_leaves_nobody_and_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (made, told) = (place.path().join("env-x"), place.path().join("pid"));
        fs::create_dir(&made).unwrap();
        let work = async {
            let _half_made = HalfMade(Some(&made));
            let mut shell = Command::new("sh");
            shell
                .arg("-c")
                .arg("sleep 1000 & echo $! > pid.new; mv pid.new pid; wait")
                .current_dir(place.path());
            run_step(shell, "it failed").await
        };
        let started = async {
            while !told.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            ended = work => panic!("{ended:?}"),
            () = started => {}
        }
        assert!(!made.exists());
        // The process that the shell started is gone, too, or is a zombie.
        let stat = PathBuf::from(format!("/proc/{}/stat", fs::read_to_string(told).unwrap().trim()));
        let lives =
            || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "));
        while lives() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let whole = HalfMade(Some(place.path()));
        whole.keep();
        assert!(place.path().exists());
    }

    #[tokio::test]
    async fn modules_run_as_programs() {
        let mut module = python_module(Path::new("python3"), "json.tool");
        let done = module.arg("--help").output().await.unwrap();
        assert!(done.status.success() && String::from_utf8_lossy(&done.stdout).contains("infile"));
        let missing = python_module(Path::new("python3"), "no_such_module").output().await.unwrap();
        assert!(String::from_utf8_lossy(&missing.stderr).contains("No module named no_such_module"));
    }

    #[test]
    fn only_a_python_that_has_builds_is_used() {
        let program = |major, minor, makes| Program {
            path: "/p".into(),
            major,
            minor,
            version: format!("{major}.{minor}.1"),
            makes,
        };
        assert_eq!(program(3, 11, true).lacks(), None);
        for (major, minor) in [(3, 9), (3, 13), (2, 11), (4, 11)] {
            assert!(program(major, minor, true).lacks().unwrap().contains("3.10 to 3.12"));
        }
        assert!(program(3, 11, false).lacks().unwrap().contains("python3.11-venv"));
    }

    #[test]
    fn the_link_is_switched_at_once_and_old_ones_are_cleared() {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("current");
        for name in ["env-1", "env-2", "env-3", "other"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        // Left behind by a setup that was killed.
        symlink("env-0", link.with_extension("new")).unwrap();
        for name in ["env-1", "env-2"] {
            switch(&link, Path::new(name)).unwrap();
            assert_eq!(fs::read_link(&link).unwrap(), Path::new(name));
        }
        clear(place.path(), [Some(OsStr::new("env-2")), Some(OsStr::new("env-1"))]);
        let there = |name: &str| place.path().join(name).exists();
        assert!(there("env-1") && there("env-2") && there("other") && !there("env-3"));
    }

    #[test]
    fn everybody_may_read_what_its_owner_can() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("x"), "").unwrap();
        fs::write(folder.join("y"), "").unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(&folder.join("x"), 0o600);
        set(&folder.join("y"), 0o700);
        set(&folder, 0o700);
        open_to_all(&folder).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&folder), mode(&folder.join("x")), mode(&folder.join("y"))), (0o755, 0o644, 0o755));
    }

    #[test]
    fn one_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let first = lock(place.path()).unwrap();
        assert!(lock(place.path()).unwrap_err().to_string().contains("at work"));
        drop(first);
        lock(place.path()).unwrap();
    }
}
