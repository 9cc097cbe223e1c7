//! `package-lock.json`: packages of npm with their digests.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Dependencies, PackageManager, Place, Unfixed, joined};
use crate::Workspace;

const PACKAGE: &str = "package.json";
const LOCK: &str = "package-lock.json";
/// Fields of `package.json` with packages that `npm ci` installs.
const FIELDS: [&str; 4] = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lock {
    #[serde(default)]
    lockfile_version: u64,
    #[serde(default)]
    packages: BTreeMap<String, Package>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    resolved: Option<String>,
    integrity: Option<String>,
    #[serde(default)]
    link: bool,
}

/// Reads the lock file. Returns `None` if the workspace needs no packages of npm.
pub(super) fn read(
    workspace: &Workspace,
    working_dir: Option<&str>,
) -> Result<Option<Dependencies>, Unfixed> {
    let Some(lock) = Place::find(workspace, working_dir, LOCK) else {
        return without_lock(workspace, working_dir).map(|()| None);
    };
    let read: Lock = serde_json::from_slice(lock.bytes)
        .map_err(|error| lock.unfixed(format!("it can't be read: {error}")))?;
    if !(2..=3).contains(&read.lockfile_version) {
        return Err(lock.unfixed("its `lockfileVersion` isn't 2 or 3; write it with npm 7 or later"));
    }
    let mut count = 0;
    for (path, package) in read.packages.iter().filter(|(path, _)| !path.is_empty()) {
        let leads_out = path.split('/').any(|part| ["", ".", ".."].contains(&part));
        if package.link || leads_out || !path.starts_with("node_modules/") {
            return Err(lock.unfixed(format!(
                "`{path}` is a folder of the project, and only packages of the registry are installed"
            )));
        }
        let is_from_registry = package
            .resolved
            .as_deref()
            .is_none_or(|url| url.starts_with("https://") || url.starts_with("http://"));
        let has_digest = package.integrity.as_deref().is_some_and(|digest| {
            digest.starts_with("sha512-") || digest.starts_with("sha256-") || digest.starts_with("sha384-")
        });
        // npm fetches packages that the lock file calls bundled, too.
        if !(is_from_registry && has_digest) {
            return Err(lock.unfixed(format!("`{path}` has no `integrity` of a package in the registry; write it again with `npm install --package-lock-only`")));
        }
        count += 1;
    }
    if count == 0 {
        return Ok(None);
    }
    let path = joined(lock.folder, PACKAGE);
    let package =
        workspace.get(&path).ok_or_else(|| lock.unfixed(format!("`{path}` is missing beside it")))?;
    let files =
        BTreeMap::from([(PACKAGE.to_owned(), package.bytes.clone()), (LOCK.to_owned(), lock.bytes.to_vec())]);
    Ok(Some(Dependencies::new(PackageManager::Npm, &lock, files, &[&package.bytes, lock.bytes])))
}

/// Checks that a project without a lock file names no packages.
fn without_lock(workspace: &Workspace, working_dir: Option<&str>) -> Result<(), Unfixed> {
    let Some(package) = Place::find(workspace, working_dir, PACKAGE) else { return Ok(()) };
    // A file that npm can't read is part of the task, if anything.
    let read: Map<String, Value> = serde_json::from_slice(package.bytes).unwrap_or_default();
    let names =
        |field: &&str| read.get(*field).and_then(Value::as_object).is_some_and(|names| !names.is_empty());
    match FIELDS.iter().find(|field| names(field)) {
        Some(field) => Err(package.unfixed(format!(
            "it has `{field}`, and there is no `{LOCK}`; write one with `npm install --package-lock-only`"
        ))),
        None => Ok(()),
    }
}
