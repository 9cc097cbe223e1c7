//! Application of answers to a workspace: as a whole and exactly, or not at all.

use std::collections::BTreeSet;

use super::blocks::Replacement;
use super::diff::{FilePatch, Hunk};
use super::files::WholeFile;
use crate::Workspace;

/// A workspace after an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The files.
    pub workspace: Workspace,
    /// Paths of the files that are new, removed or different now, in alphabetical order.
    pub changed: BTreeSet<String>,
    /// Number of hunks that fitted at another line than their header says. All of their lines were in the file.
    pub moved_hunks: usize,
}

/// Reason why an answer doesn't fit a workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// A file doesn't exist.
    #[error("there is no file `{path}` in the workspace")]
    NoFile {
        /// Path of the file.
        path: String,
    },
    /// A file that the answer calls new exists.
    #[error("`{path}` exists already, and the answer calls it a new file")]
    Exists {
        /// Path of the file.
        path: String,
    },
    /// A file is in the place of a folder, or the reverse.
    #[error("`{path}` can't be a file: {why}")]
    Place {
        /// Path of the file.
        path: String,
        /// Reason.
        why: &'static str,
    },
    /// A file is too long to be searched many times.
    #[error("`{path}` has more than {LINES_MAX} lines, so only a whole file can replace it")]
    TooLong {
        /// Path of the file.
        path: String,
    },
    /// A file isn't text.
    #[error("`{path}` is not a text, so an answer can't change it")]
    NotText {
        /// Path of the file.
        path: String,
    },
    /// Lines that must be in a file aren't.
    #[error("`{path}` doesn't have the lines of {what}; the first of them is `{line}`")]
    Missing {
        /// Path of the file.
        path: String,
        /// What has the lines, such as `hunk 2`.
        what: String,
        /// First line, shortened.
        line: String,
    },
    /// Lines are in a file at several places.
    #[error("`{path}` has the lines of {what} at {places} places")]
    Ambiguous {
        /// Path of the file.
        path: String,
        /// What has the lines.
        what: String,
        /// Number of places.
        places: usize,
    },
    /// A hunk doesn't say where its lines belong.
    #[error(
        "hunk {hunk} of `{path}` has no lines of the file around it, and its header doesn't say where it belongs"
    )]
    NoPlace {
        /// Path of the file.
        path: String,
        /// Number of the hunk, from 1.
        hunk: usize,
    },
    /// The answer changes nothing.
    #[error("the answer leaves every file as it is")]
    Nothing,
}

/// Maximum number of lines of a file that hunks or blocks change.
const LINES_MAX: usize = 100_000;
/// Maximum length of a line that a message shows, in characters.
const LINE_CHARS_MAX: usize = 80;

/// A text, line by line.
struct Text {
    lines: Vec<String>,
    /// True if lines end with a carriage return and a line feed.
    has_returns: bool,
    /// True if the last line ends with a line break.
    is_closed: bool,
}

impl Text {
    fn read(workspace: &Workspace, path: &str) -> Result<Self, ApplyError> {
        let file = workspace.get(path).ok_or_else(|| ApplyError::NoFile { path: path.to_owned() })?;
        let not_text = || ApplyError::NotText { path: path.to_owned() };
        let text = std::str::from_utf8(&file.bytes).map_err(|_| not_text())?;
        if text.contains('\0') {
            return Err(not_text());
        }
        let breaks = text.matches('\n').count();
        if breaks > LINES_MAX {
            return Err(ApplyError::TooLong { path: path.to_owned() });
        }
        let has_returns = breaks > 0 && text.matches("\r\n").count() == breaks;
        let lines = text
            .split('\n')
            .map(|line| if has_returns { line.strip_suffix('\r').unwrap_or(line) } else { line });
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        let is_closed = lines.last().is_some_and(String::is_empty);
        if is_closed {
            lines.pop();
        }
        Ok(Self { lines, has_returns, is_closed })
    }

    fn write(self, workspace: &mut Workspace, path: &str) {
        let line_break = if self.has_returns { "\r\n" } else { "\n" };
        let mut text = self.lines.join(line_break);
        if self.is_closed && !self.lines.is_empty() {
            text.push_str(line_break);
        }
        workspace.write(path, text);
    }

