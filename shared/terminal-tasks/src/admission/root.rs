//! Search for the task's folder in an upload.

use crate::harbor;
use crate::refusal::{ContentProblem, Refusal};
use crate::terminal_bench;
use crate::tree::Tree;

/// Maximum number of folders above the task's files: a top folder, or one more in it.
const FOLDERS_MAX: usize = 2;

/// Returns the folder that has the task's configuration; empty for the root.
///
/// Configurations deeper than the topmost one belong to that task.
pub(super) fn find(tree: &Tree) -> Result<String, Refusal> {
    let mut found: Vec<&str> = Vec::new();
    for (path, _) in tree.files() {
        if matches!(path.name(), harbor::TASK_FILE | terminal_bench::TASK_FILE) {
            let folder = path.as_str().rsplit_once('/').map_or("", |(folder, _)| folder);
            if depth(folder) <= FOLDERS_MAX && !found.contains(&folder) {
                found.push(folder);
            }
        }
    }
    let Some(lowest) = found.iter().map(|folder| depth(folder)).min() else {
        return Err(Refusal::whole(ContentProblem::NoTask));
    };
    found.retain(|folder| depth(folder) == lowest);
    match found.as_slice() {
        [folder] => Ok((*folder).to_owned()),
        [first, second, ..] => {
            let (first, second) = ((*first).to_owned(), (*second).to_owned());
            Err(Refusal::whole(ContentProblem::SeveralTasks { first, second }))
        }
        [] => Err(Refusal::whole(ContentProblem::NoTask)),
    }
}

fn depth(folder: &str) -> usize {
    folder.split('/').filter(|part| !part.is_empty()).count()
}
