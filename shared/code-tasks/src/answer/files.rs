//! Files with their whole content.

use super::blocks::without_label;
use super::{ReadError, fences, path};

/// Beginning of a line with the path of a file.
const LABEL: &str = "file:";

/// A file as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WholeFile {
    pub(super) path: String,
    pub(super) lines: Vec<String>,
}

/// Reads all fenced blocks of a reply with a line `File: PATH` before them.
pub(super) fn read(lines: &[&str], first: usize) -> Result<Vec<WholeFile>, ReadError> {
    let mut found: Vec<WholeFile> = Vec::new();
    for fence in fences::find(lines) {
        let before = lines[..fence.opened].iter().rev().map(|line| line.trim()).find(|line| !line.is_empty());
        let label = before.map(|line| line.trim_matches(|c| matches!(c, '*' | '`' | '#' | ' ')));
        let Some(label) = label.filter(|label| is_labeled(label)) else { continue };
        let content = &lines[fence.opened + 1..fence.closed];
        if content.iter().any(|line| line.trim_end() == "<<<<<<< SEARCH") {
            // A search-and-replace block whose file is named in the same way.
            continue;
        }
        if fence.closed == lines.len() {
            return Err(ReadError::line(first + fence.opened, "the content of the file has no end"));
        }
        let path = path::read(without_label(label))?;
        if found.iter().any(|file| file.path == path) {
            return Err(ReadError::line(first + fence.opened, format!("`{path}` is there twice")));
        }
        found.push(WholeFile { path, lines: content.iter().map(|line| (*line).to_owned()).collect() });
    }
    Ok(found)
}

fn is_labeled(line: &str) -> bool {
    line.get(..LABEL.len()).is_some_and(|start| start.eq_ignore_ascii_case(LABEL))
}
