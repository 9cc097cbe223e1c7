//! Unified diffs.
//!
//! Models count lines wrongly, so a hunk ends where its text ends, whatever its header says; where it belongs is told by its
//! lines, which must be in the file exactly. Headers of git are understood, those for binary files are refused. A patch that
//! may be cut off is refused: one in a block without an end, or one whose last hunk is too short and ends with the reply.

use std::collections::HashSet;

use super::{PARTS_MAX, ReadError, fences, files, path};

/// Name of no file in a header.
const NO_FILE: &str = "/dev/null";

/// Changes of one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FilePatch {
    /// Path before the change; `None` for a new file.
    pub(super) old: Option<String>,
    /// Path after the change; `None` for a removed file.
    pub(super) new: Option<String>,
    pub(super) hunks: Vec<Hunk>,
}

impl FilePatch {
    /// Returns true if the last hunk has fewer lines than its header says.
    fn is_short(&self) -> bool {
        self.hunks.last().is_some_and(|hunk| hunk.is_short)
    }

    /// Returns the paths that the patch changes.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let renamed = self.new.as_deref().filter(|new| self.old.as_deref() != Some(*new));
        self.old.as_deref().into_iter().chain(renamed)
    }
}

/// Neighboring lines of a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Hunk {
    /// Index of its first line in the old file, from 0, if the header says it.
    pub(super) start: Option<usize>,
    pub(super) lines: Vec<Line>,
    /// True if it has fewer lines than its header says.
    pub(super) is_short: bool,
    /// True if the last line of the old file is said to have no line break.
    pub(super) old_ends_open: bool,
    /// The same of the new file.
    pub(super) new_ends_open: bool,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Line {
    Context(String),
    Removed(String),
    Added(String),
}

impl Hunk {
    /// Returns the lines that must be in the old file.
    pub(super) fn old_lines(&self) -> Vec<&str> {
        self.lines.iter().filter(|line| !matches!(line, Line::Added(_))).map(Line::text).collect()
    }

    /// Returns the lines that take their place.
    pub(super) fn new_lines(&self) -> Vec<&str> {
        self.lines.iter().filter(|line| !matches!(line, Line::Removed(_))).map(Line::text).collect()
    }
}

impl Line {
    fn text(&self) -> &str {
        match self {
            Self::Context(text) | Self::Removed(text) | Self::Added(text) => text,
        }
    }
}

/// Reads the patches of a reply, in its order: those outside of blocks, in blocks tagged `diff` or `patch`, in blocks without a tag,
/// and in those after the name of the file. Blocks with another tag count in a reply without such a patch only. The content of a
/// whole file isn't read, and a patch that the reply repeats counts once.
pub(super) fn read(lines: &[&str]) -> Result<Vec<FilePatch>, ReadError> {
    let is_patch = |fence: &fences::Fence<'_>| is_tagged(fence.opening.info) || files::is_patch(lines, fence);
    let has_patch = fences::find(lines).iter().any(is_patch);
    let mut patches = Vec::new();
    let mut at = 0;
    let mut opened = fences::next(lines, at);
    while at < lines.len() {
        if patches.len() > PARTS_MAX {
            return Err(ReadError::TooManyParts);
        }
        if opened.is_some_and(|opened| opened < at) {
            opened = fences::next(lines, at);
        }
        if let Some(start) = (at..opened.unwrap_or(lines.len())).find(|at| begins(lines, *at)) {
            // Lines of its context may look like a block.
            at = read_block(lines, start, true, &mut patches)?;
            continue;
        }
        let Some(fence) = opened.and_then(|opened| fences::at(lines, opened)) else { break };
        let start = match is_patch(&fence) {
            _ if files::label(lines, &fence).is_some() => None,
            true => Some(fence.opened + 1),
            false if has_patch && !fence.opening.info.is_empty() => None,
            false => (fence.opened + 1..fence.closed).find(|at| begins(&lines[..fence.closed], *at)),
        };
        if let Some(start) = start {
            check_end(lines, &fence)?;
            read_block(&lines[..fence.closed], start, false, &mut patches)?;
        }
        at = fence.closed + 1;
    }
    let mut seen = HashSet::new();
    patches.retain(|patch: &FilePatch| seen.insert(patch.clone()));
    Ok(patches)
}

