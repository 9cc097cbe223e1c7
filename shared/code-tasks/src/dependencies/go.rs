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
    let needed = required(module.text()?);
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

/// Returns the modules that `go.mod` requires, with their versions, but for those it replaces by folders.
fn required(text: &str) -> Vec<(&str, &str)> {
    let mut required = Vec::new();
    let mut replaced = BTreeSet::new();
    let mut block = "";
    for line in text.lines() {
        let line = line.split_once("//").map_or(line, |(line, _)| line).trim();
        let (directive, rest) = match block {
            "" => line.split_once(char::is_whitespace).unwrap_or((line, "")),
            block => (block, line),
        };
        if rest.trim() == "(" {
            block = directive;
            continue;
        }
        if line == ")" {
            block = "";
            continue;
        }
        let mut words = rest.split_whitespace();
        match (directive, words.next(), words.next()) {
            ("require", Some(name), Some(version)) => required.push((name, version)),
            ("replace", Some(name), _)
                if rest.split_once("=>").is_some_and(|(_, to)| to.trim().starts_with('.')) =>
            {
                replaced.insert(name);
            }
            _ => {}
        }
    }
    required.retain(|(name, _)| !replaced.contains(name));
    required
}
