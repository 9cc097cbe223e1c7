//! Packages of Python, as wheels.
//!
//! Sandboxes find them by `PYTHONPATH`, in front of those of their Python. A declaration without digests is resolved once; the
//! digests are kept in a lock file beside the folder, and count from then on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bench_stack::sandboxes::SandboxSettings;
use bench_stack::sandboxes::python::sandbox_python;
use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::super::step::{python_module, run_step};
use super::Work;
use crate::exit::Problem;

/// Prints major and minor version.
const VERSION: &str = "import sys; print('%d.%d' % sys.version_info[:2])";

/// The Python of sandboxes.
pub(super) struct Python {
    program: PathBuf,
    /// Major and minor version.
    pub(super) version: String,
}

impl Python {
    /// Finds the Python that programs in sandboxes use.
    pub(super) async fn find(settings: &SandboxSettings) -> anyhow::Result<Self> {
        let missing = || {
            Problem::failure("this machine has no python3 for sandboxes")
                .hint("install Python 3.10 or later (Debian: apt install python3 python3-venv)")
        };
        let program = sandbox_python(settings.python()?.as_ref()).ok_or_else(missing)?;
        let output =
            Command::new(&program).args(["-I", "-S", "-c", VERSION]).kill_on_drop(true).output().await;
        let output = output.with_context(|| format!("could not run {}", program.display()))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match output.status.success() && !version.is_empty() {
            true => Ok(Self { program, version }),
            false => Err(missing().into()),
        }
    }
}

/// Installs wheels, and returns the version of Python that they are for.
pub(super) async fn install(work: &Work<'_>, all: &Path) -> anyhow::Result<String> {
    let python = Python::find(work.settings).await?;
    let environment = work.scratch.join("pip");
    let mut venv = python_module(&python.program, "venv");
    venv.arg(&environment);
    run_step(venv, "could not create an environment for pip").await?;
    let pip = || python_module(&environment.join("bin/python3"), "pip");
    // Wheels, and packages that others need, depend on the version of Python.
    let lock = all.join(format!("{}-{}.lock", work.dependencies.name(), python.version));
    let is_locked = !work.dependencies.has_digests && lock.exists();
    let requirements = if is_locked { lock.clone() } else { work.project.join("requirements.txt") };
    let wheels = work.scratch.join("wheels");
    let mut download = pip();
    download.args(["download", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]);
    download.args(["--progress-bar", "off", "--dest"]).arg(&wheels).arg("-r").arg(&requirements);
    if work.dependencies.has_digests || is_locked {
        download.arg("--require-hashes");
    }
    let failure = "could not download the packages";
    work.run(download, failure).await.map_err(|error| match is_locked {
        true => error.context(format!("the digests in {} were recorded before", lock.display())),
        false => error,
    })?;
    let resolved = digests(&wheels)?;
    let exact = work.scratch.join("exact.txt");
    fs::write(&exact, &resolved).context("could not write the list of packages")?;
    let mut install = pip();
    install.args(["install", "--no-input", "--disable-pip-version-check", "--no-index", "--no-deps"]);
    install.args([
        "--only-binary",
        ":all:",
        "--require-hashes",
        "--no-compile",
        "--progress-bar",
        "off",
        "--find-links",
    ]);
    install.arg(&wheels).arg("--target").arg(&work.target).arg("-r").arg(&exact);
    work.run(install, "could not install the packages").await?;
    if !work.dependencies.has_digests && !is_locked {
        let new = lock.with_extension("new");
        fs::write(&new, &resolved)
            .and_then(|()| fs::rename(&new, &lock))
            .with_context(|| format!("could not write {}", lock.display()))?;
    }
    Ok(python.version)
}

/// Returns a list of requirements with the digests of all wheels in a folder.
fn digests(wheels: &Path) -> anyhow::Result<String> {
    let failed = || format!("could not read {}", wheels.display());
    let mut lines = Vec::new();
    for entry in fs::read_dir(wheels).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut parts = name.split('-');
        let (Some(package), Some(version), true) = (parts.next(), parts.next(), name.ends_with(".whl"))
        else {
            return Err(Problem::failure(format!("pip downloaded `{name}`, which is no wheel")).into());
        };
        let digest = hex::encode(Sha256::digest(fs::read(&path).with_context(failed)?));
        lines.push(format!("{package}=={version} --hash=sha256:{digest}\n"));
    }
    lines.sort();
    Ok(lines.concat())
}
