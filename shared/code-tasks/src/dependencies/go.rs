//! `go.sum`: modules of Go with their digests.

use std::collections::{BTreeMap, BTreeSet};

use super::{Dependencies, PackageManager, Place, Unfixed, joined};
use crate::Workspace;

const MODULE: &str = "go.mod";
const SUMS: &str = "go.sum";

/// Reads `go.mod` and `go.sum`. Returns `None` if the workspace needs no modules, or has them in its folder `vendor`.
pub(super) fn read(
    workspace: &Workspace,
    working_dir: Option<&str>,
) -> Result<Option<Dependencies>, Unfixed> {
    let Some(module) = Place::find(workspace, working_dir, MODULE) else { return Ok(None) };
    let needed = needed(module.text()?).map_err(|why| module.unfixed(why))?;
    if needed.is_empty() || workspace.get(&joined(module.folder, "vendor/modules.txt")).is_some() {
        return Ok(None);
    }
    let path = joined(module.folder, SUMS);
    let sums = workspace.get(&path).map(|file| file.bytes.as_slice()).unwrap_or_default();
    let text = String::from_utf8_lossy(sums);
    let known: BTreeSet<(&str, &str)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (name, version, digest) = (words.next()?, words.next()?, words.next()?);
            digest.starts_with("h1:").then_some((name, version.trim_end_matches("/go.mod")))
        })
        .collect();
    if let Some((name, version)) = needed.iter().find(|(name, version)| !known.contains(&(name, version))) {
        return Err(module
            .unfixed(format!("`{path}` has no digest of `{name} {version}`; write it with `go mod tidy`")));
    }
    let files =
        BTreeMap::from([(MODULE.to_owned(), module.bytes.to_vec()), (SUMS.to_owned(), sums.to_vec())]);
    Ok(Some(Dependencies::new(PackageManager::Go, &module, files, &[module.bytes, sums])))
}

/// Place of a module that replaces another one.
enum Replacement<'a> {
    /// Folder of the project.
    Folder(&'a str),
    /// Module with its version.
    Module(&'a str, &'a str),
}

/// Returns the modules that `go.mod` needs from elsewhere, with their versions: those it requires, or what it replaces them by.
///
/// # Errors
/// Describes a replacement outside of the project.
fn needed(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let (mut required, mut replaced) = (Vec::new(), BTreeMap::new());
    let mut block = "";
    for line in text.lines() {
        let line = line.split_once("//").map_or(line, |(line, _)| line).trim();
        if let Some(directive) = line.strip_suffix('(') {
            block = directive.trim();
            continue;
        }
        if line == ")" {
            block = "";
            continue;
        }
        let mut words = line.split_whitespace().map(unquoted);
        let directive = if block.is_empty() { words.next().unwrap_or_default() } else { block };
        match (directive, words.collect::<Vec<_>>().as_slice()) {
            ("require", [name, version]) => required.push((*name, *version)),
            ("replace", [name, "=>", rest @ ..]) => {
                replaced.extend(replacement(rest).map(|by| ((*name, None), by)));
            }
            ("replace", [name, version, "=>", rest @ ..]) => {
                replaced.extend(replacement(rest).map(|by| ((*name, Some(*version)), by)));
            }
            _ => {}
        }
    }
    let mut needed = Vec::new();
    for (name, version) in required {
        // A replacement of this version counts before one of all versions.
        match replaced.get(&(name, Some(version))).or_else(|| replaced.get(&(name, None))) {
            None => needed.push((name, version)),
            Some(Replacement::Module(name, version)) => needed.push((name, version)),
            Some(Replacement::Folder(folder)) if folder.starts_with('/') => {
                return Err(format!("it replaces `{name}` by `{folder}`, which is no folder of the project"));
            }
            Some(Replacement::Folder(_)) => {}
        }
    }
    Ok(needed)
}

/// Reads what stands behind `=>`. Only folders have no version.
fn replacement<'a>(words: &[&'a str]) -> Option<Replacement<'a>> {
    match words {
        [folder] => Some(Replacement::Folder(folder)),
        [name, version] => Some(Replacement::Module(name, version)),
        _ => None,
    }
}

/// Removes the quotation marks that names may have.
fn unquoted(word: &str) -> &str {
    word.trim_matches(['"', '`'])
}
