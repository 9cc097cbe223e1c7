//! Files of a task that are copied into containers.

use std::collections::BTreeMap;

use crate::ignore::IgnoreRules;
use crate::model::{Solution, Step};
use crate::path::TaskPath;
use crate::refusal::Refusal;
use crate::tree::Tree;

/// Files to copy: paths in the task by paths relative to the folder in the container.
pub type InputFiles = BTreeMap<String, TaskPath>;

/// Returns the files of `/tests` for a step: those of the task, and over them those of the step.
///
/// # Errors
/// If a `.harborignore` is invalid.
pub fn test_files(tree: &Tree, step: &Step) -> Result<InputFiles, Refusal> {
    let rules = IgnoreRules::read(tree)?;
    let mut files = below(tree, &rules, "tests");
    if let Some(name) = &step.name {
        files.extend(below(tree, &rules, &format!("steps/{name}/tests")));
    }
    // Terminal-Bench 1 has the script beside the folder.
    if let Some(script) = step.verifier.script.as_deref().filter(|script| !script.contains('/')) {
        files.extend(TaskPath::new(script).ok().map(|path| (script.to_owned(), path)));
    }
    Ok(files)
}

/// Returns the files of the solution's folder in the container, for the agent `oracle` only.
///
/// # Errors
/// If a `.harborignore` is invalid.
pub fn solution_files(tree: &Tree, step: &Step) -> Result<InputFiles, Refusal> {
    let Some(Solution::Script { path, .. }) = &step.solution else { return Ok(InputFiles::new()) };
    match path.rsplit_once('/') {
        Some((folder, _)) => Ok(below(tree, &IgnoreRules::read(tree)?, folder)),
        None => Ok(TaskPath::new(path).ok().map(|file| (path.clone(), file)).into_iter().collect()),
    }
}

/// Returns the files that are copied to the working directory before a step. `setup.sh` among them is run.
pub fn workdir_files(tree: &Tree, step: &Step) -> InputFiles {
    let folder = step.name.as_ref().map(|name| format!("steps/{name}/workdir"));
    folder.map(|folder| below(tree, &IgnoreRules::default(), &folder)).unwrap_or_default()
}

fn below(tree: &Tree, rules: &IgnoreRules, folder: &str) -> InputFiles {
    let files = tree.below(folder).filter(|(_, path, _)| !rules.is_excluded(path.as_str()));
    files.map(|(inner, path, _)| (inner.to_owned(), path.clone())).collect()
}
