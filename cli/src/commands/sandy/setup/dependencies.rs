//! `bench sandy setup --packages`: packages that programming tasks declare.
//!
//! They are installed by the package managers' own clients, by the digests of the declaration, and without any script of a
//! package. A declaration has a folder of its own, which gets its name once everything in it is complete.

mod cargo;
mod go;
mod npm;
mod pip;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use bench_code_tasks::{Dependencies, PackageManager};
use bench_stack::sandboxes::packages::{InstalledPackages, folder};
use bench_stack::sandboxes::{SandboxSettings, create_shared_folder};
use tokio::process::Command;
use uuid::Uuid;

use super::folders::{UnfinishedFolder, lock, make_readable, remove_others};
use super::step::run_client;
use crate::code_archive;
use crate::exit::Problem;
use crate::{format, output};

/// Maximum size of the packages of a declaration, in bytes.
const BYTES_MAX: u64 = 2 << 30;
/// Maximum number of their files.
const FILES_MAX: u64 = 200_000;
/// Maximum time of a client.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Interval at which the size of what a client has written so far is checked.
const SIZE_INTERVAL: Duration = Duration::from_secs(2);
/// Number of names in a message.
const NAMES_MAX: usize = 5;

/// Files of a declaration, and where its packages go.
struct Work<'a> {
    dependencies: &'a Dependencies,
    /// Folder with the declaration's files, removed in the end.
    project: PathBuf,
    /// Folder of the packages, which doesn't exist yet.
    target: PathBuf,
    /// Folder that isn't kept, on the same disk.
    scratch: PathBuf,
    settings: &'a SandboxSettings,
}

/// Installs what the tasks at these paths declare.
pub(super) async fn make(
    paths: &[PathBuf],
    is_again: bool,
    settings: &SandboxSettings,
) -> anyhow::Result<()> {
    let Declared { all, mut problems } = read_declarations(paths)?;
    bench_embedded::secure_data_dir(&settings.data_dir)?;
    let folder = folder(&settings.data_dir);
    create_shared_folder(&folder).with_context(|| format!("could not create {}", folder.display()))?;
    let _lock = lock(&folder)?;
    // A setup that was killed may have left folders behind.
    remove_others(&folder, [None, None]);
    if all.is_empty() && problems.is_empty() {
        output::note("the tasks declare no packages");
    }
    for (name, Declaration { dependencies, tasks }) in &all {
        let what = format!("{} ({})", dependencies.declared_in, named(tasks));
        if !is_again && is_installed(dependencies, settings).await {
            output::note(&format!("{what}: installed already; --again installs it again"));
            continue;
        }
        output::note(&format!("Installing {what}"));
        match install(&folder, dependencies, settings).await {
            Ok(installed) => {
                let place = folder.join(name);
                output::note(&format!("  {} in {}", format::bytes(installed.bytes), place.display()));
            }
            Err(error) => problems.push(Unmet { what, why: error }),
        }
    }
    output::print(&folder.display().to_string())?;
    report(problems)
}

/// Declaration that isn't met.
struct Unmet {
    what: String,
    why: anyhow::Error,
}

/// A declaration and the tasks that have it.
struct Declaration {
    dependencies: Dependencies,
    tasks: Vec<String>,
}

/// Declarations by their names, and those that can't be read.
struct Declared {
    all: BTreeMap<String, Declaration>,
    problems: Vec<Unmet>,
}

/// Reads the declarations of all tasks at the paths.
fn read_declarations(paths: &[PathBuf]) -> anyhow::Result<Declared> {
    let (tasks, others) = code_archive::split(paths)?;
    if let Some(other) = others.first() {
        return Err(Problem::usage(format!("--packages: `{}` has no programming task", other.display()))
            .hint("name a folder with metadata.json, or a folder of such folders")
            .into());
    }
    let mut all = BTreeMap::<String, Declaration>::new();
    let mut problems = Vec::new();
    for path in &tasks {
        let archive = code_archive::read(path)?;
        let task = archive.read()?;
        match task.dependencies {
            Ok(found) => {
                for dependencies in found {
                    let one = all
                        .entry(dependencies.name())
                        .or_insert_with(|| Declaration { dependencies, tasks: Vec::new() });
                    one.tasks.push(archive.name.clone());
                }
            }
            Err(unfixed) => {
                problems.push(Unmet { what: format!("the task `{}`", archive.name), why: unfixed.into() });
            }
        }
    }
    Ok(Declared { all, problems })
}

/// Returns the error of the declarations that aren't met.
fn report(mut problems: Vec<Unmet>) -> anyhow::Result<()> {
    let count = problems.len() as u64;
    match problems.pop() {
        None => Ok(()),
        // The error of a single declaration is that of the command.
        Some(Unmet { what, why }) if problems.is_empty() => {
            let hint = why.downcast_ref::<Problem>().and_then(Problem::advice).map(str::to_owned);
            Err(Problem::failure(format!("{what}: {why:#}")).hint_if(hint).into())
        }
        Some(last) => {
            problems.push(last);
            for Unmet { what, why } in &problems {
                output::warn(&format!("{what}: {why:#}"));
            }
            let what = format!("{} of packages could not be installed", format::plural(count, "declaration"));
            Err(Problem::failure(what).hint("the warnings above say why").into())
        }
    }
}