/// Returns true if a text begins as a patch of a file.
pub(super) fn is_of(lines: &[&str], file: &str) -> bool {
    let is_text = |line: &&str| !line.trim().is_empty();
    let Some(start) = lines.iter().position(is_text).filter(|start| begins(lines, *start)) else {
        return false;
    };
    let Ok(file) = path::read(file) else { return false };
    let is_file = |path: Option<&str>| path == Some(file.as_str());
    if let Some(names) = lines[start].strip_prefix("diff --git ") {
        let new = names.rsplit_once(" b/").and_then(|(_, new)| path::read(new).ok());
        return is_file(new.as_deref());
    }
    // Without a hunk, it's a text with such lines.
    let has_hunk =
        lines[start + 2..].iter().find(|line| is_text(line)).is_some_and(|line| line.starts_with("@@"));
    let (old, new) = (name(lines[start]), name(lines[start + 1]));
    has_hunk && paths(old, new).is_ok_and(|(old, new)| is_file(old.as_deref()) || is_file(new.as_deref()))
}

/// Returns the index of the line after the hunk that a line begins.
pub(super) fn hunk_end(lines: &[&str], start: usize) -> Option<usize> {
    lines[start].starts_with("@@").then(|| read_hunk(lines, start, &mut Vec::new()))
}

/// Returns true for the info of a block that has a patch.
pub(super) fn is_tagged(info: &str) -> bool {
    matches!(info.split_whitespace().next(), Some("diff" | "patch" | "udiff"))
}

/// Refuses a block that nothing closes.
fn check_end(lines: &[&str], fence: &fences::Fence<'_>) -> Result<(), ReadError> {
    match fence.closed == lines.len() {
        true => Err(ReadError::line(fence.opened, "the block with the patch has no end")),
        false => Ok(()),
    }
}

/// Returns true if a patch begins at a line.
pub(super) fn begins(lines: &[&str], at: usize) -> bool {
    lines[at].starts_with("diff --git ")
        || (lines[at].starts_with("--- ") && lines.get(at + 1).is_some_and(|next| next.starts_with("+++ ")))
}

/// Headers of git that say nothing about the content.
const IGNORED: [&str; 7] = [
    "index ",
    "old mode ",
    "new mode ",
    "new file mode ",
    "deleted file mode ",
    "similarity index ",
    "dissimilarity index ",
];

/// Ends of git's headers for links and submodules.
const NO_FILES: [&str; 2] = [" 120000", " 160000"];

/// Reads the patches of a block from a line on. Returns the index of the line after them: outside of blocks, other text may follow.
fn read_block(
    lines: &[&str],
    start: usize,
    is_bare: bool,
    patches: &mut Vec<FilePatch>,
) -> Result<usize, ReadError> {
    let mut at = start;
    let before = patches.len();
    let mut header = GitHeader::default();
    while at < lines.len() {
        let line = lines[at];
        if let Some(names) = line.strip_prefix("diff --git ") {
            header.finish(patches);
            header = GitHeader::of(names)?;
            at += 1;
        } else if line.starts_with("Binary files ") || line == "GIT binary patch" {
            return Err(ReadError::line(at, "a patch can't change a binary file"));
        } else if let Some(from) = line.strip_prefix("rename from ") {
            header.renamed_from = Some(path::read(from)?);
            at += 1;
        } else if let Some(to) = line.strip_prefix("rename to ") {
            header.renamed_to = Some(path::read(to)?);
            at += 1;
        } else if line.starts_with("copy from ") || line.starts_with("copy to ") {
            return Err(ReadError::line(at, "a patch can't copy a file; write it as a new one"));
        } else if IGNORED.iter().any(|known| line.starts_with(known)) {
            if NO_FILES.iter().any(|mode| line.ends_with(mode)) {
                return Err(ReadError::line(at, "a patch can't make a link or a submodule"));
            }
            header.is_removed |= line.starts_with("deleted file mode ");
            header.is_new |= line.starts_with("new file mode ");
            at += 1;
        } else if begins(lines, at) {
            at = read_file(lines, at, &mut header, patches)?;
            if is_bare && at == lines.len() && patches.last().is_some_and(FilePatch::is_short) {
                let problem = "the last hunk has fewer lines than its header says; it may be cut off";
                return Err(ReadError::line(at - 1, problem));
            }
        } else if line.trim().is_empty() {
            at += 1;
        } else if is_bare && (patches.len() > before || header.is_complete()) {
            break;
        } else {
            let problem = "expected `--- PATH` and `+++ PATH`, the header of a file's changes";
            return Err(ReadError::line(at, problem));
        }
    }
    header.finish(patches);
    Ok(at)
}

