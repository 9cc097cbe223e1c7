//! `bench sandy setup`: the Python environment of code benchmarks, and what else sandboxes share.
//!
//! The environment is made in a folder of its own and tried out. After that, the link `current` is set to it, so an
//! incomplete environment is never used. Packages are those that SciCode names, pinned, because another version could
//! give another verdict.

mod dependencies;
mod folders;
mod packages;
mod python;
pub(in crate::commands) mod speed;
mod step;
pub(in crate::commands) mod tau2;
mod toolchains;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use bench_sandbox::isolation::Exec;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use uuid::Uuid;

use self::folders::{UnfinishedFolder, lock, make_readable, remove_others, set_link};
use self::packages::{IMPORTS, packages};
use self::python::{PythonProgram, find_python};
use self::step::{python_module, run_step, summarize};
use crate::commands::run::interrupt::Interrupt;
use crate::exit::{ExitStatus, Problem};
use crate::output;
use bench_stack::sandboxes::python::{PythonEnvironment, current_link, folder};
use bench_stack::sandboxes::{SandboxSettings, SandboxesError};

/// File that describes an environment. Only complete environments have it.
const MARKER: &str = "bench-environment.json";
/// Maximum time to load the packages in a sandbox, the first time from a slow disk.
const CHECK_TIMEOUT: Duration = Duration::from_secs(180);
/// Maximum number of output bytes to keep of a command in a sandbox.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

pub(super) const EXAMPLES: &str = "\
Examples:
  bench sandy setup
      creates it in the data directory; takes about 500 MiB
  bench sandy setup --program /usr/bin/python3.11 --again
  bench sandy setup --toolchains
      Go and Rust for the tasks of code_lab; takes about 400 MiB
  bench sandy setup --packages ./my-tasks
      packages that these tasks declare, by their digests
  bench sandy setup tau2
      the official package for tau_bench_telecom; takes about 250 MiB";

#[derive(Debug, Subcommand)]
enum SetupCommand {
    /// Install the official package of tau_bench_telecom, with a Python environment of its own
    #[command(after_help = tau2::EXAMPLES)]
    Tau2(tau2::Tau2Args),
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SetupArgs {
    #[command(subcommand)]
    command: Option<SetupCommand>,
    /// Python 3.10 to 3.12 that creates the environment [default: the first usable Python of this machine]
    #[arg(long, value_name = "PYTHON")]
    program: Option<PathBuf>,
    /// Install Go, and share this machine's Rust, for the programming tasks of code_lab
    #[arg(long)]
    toolchains: bool,
    /// Install the packages that the programming tasks at this path declare, by their digests; may be repeated
    #[arg(long, value_name = "TASKS", conflicts_with_all = ["toolchains", "program"])]
    packages: Vec<PathBuf>,
    /// Install again what exists
    #[arg(long)]
    again: bool,
}

/// Description of the parts of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct EnvironmentSpec {
    program: PathBuf,
    version: String,
    packages: Vec<String>,
}

pub(super) async fn run(args: &SetupArgs, settings: &SandboxSettings) -> anyhow::Result<ExitStatus> {
    let interrupt = Interrupt::listen();
    let make = async {
        if let Some(SetupCommand::Tau2(asked)) = &args.command {
            return tau2::make(asked, settings).await;
        }
        match args.toolchains {
            true => toolchains::make(args, settings).await,
            false if !args.packages.is_empty() => {
                dependencies::make(&args.packages, args.again, settings).await
            }
            false => make(args, settings).await,
        }
    };
    tokio::select! {
        made = make => made.map(|()| ExitStatus::Success),
        () = interrupt.wait() => {
            output::note("stopped; nothing was changed");
            Ok(ExitStatus::Interrupted)
        }
    }
}

async fn make(args: &SetupArgs, settings: &SandboxSettings) -> anyhow::Result<()> {
    bench_embedded::secure_data_dir(&settings.data_dir)?;
    let all = folder(&settings.data_dir);
    fs::create_dir_all(&all).with_context(|| format!("could not create {}", all.display()))?;
    let _lock = lock(&all)?;
    let program = find_python(args.program.as_deref()).await?;
    let spec = EnvironmentSpec {
        program: program.path.clone(),
        version: program.version.clone(),
        packages: packages().into_iter().map(str::to_owned).collect(),
    };
    if !args.again && is_current(&settings.data_dir, &spec) {
        output::note(&format!(
            "the environment exists already: {}; --again makes it again",
            current_link(&settings.data_dir).display()
        ));
        return Ok(());
    }
    let place = all.join(format!("env-{}", Uuid::new_v4().simple()));
    let unfinished = UnfinishedFolder::new(&place);
    install(&place, &program, &spec, settings).await?;
    unfinished.keep();
    let link = current_link(&settings.data_dir);
    let before = fs::read_link(&link).ok();
    let name = place.file_name().context("the folder has no name")?;
    set_link(&link, Path::new(name))?;
    remove_others(&all, [Some(name), before.as_deref().and_then(Path::file_name)]);
    output::print(&link.display().to_string())
}