    /// Returns the places at which lines are, in a time that is linear in the lines of both (Knuth, Morris and Pratt 1977).
    fn places(&self, wanted: &[String]) -> Vec<usize> {
        if wanted.is_empty() || wanted.len() > self.lines.len() {
            return Vec::new();
        }
        // Length of the longest proper beginning of `wanted` that ends at each of its lines.
        let mut borders = vec![0; wanted.len()];
        let mut matched = 0;
        for at in 1..wanted.len() {
            while matched > 0 && wanted[at] != wanted[matched] {
                matched = borders[matched - 1];
            }
            matched += usize::from(wanted[at] == wanted[matched]);
            borders[at] = matched;
        }
        let (mut places, mut matched) = (Vec::new(), 0);
        for (at, line) in self.lines.iter().enumerate() {
            while matched > 0 && *line != wanted[matched] {
                matched = borders[matched - 1];
            }
            matched += usize::from(*line == wanted[matched]);
            if matched == wanted.len() {
                places.push(at + 1 - matched);
                matched = borders[matched - 1];
            }
        }
        places
    }
}

/// Removes a carriage return at the end of each line of an answer to a file with such line breaks.
fn owned(lines: &[&str], has_returns: bool) -> Vec<String> {
    let plain =
        |line: &&str| if has_returns { line.strip_suffix('\r').unwrap_or(line) } else { line }.to_owned();
    lines.iter().map(plain).collect()
}

fn shown(lines: &[String]) -> String {
    let first = lines.iter().find(|line| !line.trim().is_empty()).or(lines.first());
    first.map(|line| line.trim().chars().take(LINE_CHARS_MAX).collect()).unwrap_or_default()
}

fn check_place(workspace: &Workspace, path: &str) -> Result<(), ApplyError> {
    let why = if workspace.has_folder(path) {
        "it is a folder"
    } else if workspace.leads_through_file(path) {
        "a part of its path is a file"
    } else {
        return Ok(());
    };
    Err(ApplyError::Place { path: path.to_owned(), why })
}

fn finish(before: &Workspace, workspace: Workspace, moved_hunks: usize) -> Result<Applied, ApplyError> {
    let (old, new) = (before.files(), workspace.files());
    let differs = |path: &&String| old.get(*path) != new.get(*path);
    let changed: BTreeSet<String> = old.keys().chain(new.keys()).filter(differs).cloned().collect();
    match changed.is_empty() {
        true => Err(ApplyError::Nothing),
        false => Ok(Applied { workspace, changed, moved_hunks }),
    }
}

/// Applies patches one after the other.
pub(super) fn diff(patches: &[FilePatch], before: &Workspace) -> Result<Applied, ApplyError> {
    let (mut workspace, mut moved_hunks) = (before.clone(), 0);
    for patch in patches {
        moved_hunks += patch_file(patch, &mut workspace)?;
    }
    finish(before, workspace, moved_hunks)
}

/// Applies the changes of one file. Returns the number of moved hunks.
fn patch_file(patch: &FilePatch, workspace: &mut Workspace) -> Result<usize, ApplyError> {
    let (old, new) = match (&patch.old, &patch.new) {
        (None, Some(new)) => {
            if workspace.get(new).is_some() {
                return Err(ApplyError::Exists { path: new.clone() });
            }
            check_place(workspace, new)?;
            workspace.write(new, String::new());
            (new, Some(new))
        }
        (Some(old), new) => (old, new.as_ref()),
        (None, None) => return Ok(0),
    };
    let mut text = Text::read(workspace, old)?;
    text.is_closed |= text.lines.is_empty();
    let moved = patch_text(patch, old, &mut text)?;
    match new {
        None if !text.lines.is_empty() => {
            let what = "the removal, which leaves lines".to_owned();
            Err(ApplyError::Missing { path: old.clone(), what, line: shown(&text.lines) })
        }
        None => {
            workspace.remove(old);
            Ok(moved)
        }
        Some(new) => {
            if new != old {
                let file = workspace.remove(old);
                if workspace.get(new).is_some() {
                    return Err(ApplyError::Exists { path: new.clone() });
                }
                check_place(workspace, new)?;
                if let Some(file) = file {
                    workspace.insert(new, file);
                }
            }
            text.write(workspace, new);
            Ok(moved)
        }
    }
}