/// What the lines of git before `---` say.
#[derive(Debug, Default)]
struct GitHeader {
    renamed_from: Option<String>,
    renamed_to: Option<String>,
    /// Path on both sides, if they are equal.
    path: Option<String>,
    is_new: bool,
    is_removed: bool,
}

impl GitHeader {
    fn of(names: &str) -> Result<Self, ReadError> {
        // `a/x y b/x y`: the two names are equal except for a rename, which has lines of its own.
        let half = names.len() / 2;
        let both = names.is_char_boundary(half).then(|| names.split_at(half));
        let same = both.and_then(|(old, new)| {
            let (old, new) = (old.strip_prefix("a/")?, new.strip_prefix(" b/")?);
            (old == new).then_some(old)
        });
        Ok(Self { path: same.map(path::read).transpose()?, ..Self::default() })
    }

    /// Returns true if the lines alone are a change.
    const fn is_complete(&self) -> bool {
        let is_renamed = self.renamed_from.is_some() && self.renamed_to.is_some();
        is_renamed || (self.path.is_some() && (self.is_new || self.is_removed))
    }

    /// Adds a change that has no hunks: a rename, an empty new file, or a removal.
    fn finish(&mut self, patches: &mut Vec<FilePatch>) {
        let Self { renamed_from, renamed_to, path, is_new, is_removed } = std::mem::take(self);
        let (old, new) = match (renamed_from, renamed_to, path) {
            (Some(from), Some(to), _) => (Some(from), Some(to)),
            (_, _, Some(path)) if is_new => (None, Some(path)),
            (_, _, Some(path)) if is_removed => (Some(path), None),
            _ => return,
        };
        patches.push(FilePatch { old, new, hunks: Vec::new() });
    }
}

/// Reads the changes of the file whose header begins at a line. Returns the index of the line after them.
fn read_file(
    lines: &[&str],
    start: usize,
    header: &mut GitHeader,
    patches: &mut Vec<FilePatch>,
) -> Result<usize, ReadError> {
    let (old, new) = (name(lines[start]), name(lines[start + 1]));
    let git = std::mem::take(header);
    let (old, new) = match (git.renamed_from, git.renamed_to) {
        (Some(from), Some(to)) => (Some(from), Some(to)),
        _ => paths(old, new)?,
    };
    if old.is_none() && new.is_none() {
        return Err(ReadError::line(start, "both sides are `/dev/null`"));
    }
    let mut patch = FilePatch { old, new, hunks: Vec::new() };
    let mut at = start + 2;
    while at < lines.len() {
        if lines[at].starts_with("@@") {
            at = read_hunk(lines, at, &mut patch.hunks);
        } else if lines[at].trim().is_empty() && lines.get(at + 1).is_some_and(|next| next.starts_with("@@"))
        {
            at += 1;
        } else {
            break;
        }
    }
    if patch.hunks.is_empty() && patch.old.is_some() && patch.new.is_some() && patch.old == patch.new {
        return Err(ReadError::line(at, "expected `@@`, the header of a hunk"));
    }
    patches.push(patch);
    Ok(at)
}

/// Returns the path in a line `--- PATH` or `+++ PATH`.
fn name(line: &str) -> &str {
    line.get(4..).and_then(|rest| rest.split('\t').next()).unwrap_or_default().trim()
}

