//! `bench sandy setup tau2`: the official package of `tau_bench_telecom`, with a Python environment of its own.
//!
//! The package is in no registry. Its files come from the source archive of its tag, and each is checked by its digest, so
//! that another version or a changed file is never used. Libraries are installed by version and digest.

pub(in crate::commands) mod check;
mod source;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use bench_benchmarks::tau_bench_telecom::PACKAGE_VERSION;
use bench_stack::sandboxes::tau2::{InstalledTau2, current_link, folder};
use bench_stack::sandboxes::{SandboxSettings, SandboxesError, create_shared_folder};
use clap::Args;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use self::source::{Source, digest};
use super::folders::{UnfinishedFolder, lock, make_readable, remove_others, set_link};
use super::python::{PythonProgram, Versions, find_python_of};
use super::step::{python_module, run_step};
use crate::exit::Problem;
use crate::output;

/// Libraries of the package, by version and digest.
const LIBRARIES: &str = include_str!("../../../../../shared/sandbox/tau2-requirements.txt");
/// Splits the file of all tasks, so that a step reads one task only, and compiles the package.
const PREPARE: &str = include_str!("tau2/prepare.py");
/// Folder of the package's files.
const SOURCE: &str = "source";
/// Minor versions of Python 3 that the package runs on.
const MINORS: std::ops::RangeInclusive<u32> = 12..=13;
/// Maximum time to take a step in a sandbox, the first time from a slow disk.
const CHECK_TIMEOUT: Duration = Duration::from_secs(180);

pub(super) const EXAMPLES: &str = "\
Examples:
  bench sandy setup tau2
      downloads the source archive of the official tag; takes about 250 MiB
  bench sandy setup tau2 --source ./tau2-bench
      a source tree or archive of that tag on this machine
  bench sandy setup tau2 --program /opt/python3.13/bin/python3";

#[derive(Debug, Args)]
pub(crate) struct Tau2Args {
    /// Source tree or ZIP archive of the official tag [default: download the archive]
    #[arg(long, value_name = "DIR|ZIP")]
    source: Option<PathBuf>,
    /// Python 3.12 or 3.13 that creates the environment [default: the first usable Python of this machine]
    #[arg(long, value_name = "PYTHON")]
    program: Option<PathBuf>,
    /// Install again what exists
    #[arg(long)]
    again: bool,
}

pub(super) async fn make(args: &Tau2Args, settings: &SandboxSettings) -> anyhow::Result<()> {
    bench_embedded::secure_data_dir(&settings.data_dir)?;
    let all = folder(&settings.data_dir);
    create_shared_folder(&all).with_context(|| format!("could not create {}", all.display()))?;
    let _lock = lock(&all)?;
    let program = find_python_of(args.program.as_deref(), &versions()).await?;
    let description = InstalledTau2 {
        name: "tau2".to_owned(),
        version: PACKAGE_VERSION.to_owned(),
        digest: digest(),
        python: program.version.clone(),
        libraries: hex::encode(Sha256::digest(LIBRARIES)),
    };
    let link = current_link(&settings.data_dir);
    if !args.again && InstalledTau2::current(&settings.data_dir).as_ref() == Some(&description) {
        output::note(&format!(
            "tau2 {PACKAGE_VERSION} is there already: {}; --again installs it again",
            link.display()
        ));
        return Ok(());
    }
    // Before anything is installed: most problems are here.
    let source = Source::read(args.source.as_deref()).await?;
    let place = all.join(format!("env-{}", Uuid::new_v4().simple()));
    let unfinished = UnfinishedFolder::new(&place);
    install(&place, &program, &source).await?;
    let marker = serde_json::to_vec_pretty(&description).context("could not describe the package")?;
    let path = InstalledTau2::path(&place);
    fs::write(&path, marker).with_context(|| format!("could not write {}", path.display()))?;
    make_readable(&place).with_context(|| format!("could not let others read {}", place.display()))?;
    let name = place.file_name().context("the folder has no name")?;
    let before = fs::read_link(&link).ok();
    set_link(&link, Path::new(name))?;
    if let Err(error) = try_in_sandbox(settings).await {
        match &before {
            Some(before) => set_link(&link, before)?,
            None => fs::remove_file(&link).with_context(|| format!("could not remove {}", link.display()))?,
        }
        return Err(error);
    }
    unfinished.keep();
    remove_others(&all, [Some(name), before.as_deref().and_then(Path::file_name)]);
    output::print(&link.display().to_string())
}

/// Returns the versions of Python that the package runs on. Besides those on `PATH`, tools that manage versions have some.
fn versions() -> Versions {
    let mut places: Vec<PathBuf> = Vec::new();
    for name in [
        "/usr/bin/python3",
        "/usr/bin/python3.12",
        "/usr/bin/python3.13",
        "python3.12",
        "python3.13",
        "python3",
    ] {
        places.push(PathBuf::from(name));
    }
    if let Some(home) = std::env::home_dir() {
        for managed in [".pyenv/versions", ".local/share/uv/python"] {
            let found = fs::read_dir(home.join(managed)).into_iter().flatten().flatten();
            let mut found: Vec<PathBuf> = found.map(|entry| entry.path().join("bin/python3")).collect();
            found.sort();
            places.extend(found.into_iter().filter(|program| program.is_file()));
        }
    }
    Versions { minors: MINORS, places }
}

/// Makes the environment, with the package beside it.
async fn install(place: &Path, program: &PythonProgram, source: &Source) -> anyhow::Result<()> {
    output::note(&format!(
        "Creating an environment with Python {} ({})",
        program.version,
        program.path.display()
    ));
    let mut venv = python_module(&program.path, "venv");
    venv.arg(place);
    run_step(venv, "could not create the environment").await?;
    output::note("Installing libraries");
    let python = place.join("bin/python3");
    let list = place.join("requirements.txt");
    fs::write(&list, LIBRARIES).with_context(|| format!("could not write {}", list.display()))?;
    let mut pip = python_module(&python, "pip");
    pip.args(["install", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]);
    pip.args(["--no-deps", "--require-hashes", "--progress-bar", "off", "--requirement"]).arg(&list);
    run_step(pip, "could not install the libraries").await?;
    output::note(&format!("Installing tau2 {PACKAGE_VERSION}"));
    source.write(&place.join(SOURCE))?;
    let mut prepare = tokio::process::Command::new(&python);
    prepare.args(["-I", "-c", PREPARE]).arg(place);
    run_step(prepare, "could not prepare the package").await
}

/// Takes a step of the first task in a sandbox: programs there run as another user and see less of the machine.
async fn try_in_sandbox(settings: &SandboxSettings) -> anyhow::Result<()> {
    output::note("Taking a step in a sandbox");
    let tried = settings.clone();
    let isolation = match tokio::task::spawn_blocking(move || tried.isolation()).await? {
        Ok(isolation) => isolation,
        // The package may be meant for another machine. This one reports the problem when it is used here.
        Err(SandboxesError::Isolation(reason)) => {
            output::warn(&format!("not tried in a sandbox: {reason}"));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let sandbox = isolation.create(&settings.config(None).limits).await?;
    let done = sandbox.exec(&check::step(&settings.data_dir, CHECK_TIMEOUT)).await;
    sandbox.end().await;
    match check::problem(&done?) {
        None => Ok(()),
        Some(problem) => Err(Problem::failure(format!("the package cannot be used in a sandbox: {problem}"))
            .hint("name a Python that is installed below /usr with --program")
            .into()),
    }
}