fn named(tasks: &[String]) -> String {
    let more = tasks.len().checked_sub(NAMES_MAX).filter(|more| *more > 0);
    let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
    format!("{}{more}", tasks.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", "))
}

/// Returns true if the packages are there, and fit the Python of sandboxes.
async fn is_installed(dependencies: &Dependencies, settings: &SandboxSettings) -> bool {
    let Some(installed) = InstalledPackages::find(&settings.data_dir, dependencies) else { return false };
    match dependencies.manager {
        PackageManager::Pip => {
            pip::Python::find(settings).await.is_ok_and(|python| installed.python == Some(python.version))
        }
        PackageManager::Npm | PackageManager::Cargo | PackageManager::Go => true,
    }
}

/// Installs the packages of a declaration in a new folder, and gives it its name.
async fn install(
    all: &Path,
    dependencies: &Dependencies,
    settings: &SandboxSettings,
) -> anyhow::Result<InstalledPackages> {
    let place = all.join(format!("env-{}", Uuid::new_v4().simple()));
    let unfinished = UnfinishedFolder::new(&place);
    let scratch = place.join("scratch");
    fs::create_dir_all(&scratch).with_context(|| format!("could not create {}", scratch.display()))?;
    // Clients look for settings in the folders above, which therefore aren't those of a project.
    let project = tempfile::tempdir().context("could not create a temporary folder")?;
    for (path, bytes) in &dependencies.files {
        write(&project.path().join(path), bytes)?;
    }
    let work = Work {
        dependencies,
        project: project.path().to_owned(),
        target: InstalledPackages::content(&place, dependencies.manager),
        scratch: scratch.clone(),
        settings,
    };
    let python = match dependencies.manager {
        PackageManager::Pip => Some(pip::install(&work, all).await?),
        PackageManager::Npm => npm::install(&work).await.map(|()| None)?,
        PackageManager::Cargo => cargo::install(&work).await.map(|()| None)?,
        PackageManager::Go => go::install(&work).await.map(|()| None)?,
    };
    fs::remove_dir_all(&scratch).with_context(|| format!("could not remove {}", scratch.display()))?;
    let bytes = checked_size(&place)?;
    make_readable(&place).with_context(|| format!("could not let others read {}", place.display()))?;
    let installed = InstalledPackages { digest: dependencies.digest.clone(), python, bytes };
    let marker = serde_json::to_vec(&installed).context("could not describe the packages")?;
    write(&InstalledPackages::path(&place), &marker)?;
    put(&place, &all.join(dependencies.name()))?;
    unfinished.keep();
    Ok(installed)
}

/// Gives a complete folder its name. One that has the name already goes away.
fn put(place: &Path, name: &Path) -> anyhow::Result<()> {
    let failed = || format!("could not write {}", name.display());
    let before = place.with_extension("before");
    if name.exists() {
        fs::rename(name, &before).with_context(failed)?;
    }
    fs::rename(place, name).with_context(failed)?;
    match fs::remove_dir_all(&before) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            // The next setup removes it.
            tracing::warn!(%error, "Could not remove {}: {error}", before.display());
        }
        _ => {}
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .with_context(|| format!("could not write {}", path.display()))
}

impl Work<'_> {
    /// Runs a client to its end, within the limits of time and size.
    async fn run(&self, command: Command, failure: &str) -> anyhow::Result<()> {
        let manager = self.dependencies.manager;
        let place = self.scratch.parent().unwrap_or(&self.scratch);
        let watch = async {
            loop {
                tokio::time::sleep(SIZE_INTERVAL).await;
                let watched = [place.to_owned(), self.project.clone()];
                let size = tokio::task::spawn_blocking(move || {
                    watched.iter().map(|folder| size(folder)).fold(Size::default(), Size::plus)
                });
                if let Some(problem) = size.await.ok().and_then(Size::problem) {
                    return problem;
                }
            }
        };
        tokio::select! {
            done = tokio::time::timeout(CLIENT_TIMEOUT, run_client(command, failure, manager)) => {
                done.unwrap_or_else(|_| Err(Problem::failure(format!("{failure}: {manager} took longer than 30 minutes")).into()))
            }
            problem = watch => Err(problem.into()),
        }
    }
}

/// Number and size of files.
#[derive(Clone, Copy, Default)]
struct Size {
    bytes: u64,
    files: u64,
}

impl Size {
    const fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, files: self.files + other.files }
    }

    fn problem(self) -> Option<Problem> {
        (self.bytes > BYTES_MAX || self.files > FILES_MAX).then(|| {
            Problem::failure(format!(
                "the packages have more than {} GiB or {FILES_MAX} files",
                BYTES_MAX >> 30
            ))
        })
    }
}

fn checked_size(folder: &Path) -> anyhow::Result<u64> {
    let size = size(folder);
    size.problem().map_or(Ok(size.bytes), |problem| Err(problem.into()))
}

/// Returns number and size of the files in a folder, which may change at the same time.
fn size(folder: &Path) -> Size {
    let mut all = Size::default();
    let Ok(entries) = fs::read_dir(folder) else { return all };
    for entry in entries.flatten() {
        let Ok(metadata) = entry.path().symlink_metadata() else { continue };
        all = match metadata.is_dir() {
            true => all.plus(size(&entry.path())),
            false => all.plus(Size { bytes: metadata.len(), files: 1 }),
        };
    }
    all
}

#[cfg(test)]
mod tests;
