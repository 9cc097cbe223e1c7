//! Runs the real binaries of the functions as processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::process;
use crate::runtime_api::RuntimeApi;

/// Packages of all functions. Each has a binary of the same name.
pub const FUNCTIONS: [&str; 8] = [
    "bench-api",
    "bench-exports",
    "bench-planner",
    "bench-worker",
    "bench-turns",
    "bench-finisher",
    "bench-dead-letters",
    "bench-scheduler",
];
/// A function that does nothing, for comparison.
pub const HELLO: &str = "bench-hello";
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Builds the binaries of the functions with a cargo profile, and returns their paths.
///
/// Selects the packages of the whole workspace, so that cargo reuses what it built for the workspace's tests. If
/// `BENCH_FUNCTIONS_DIR` is set, uses the binaries in that folder instead.
///
/// # Errors
/// Fails if they can't be built. Cargo prints the reason to standard error.
pub fn build(profile: &str) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    static BUILT: Mutex<BTreeMap<String, BTreeMap<String, PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(binaries) = built.get(profile) {
        return Ok(binaries.clone());
    }
    let binaries = match std::env::var_os("BENCH_FUNCTIONS_DIR") {
        Some(dir) => {
            let dir = Path::new(&dir);
            let names = FUNCTIONS.iter().chain([&HELLO]);
            names.map(|name| ((*name).to_owned(), dir.join(name))).collect()
        }
        None => build_now(profile)?,
    };
    for name in FUNCTIONS.iter().chain([&HELLO]) {
        let path = binaries.get(*name).with_context(|| format!("cargo did not build `{name}`"))?;
        ensure!(path.is_file(), "`{}` does not exist", path.display());
    }
    built.insert(profile.to_owned(), binaries.clone());
    Ok(binaries)
}

fn build_now(profile: &str) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace has no folder")?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["build", "--locked", "--bins", "--profile", profile]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    if profile == "dev" {
        // Same selection as for the tests: other features would build the dependencies again.
        cargo.args(["--workspace", "--tests"]);
    } else {
        // The deployed selection, without features that only tests need.
        cargo.args(FUNCTIONS.iter().chain([&HELLO]).flat_map(|name| ["--package", name]));
    }
    if let Some(target) = target_dir() {
        cargo.arg("--target-dir").arg(target);
    }
    // Variables that cargo sets for tests would make it rebuild.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") || text == "CARGO_CRATE_NAME"
        {
            cargo.env_remove(&name);
        }
    }
    let output = cargo.stderr(Stdio::inherit()).output().context("could not start cargo")?;
    ensure!(output.status.success(), "cargo could not build the functions: {}", output.status);
    let mut binaries = BTreeMap::new();
    for line in output.stdout.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { continue };
        if message["profile"]["test"] == true {
            continue;
        }
        if let (Some(name), Some(path)) = (message["target"]["name"].as_str(), message["executable"].as_str())
        {
            binaries.insert(name.to_owned(), PathBuf::from(path));
        }
    }
    Ok(binaries)
}

/// Returns the target folder of this program's own build.
fn target_dir() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let profile = program.ancestors().nth(1).filter(|dir| !dir.ends_with("deps"));
    let profile = profile.or_else(|| program.ancestors().nth(2))?;
    profile.parent().map(Path::to_owned)
}

/// A function's process. Ends when it is dropped.
#[derive(Debug)]
pub struct Function {
    child: Child,
    output: NamedTempFile,
    /// Time of the start.
    pub started: Instant,
}

impl Function {
    /// Starts a binary as Lambda would: with these variables and Lambda's own, and no others.
    ///
    /// # Errors
    /// Fails if it can't be started.
    pub fn start(
        binary: &Path,
        runtime: &RuntimeApi,
        vars: &BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        let output = NamedTempFile::new().context("could not create a file for the function's output")?;
        let append = || std::fs::OpenOptions::new().append(true).open(output.path());
        let name = binary.file_name().unwrap_or_default();
        let mut command = Command::new(binary);
        command.env_clear().stdin(Stdio::null()).stdout(append()?).stderr(append()?);
        command
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("TZ", ":UTC")
            .env("_HANDLER", "bootstrap")
            .env("AWS_LAMBDA_RUNTIME_API", runtime.address())
            .env("AWS_LAMBDA_FUNCTION_NAME", name)
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
            .env("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "emulated")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "emulated")
            .envs(vars);
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("could not start {}", binary.display()))?;
        Ok(Self { child, output, started })
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if the process is running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the end of the process, for at most `timeout`.
    ///
    /// # Errors
    /// Fails if it is still running then.
    pub async fn end(&mut self, timeout: Duration) -> anyhow::Result<ExitStatus> {
        let until = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > until {
                bail!("the function is still running:\n{}", self.output()?);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns its standard output and standard error so far.
    ///
    /// # Errors
    /// Fails if the output can't be read.
    pub fn output(&self) -> anyhow::Result<String> {
        let text = std::fs::read(self.output.path())?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the resident memory of the process, in KiB.
    ///
    /// # Errors
    /// Fails if /proc doesn't have the value.
    pub fn resident_kib(&self) -> anyhow::Result<u64> {
        process::resident_kib(self.id())
    }

    /// Returns the largest resident memory that the process had, in KiB.
    ///
    /// # Errors
    /// Fails if /proc doesn't have the value.
    pub fn peak_kib(&self) -> anyhow::Result<u64> {
        process::peak_kib(self.id())
    }

    /// Returns the CPU time that the running threads of the process have used.
    ///
    /// # Errors
    /// Fails if /proc doesn't have it.
    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        let mut ns = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.id()))? {
            let stat = std::fs::read_to_string(thread?.path().join("schedstat"))?;
            ns += stat.split_whitespace().next().context("no CPU time")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(ns))
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
