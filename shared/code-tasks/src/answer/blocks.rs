//! Search-and-replace blocks.

use super::{ReadError, path};

pub(super) const SEARCH: &str = "<<<<<<< SEARCH";
const MIDDLE: &str = "=======";
const REPLACE: &str = ">>>>>>> REPLACE";

/// A text of a file and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) path: String,
    /// Lines to find; empty for a new file.
    pub(super) search: Vec<String>,
    pub(super) replace: Vec<String>,
    /// Number of the line that opens the block, from 1.
    pub(super) line: usize,
}

/// Reads all blocks of a reply. The path is on the last line before a block that isn't a fence; blocks that follow without one are
/// about the same file.
pub(super) fn read(lines: &[&str]) -> Result<Vec<Replacement>, ReadError> {
    let mut found: Vec<Replacement> = Vec::new();
    let mut at = 0;
    // Index of the line after the block before.
    let mut since = 0;
    let mut strays = Vec::new();
    while at < lines.len() {
        if lines[at].trim_end() != SEARCH {
            strays.extend(is_stray(lines[at]).then_some(at));
            at += 1;
            continue;
        }
        let opened = at;
        let named = lines[since..opened]
            .iter()
            .rev()
            .map(|line| line.trim())
            .find(|line| !line.is_empty() && !is_fence(line));
        let path = match (named, found.last()) {
            (Some(name), _) => path::read(without_label(name))?,
            (None, Some(before)) => before.path.clone(),
            (None, None) => {
                return Err(ReadError::line(
                    opened,
                    "the line before a block must have the path of the file",
                ));
            }
        };
        let end_of = |mark: &str, from: usize, what: &str| {
            let end = (from..lines.len()).find(|next| lines[*next].trim_end() == mark);
            let again = (from..end.unwrap_or(lines.len())).find(|next| lines[*next].trim_end() == SEARCH);
            match (again, end) {
                (Some(again), _) => Err(ReadError::line(again, format!("expected `{mark}`, {what}"))),
                (None, Some(end)) => Ok(end),
                (None, None) => Err(ReadError::line(opened, format!("the block has no `{mark}`, {what}"))),
            }
        };
        let middle = end_of(MIDDLE, opened + 1, "which ends the text to search")?;
        let closed = end_of(REPLACE, middle + 1, "which ends the replacement")?;
        if let Some(again) = (middle + 1..closed).find(|at| lines[*at].trim_end() == MIDDLE) {
            let problem = format!(
                "a second `{MIDDLE}`: which one ends the text to search can't be told; answer with a diff"
            );
            return Err(ReadError::line(again, problem));
        }
        let text = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        found.push(Replacement {
            path,
            search: text(&lines[opened + 1..middle]),
            replace: text(&lines[middle + 1..closed]),
            line: opened + 1,
        });
        at = closed + 1;
        since = at;
    }
    match strays.first().filter(|_| !found.is_empty()) {
        Some(stray) => {
            Err(ReadError::line(*stray, format!("expected `{SEARCH}` or text without such marks")))
        }
        None => Ok(found),
    }
}

/// Returns the index of the line after the block that a line opens. `None` if it opens none, or one without an end.
pub(super) fn end(lines: &[&str], opened: usize) -> Option<usize> {
    let is = |at: usize, mark: &str| lines[at].starts_with(mark) && lines[at].trim_end() == mark;
    let next = is(opened, SEARCH)
        .then(|| (opened + 1..lines.len()).find(|at| is(*at, SEARCH) || is(*at, REPLACE)))
        .flatten();
    next.filter(|next| is(*next, REPLACE)).map(|closed| closed + 1)
}

/// Returns true for a line that looks like the mark of a block, such as one that is indented.
fn is_stray(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("<<<<<<<") || line.starts_with(">>>>>>>")
}

fn is_fence(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("~~~")
}

/// Returns a path without what models put around it: `File:` and marks of Markdown.
pub(super) fn without_label(line: &str) -> &str {
    let line = line.trim_matches(|c| matches!(c, '*' | '`' | '#' | ' '));
    let line = line.strip_prefix("File:").or(line.strip_prefix("file:")).unwrap_or(line);
    line.trim_end_matches(':').trim_matches(|c| matches!(c, '*' | '`' | ' '))
}
