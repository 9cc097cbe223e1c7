//! Files with their whole content.

use super::blocks::{SEARCH, without_label};
use super::fences::{self, Fence};
use super::{ReadError, diff, path};

/// Beginning of a line with the path of a file.
const LABEL: &str = "file:";

/// A file as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WholeFile {
    pub(super) path: String,
    pub(super) lines: Vec<String>,
}

/// Reads all fenced blocks of a reply with a line `File: PATH` before them.
pub(super) fn read(lines: &[&str]) -> Result<Vec<WholeFile>, ReadError> {
    let mut found: Vec<WholeFile> = Vec::new();
    let fences = fences::find(lines);
    for fence in &fences {
        let Some(label) = label(lines, fence) else { continue };
        let content = &lines[fence.opened + 1..fence.closed];
        if fence.closed == lines.len() {
            return Err(ReadError::line(fence.opened, "the content of the file has no end"));
        }
        // A block within the content ends it too early, and the file would be cut off.
        if let Some(at) = content.iter().position(|line| fence.opening.is_reopened_by(line)) {
            let problem = "a block begins within the content of a file; put longer marks around the content";
            return Err(ReadError::line(fence.opened + 1 + at, problem));
        }
        let path = path::read(label)?;
        if found.iter().any(|file| file.path == path) {
            return Err(ReadError::line(fence.opened, format!("`{path}` is there twice")));
        }
        found.push(WholeFile { path, lines: content.iter().map(|line| (*line).to_owned()).collect() });
    }
    match fences.last().filter(|fence| !found.is_empty() && fence.closed == lines.len()) {
        Some(open) => {
            Err(ReadError::line(open.opened, "the block has no end, so that a file before it may be cut off"))
        }
        None => Ok(found),
    }
}

/// Returns the path before a block that is the content of a file.
pub(super) fn label<'a>(lines: &[&'a str], fence: &Fence<'_>) -> Option<&'a str> {
    let path = any_label(lines, fence)?;
    let content = &lines[fence.opened + 1..fence.closed];
    // Search-and-replace blocks and patches may have their file named in the same way.
    let is_tagged =
        diff::is_tagged(fence.opening.info) && !path.ends_with(".diff") && !path.ends_with(".patch");
    let is_change =
        is_tagged || diff::is_of(content, path) || content.iter().any(|line| line.trim_end() == SEARCH);
    (!is_change).then_some(path)
}

/// Returns true for a block with a patch of the file that the line before it names, whatever the tag of the block.
pub(super) fn is_patch(lines: &[&str], fence: &Fence<'_>) -> bool {
    let content = &lines[fence.opened + 1..fence.closed];
    any_label(lines, fence).is_some_and(|path| diff::is_of(content, path))
}

fn any_label<'a>(lines: &[&'a str], fence: &Fence<'_>) -> Option<&'a str> {
    let before = lines[..fence.opened].iter().rev().find(|line| !line.trim().is_empty())?;
    is_labeled(before).then(|| without_label(plain(before)))
}

/// Returns true for a line with the label of a file.
pub(super) fn is_labeled(line: &str) -> bool {
    plain(line).get(..LABEL.len()).is_some_and(|start| start.eq_ignore_ascii_case(LABEL))
}

fn plain(line: &str) -> &str {
    line.trim().trim_matches(|c| matches!(c, '*' | '`' | '#' | ' '))
}