fn patch_text(patch: &FilePatch, path: &str, text: &mut Text) -> Result<usize, ApplyError> {
    // A removal without hunks removes all.
    if patch.new.is_none() && patch.hunks.is_empty() {
        text.lines.clear();
    }
    // Lines that earlier hunks added, minus those that they removed; and the first line that later hunks may change.
    let (mut growth, mut from, mut moved) = (0_isize, 0, 0);
    for (number, hunk) in patch.hunks.iter().enumerate() {
        let (old, new) =
            (owned(&hunk.old_lines(), text.has_returns), owned(&hunk.new_lines(), text.has_returns));
        let expected = hunk.start.map(|start| start.saturating_add_signed(growth));
        let at = place(hunk, (path, number + 1), text, &old, expected, from)?;
        moved += usize::from(expected.is_some_and(|expected| expected != at));
        text.lines.splice(at..at + old.len(), new.iter().cloned());
        growth += isize::try_from(new.len()).unwrap_or(0) - isize::try_from(old.len()).unwrap_or(0);
        from = at + new.len();
        let is_last = from == text.lines.len();
        if is_last && (hunk.old_ends_open || hunk.new_ends_open) {
            text.is_closed = !hunk.new_ends_open;
        }
    }
    Ok(moved)
}

/// Returns the line at which a hunk belongs.
fn place(
    hunk: &Hunk,
    (path, number): (&str, usize),
    text: &Text,
    old: &[String],
    expected: Option<usize>,
    from: usize,
) -> Result<usize, ApplyError> {
    let path = || path.to_owned();
    if old.is_empty() {
        // Only an empty file has no line that could be around it.
        return match expected {
            _ if text.lines.is_empty() => Ok(0),
            Some(at) if at >= from && at <= text.lines.len() && hunk.start.is_some() => Ok(at),
            _ => Err(ApplyError::NoPlace { path: path(), hunk: number }),
        };
    }
    let what = || format!("hunk {number}");
    let places: Vec<usize> = text.places(old).into_iter().filter(|at| *at >= from).collect();
    match (places.as_slice(), expected) {
        ([], _) => Err(ApplyError::Missing { path: path(), what: what(), line: shown(old) }),
        ([one], _) => Ok(*one),
        (several, Some(expected)) => {
            let distance = |at: &usize| at.abs_diff(expected);
            let nearest = several.iter().copied().min_by_key(distance).unwrap_or_default();
            let ties = several.iter().filter(|at| distance(at) == distance(&nearest)).count();
            match ties {
                1 => Ok(nearest),
                _ => Err(ApplyError::Ambiguous { path: path(), what: what(), places: several.len() }),
            }
        }
        (several, None) => Err(ApplyError::Ambiguous { path: path(), what: what(), places: several.len() }),
    }
}

/// Applies search-and-replace blocks one after the other.
pub(super) fn blocks(replacements: &[Replacement], before: &Workspace) -> Result<Applied, ApplyError> {
    let mut workspace = before.clone();
    for Replacement { path, search, replace, line } in replacements {
        if search.is_empty() {
            if workspace.get(path).is_some_and(|file| !file.bytes.is_empty()) {
                return Err(ApplyError::Exists { path: path.clone() });
            }
            check_place(&workspace, path)?;
            Text { lines: replace.clone(), has_returns: false, is_closed: true }.write(&mut workspace, path);
            continue;
        }
        let mut text = Text::read(&workspace, path)?;
        let lines = |lines: &[String]| -> Vec<String> {
            owned(&lines.iter().map(String::as_str).collect::<Vec<_>>(), text.has_returns)
        };
        let (search, replace) = (lines(search), lines(replace));
        let what = || format!("the block in line {line} of the reply");
        let at = match text.places(&search).as_slice() {
            [] => return Err(ApplyError::Missing { path: path.clone(), what: what(), line: shown(&search) }),
            [one] => *one,
            several => {
                return Err(ApplyError::Ambiguous {
                    path: path.clone(),
                    what: what(),
                    places: several.len(),
                });
            }
        };
        text.lines.splice(at..at + search.len(), replace);
        text.write(&mut workspace, path);
    }
    finish(before, workspace, 0)
}

/// Writes whole files.
pub(super) fn files(files: &[WholeFile], before: &Workspace) -> Result<Applied, ApplyError> {
    let mut workspace = before.clone();
    for WholeFile { path, lines } in files {
        check_place(&workspace, path)?;
        // Line breaks stay those of the file.
        let has_returns = match workspace.get(path) {
            Some(_) => Text::read(&workspace, path)?.has_returns,
            None => false,
        };
        let lines = owned(&lines.iter().map(String::as_str).collect::<Vec<_>>(), has_returns);
        Text { lines, has_returns, is_closed: true }.write(&mut workspace, path);
    }
    finish(before, workspace, 0)
}