/// Returns old and new path of a file header. `a/` and `b/` in front are git's if both sides have them.
fn paths(old: &str, new: &str) -> Result<(Option<String>, Option<String>), ReadError> {
    let is_git = |text: &str, letter: &str| text == NO_FILE || text.starts_with(letter);
    let is_both = is_git(old, "a/") && is_git(new, "b/");
    let side = |text: &str| match text {
        NO_FILE => Ok(None),
        text if is_both => path::read(&text[2..]).map(Some),
        text => path::read(text).map(Some),
    };
    Ok((side(old)?, side(new)?))
}

/// Reads a hunk from its header on. Returns the index of the line after it.
fn read_hunk(lines: &[&str], start: usize, hunks: &mut Vec<Hunk>) -> usize {
    let header = Ranges::of(lines[start]);
    let mut counted = Counts::default();
    let mut hunk = Hunk {
        start: header.map(|ranges| ranges.old_start),
        lines: Vec::new(),
        is_short: false,
        old_ends_open: false,
        new_ends_open: false,
    };
    let mut at = start + 1;
    while at < lines.len() {
        let line = lines[at];
        // Where the counts are right, the next file's header can't be taken for a removed line.
        let is_complete = header.is_some_and(|ranges| ranges.counts == counted);
        let is_inside = header.is_some_and(|ranges| ranges.counts.has_more_than(counted));
        if line.starts_with("@@") || line.starts_with("diff --git ") || (begins(lines, at) && !is_inside) {
            break;
        }
        if line.starts_with('\\') {
            match hunk.lines.last() {
                Some(Line::Removed(_)) => hunk.old_ends_open = true,
                Some(Line::Added(_)) => hunk.new_ends_open = true,
                Some(Line::Context(_)) => (hunk.old_ends_open, hunk.new_ends_open) = (true, true),
                None => {}
            }
            at += 1;
            continue;
        }
        let parsed = match line.chars().next() {
            Some(' ') => Line::Context(line[1..].to_owned()),
            Some('-') => Line::Removed(line[1..].to_owned()),
            Some('+') => Line::Added(line[1..].to_owned()),
            // Editors remove the space of an empty context line.
            None => Line::Context(String::new()),
            Some(_) => break,
        };
        if line.is_empty() && is_complete {
            break;
        }
        counted.add(&parsed);
        hunk.lines.push(parsed);
        at += 1;
    }
    // Empty lines after a hunk whose counts are wrong belong to the text around it.
    if header.is_none_or(|ranges| ranges.counts != counted) {
        while at > start + 1
            && lines[at - 1].is_empty()
            && hunk.lines.last() == Some(&Line::Context(String::new()))
        {
            hunk.lines.pop();
            at -= 1;
        }
    }
    hunk.is_short = header.is_some_and(|ranges| counted.is_less_than(ranges.counts));
    hunks.push(hunk);
    at
}

/// Numbers of lines of a hunk in the old and the new file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    old: usize,
    new: usize,
}

impl Counts {
    fn add(&mut self, line: &Line) {
        self.old += usize::from(!matches!(line, Line::Added(_)));
        self.new += usize::from(!matches!(line, Line::Removed(_)));
    }

    /// Returns true if lines are missing on one of the sides.
    const fn is_less_than(self, other: Self) -> bool {
        self.old < other.old || self.new < other.new
    }

    /// Returns true if a removed line may follow.
    const fn has_more_than(self, other: Self) -> bool {
        other.old < self.old && other.new <= self.new
    }
}

/// Ranges in the header of a hunk: `@@ -START,COUNT +START,COUNT @@`.
#[derive(Debug, Clone, Copy)]
struct Ranges {
    /// Index of the first old line, from 0; for no lines, of the one before which they would be.
    old_start: usize,
    counts: Counts,
}

impl Ranges {
    fn of(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("@@ ")?.split(' ');
        let range = |text: &str, sign: char| -> Option<(usize, usize)> {
            let text = text.strip_prefix(sign)?;
            match text.split_once(',') {
                Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
                None => Some((text.parse().ok()?, 1)),
            }
        };
        let (start, old) = range(words.next()?, '-')?;
        let (_, new) = range(words.next()?, '+')?;
        Some(Self { old_start: start.saturating_sub(usize::from(old > 0)), counts: Counts { old, new } })
    }
}
