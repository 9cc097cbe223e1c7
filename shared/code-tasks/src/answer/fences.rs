//! Fenced blocks of Markdown.

/// Maximum indent of a line that opens a block, as in Markdown.
const INDENT_MAX: usize = 3;

/// A line that opens a fenced block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opening<'a> {
    /// Text after the marks, such as `diff`.
    pub(super) info: &'a str,
    indent: usize,
    mark: char,
    count: usize,
}

impl<'a> Opening<'a> {
    /// Reads a line. Returns `None` if it opens no block.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let count = text.len() - info.len();
        let opens = indent <= INDENT_MAX && count >= 3 && !info.contains('`');
        opens.then(|| Self { info: info.trim(), indent, mark, count })
    }

    /// Returns true for a line that closes the block: at least as many marks as opened it, no other text, and no larger indent.
    /// A context line of a patch that has such marks in its file has a space in front.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let marks = line.trim();
        let indent = line.len() - line.trim_start_matches(' ').len();
        indent <= self.indent && marks.len() >= self.count && marks.chars().all(|c| c == self.mark)
    }

    /// Returns true for a line that opens a block with a tag, if a line that closes that one would close this one.
    pub(super) fn is_reopened_by(&self, line: &str) -> bool {
        Opening::read(line).is_some_and(|inner| {
            inner.mark == self.mark
                && inner.count >= self.count
                && inner.indent <= self.indent
                && !inner.info.is_empty()
        })
    }
}

/// A fenced block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence<'a> {
    /// Index of the line that opens it.
    pub(super) opened: usize,
    /// Index of the line that closes it; the number of lines if none does.
    pub(super) closed: usize,
    /// The line that opens it.
    pub(super) opening: Opening<'a>,
}

/// Finds the fenced blocks.
pub(super) fn find<'a>(lines: &[&'a str]) -> Vec<Fence<'a>> {
    let mut found: Vec<Fence<'a>> = Vec::new();
    while let Some(opened) = next(lines, found.last().map_or(0, |fence| fence.closed + 1)) {
        found.extend(at(lines, opened));
    }
    found
}

/// Returns the index of the first line from one on that opens a block.
pub(super) fn next(lines: &[&str], from: usize) -> Option<usize> {
    (from..lines.len()).find(|at| Opening::read(lines[*at]).is_some())
}

/// Returns the block that a line opens.
pub(super) fn at<'a>(lines: &[&'a str], opened: usize) -> Option<Fence<'a>> {
    let opening = Opening::read(lines[opened])?;
    let closed = (opened + 1..lines.len()).find(|at| opening.is_closed_by(lines[*at]));
    Some(Fence { opened, closed: closed.unwrap_or(lines.len()), opening })
}
