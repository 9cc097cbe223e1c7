//! Fenced blocks of Markdown.

/// Maximum indent of a line that opens a block, as in Markdown.
const INDENT_MAX: usize = 3;

/// A fenced block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence<'a> {
    /// Index of the line that opens it.
    pub(super) opened: usize,
    /// Index of the line that closes it; the number of lines if none does.
    pub(super) closed: usize,
    /// Text after the marks of the line that opens it, such as `diff`.
    pub(super) info: &'a str,
    mark: char,
    count: usize,
}

impl Fence<'_> {
    /// Returns true for a line that opens a block with a tag, if a line that closes that one would close this one.
    pub(super) fn is_reopened_by(&self, line: &str) -> bool {
        opening(line).is_some_and(|(_, mark, count, info)| {
            mark == self.mark && count >= self.count && !info.is_empty()
        })
    }
}

/// Finds the fenced blocks. A block ends at a line of at least as many marks as opened it, no other text, and no larger indent:
/// a context line of a patch that has such marks in its file has a space in front.
pub(super) fn find<'a>(lines: &[&'a str]) -> Vec<Fence<'a>> {
    let mut found: Vec<Fence<'a>> = Vec::new();
    while let Some(fence) = next(lines, found.last().map_or(0, |fence| fence.closed + 1)) {
        found.push(fence);
    }
    found
}

/// Finds the first block from a line on.
pub(super) fn next<'a>(lines: &[&'a str], from: usize) -> Option<Fence<'a>> {
    let (opened, (indent, mark, count, info)) =
        (from..lines.len()).find_map(|at| Some((at, opening(lines[at])?)))?;
    let closes = |line: &str| {
        let marks = line.trim();
        let own_indent = line.len() - line.trim_start_matches(' ').len();
        own_indent <= indent && marks.len() >= count && marks.chars().all(|c| c == mark)
    };
    let closed = (opened + 1..lines.len()).find(|at| closes(lines[*at])).unwrap_or(lines.len());
    Some(Fence { opened, closed, info, mark, count })
}

/// Returns indent, mark, number of marks and info of a line that opens a block.
fn opening(line: &str) -> Option<(usize, char, usize, &str)> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = text.trim_start_matches(mark);
    let count = text.len() - info.len();
    (indent <= INDENT_MAX && count >= 3 && !info.contains('`')).then(|| (indent, mark, count, info.trim()))
}
