//! `Cargo.lock`: crates with their checksums.

use serde::Deserialize;
use toml::{Table, Value};

use super::{Dependencies, PackageManager, Place, Unfixed, joined};
use crate::Workspace;

const MANIFEST: &str = "Cargo.toml";
const LOCK: &str = "Cargo.lock";
/// Name of the public index in lock files, whatever protocol Cargo uses to read it.
const INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";
const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    package: Vec<Package>,
    #[serde(default)]
    patch: Patch,
}

/// Crates that replace others, and aren't used.
#[derive(Default, Deserialize)]
struct Patch {
    #[serde(default)]
    unused: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    source: Option<String>,
    checksum: Option<String>,
}

/// Reads the lock file. Returns `None` if the workspace needs no crates.
pub(super) fn read(
    workspace: &Workspace,
    working_dir: Option<&str>,
) -> Result<Option<Dependencies>, Unfixed> {
    let Some(lock) = Place::find(workspace, working_dir, LOCK) else {
        return without_lock(workspace).map(|()| None);
    };
    let read: Lock = toml::from_str(lock.text()?)
        .map_err(|error| lock.unfixed(format!("it can't be read: {}", error.message())))?;
    // Cargo fetches these, too, to find out that it doesn't need them.
    if let Some(unused) = read.patch.unused.iter().find(|unused| unused.source.is_some()) {
        return Err(lock.unfixed(format!(
            "`{}` is an unused patch from elsewhere; remove it from `{MANIFEST}` and write the file again",
            unused.name
        )));
    }
    let mut count = 0;
    for package in &read.package {
        let Some(source) = &package.source else { continue };
        if source != INDEX || package.checksum.is_none() {
            return Err(
                lock.unfixed(format!("`{}` isn't a crate of crates.io with a checksum", package.name))
            );
        }
        count += 1;
    }
    if count == 0 {
        return Ok(None);
    }
    let files = workspace.files().iter().filter_map(|(path, file)| {
        let inside =
            if lock.folder.is_empty() { path } else { path.strip_prefix(lock.folder)?.strip_prefix('/')? };
        Some((inside.to_owned(), file.bytes.clone()))
    });
    let files = files.filter(|(path, _)| !configures_cargo(path)).collect();
    Ok(Some(Dependencies::new(PackageManager::Cargo, &lock, files, &[lock.bytes])))
}

/// Returns true for files that name programs which Cargo would run, or another Cargo.
fn configures_cargo(path: &str) -> bool {
    path.split('/').any(|part| [".cargo", "rust-toolchain", "rust-toolchain.toml"].contains(&part))
}

/// Checks that a project without a lock file names no crates but its own.
fn without_lock(workspace: &Workspace) -> Result<(), Unfixed> {
    let manifests = workspace.files().iter().filter(|(path, _)| path.rsplit('/').next() == Some(MANIFEST));
    for (path, file) in manifests {
        // A manifest that Cargo can't read is part of the task, if anything.
        let text = String::from_utf8_lossy(&file.bytes);
        let Ok(manifest) = text.parse::<Table>() else { continue };
        if let Some(name) = foreign_crate(&manifest) {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let why = format!(
                "it needs `{name}`, and there is no `{}`; write one with `cargo generate-lockfile`",
                joined(folder, LOCK)
            );
            return Err(Unfixed { file: path.clone(), why });
        }
    }
    Ok(())
}

/// Returns the name of a crate that isn't in a folder of the project.
fn foreign_crate(manifest: &Table) -> Option<String> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(|all| all.values());
    let owners = targets.chain(manifest.get("workspace")).filter_map(Value::as_table).chain([manifest]);
    owners
        .flat_map(|owner| TABLES.iter().filter_map(|table| owner.get(*table)?.as_table()))
        .flatten()
        .find(|(_, needed)| match needed {
            Value::Table(needed) => {
                !needed.contains_key("path") && needed.get("workspace").and_then(Value::as_bool) != Some(true)
            }
            _ => true,
        })
        .map(|(name, _)| name.clone())
}