/// Makes the environment and tries it out.
async fn install(
    place: &Path,
    program: &PythonProgram,
    spec: &EnvironmentSpec,
    settings: &SandboxSettings,
) -> anyhow::Result<()> {
    output::note(&format!(
        "Creating an environment with Python {} ({})",
        program.version,
        program.path.display()
    ));
    let mut venv = python_module(&program.path, "venv");
    venv.arg(place);
    run_step(venv, "could not create the environment").await?;
    output::note(&format!("Installing {} packages", spec.packages.len()));
    let python = place.join("bin/python3");
    let mut pip = python_module(&python, "pip");
    pip.args(["install", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]);
    // The list includes all dependencies. `pip check` below verifies that.
    pip.args(["--no-deps", "--progress-bar", "off"]).args(&spec.packages);
    run_step(pip, "could not install the packages").await?;
    let mut check = python_module(&python, "pip");
    check.args(["check", "--disable-pip-version-check"]);
    run_step(check, "the packages do not fit together").await?;
    output::note("Checking the packages");
    let mut import = Command::new(&python);
    import.args(["-I", "-c", IMPORTS]);
    run_step(import, "the packages cannot be used").await?;
    make_readable(place).with_context(|| format!("could not let others read {}", place.display()))?;
    try_in_sandbox(place, settings).await?;
    let marker =
        serde_json::to_vec_pretty(spec).context("could not write the description of the environment")?;
    fs::write(place.join(MARKER), marker).context("could not write the description of the environment")
}

/// Checks that programs in a sandbox can use the environment: they run as another user and see less of the machine.
async fn try_in_sandbox(place: &Path, settings: &SandboxSettings) -> anyhow::Result<()> {
    let settings = SandboxSettings { python: Some(place.to_owned()), ..settings.clone() };
    let (isolation, settings) = tokio::task::spawn_blocking(move || (settings.isolation(), settings)).await?;
    let isolation = match isolation {
        Ok(isolation) => isolation,
        // The environment may be meant for another machine. This one reports the problem when it is used here.
        Err(SandboxesError::Isolation(reason)) => {
            output::warn(&format!("not checked in a sandbox: {reason}"));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let config = settings.config(None);
    let sandbox = isolation.create(&config.limits).await?;
    let output = sandbox.exec(&package_check(CHECK_TIMEOUT)).await?;
    sandbox.end().await;
    match output.exit_code {
        Some(0) => Ok(()),
        None => Err(Problem::failure("loading the packages in a sandbox takes too long").into()),
        Some(_) => {
            let error_output = String::from_utf8_lossy(&output.stderr);
            Err(summarize("the packages cannot be used in a sandbox", &error_output)
                .hint("name a Python that is installed below /usr with --program")
                .into())
        }
    }
}

/// Returns the command that loads and uses each package in a sandbox.
pub(in crate::commands) fn package_check(timeout: Duration) -> Exec {
    in_sandbox(format!("python3 -I -c \"{IMPORTS}\""), timeout)
}

/// Returns a shell command for a sandbox.
pub(in crate::commands) fn in_sandbox(command: String, timeout: Duration) -> Exec {
    Exec { command, cwd: None, env: BTreeMap::new(), timeout, output_bytes_max: OUTPUT_BYTES_MAX }
}

/// Returns the reason why the machine's own Python can't make an environment, or `None` if it can.
pub(in crate::commands) async fn missing_prerequisite() -> Option<anyhow::Error> {
    find_python(None).await.err()
}

/// Returns true if the current environment was made of the same parts.
fn is_current(data_dir: &Path, spec: &EnvironmentSpec) -> bool {
    let Ok(Some(current)) = PythonEnvironment::current(data_dir) else { return false };
    let marker = fs::read(current.folder.join(MARKER)).ok();
    marker.and_then(|marker| serde_json::from_slice::<EnvironmentSpec>(&marker).ok()).as_ref() == Some(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_canceled_step_leaves_no_process_and_no_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (made, pid_file) = (dir.path().join("env-x"), dir.path().join("pid"));
        fs::create_dir(&made).unwrap();
        let work = async {
            let _unfinished = UnfinishedFolder::new(&made);
            let mut shell = Command::new("sh");
            shell
                .arg("-c")
                .arg("sleep 1000 & echo $! > pid.new; mv pid.new pid; wait")
                .current_dir(dir.path());
            run_step(shell, "it failed").await
        };
        let started = async {
            while !pid_file.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            ended = work => panic!("{ended:?}"),
            () = started => {}
        }
        assert!(!made.exists());
        // The process that the shell started is gone, too, or is a zombie.
        let stat = PathBuf::from(format!("/proc/{}/stat", fs::read_to_string(pid_file).unwrap().trim()));
        let lives =
            || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "));
        while lives() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        UnfinishedFolder::new(dir.path()).keep();
        assert!(dir.path().exists());
    }
}
