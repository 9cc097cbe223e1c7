//! Thoughts of a model in its reply, between `<think>` and `</think>`. Some servers leave out the first mark.
//!
//! A change may have the marks in its lines. Marks within hunks, search-and-replace blocks and fenced blocks don't count, except in a
//! fenced block that the thoughts leave open: one that nothing closes, in which another one with a tag begins after the mark, or
//! whose patch can't have the line.

use std::ops::ControlFlow;

use super::fences::Opening;
use super::{blocks, diff, files};

const START: &str = "<think>";
const END: &str = "</think>";

/// Place after a mark that ends thoughts.
#[derive(Debug, Clone, Copy)]
struct End {
    /// Index of the line.
    line: usize,
    /// Byte of the line.
    byte: usize,
}

/// Returns the lines of a reply, with empty ones instead of thoughts. Thoughts without an end stay.
pub(super) fn without(reply: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = reply.lines().collect();
    // All lines before this one are empty.
    let mut cleared = 0;
    let (mut at, mut is_plain) = (0, false);
    loop {
        let mut started = None;
        let mut end = next_end(&lines, at, is_plain, &mut started);
        if let (None, Some(started)) = (end, started) {
            // The thoughts left something open, so its end can't be told from theirs.
            end = first_end(&lines, started);
            is_plain = true;
        }
        let Some(End { line, byte }) = end else { return lines };
        let from = started.unwrap_or(cleared);
        lines[from..line].fill("");
        lines[line] = &lines[line][byte..];
        if from == cleared {
            cleared = line;
        }
        at = line;
    }
}

/// Finds the next end of thoughts from a line on, and the line that starts them, if one does. With `is_plain`, thoughts with a start
/// end at the first mark, wherever it is.
fn next_end(lines: &[&str], from: usize, is_plain: bool, started: &mut Option<usize>) -> Option<End> {
    let mut at = from;
    while at < lines.len() {
        if let Some(closed) = diff::hunk_end(lines, at).or_else(|| blocks::end(lines, at)) {
            at = closed;
            continue;
        }
        let line = lines[at];
        let mut text = line;
        if let Some(rest) = line.trim_start().strip_prefix(START) {
            started.get_or_insert(at);
            if is_plain {
                return first_end(lines, at);
            }
            text = rest;
        }
        if let Some(byte) = mark_end(line) {
            return Some(End { line: at, byte });
        }
        at = match Opening::read(text) {
            Some(opening) => {
                let label = lines[from..at].iter().rev().find(|line| !line.trim().is_empty());
                let is_file = label.is_some_and(|line| files::is_labeled(line));
                match end_in_fence(lines, at, &opening, is_file) {
                    ControlFlow::Break(end) => return Some(end),
                    ControlFlow::Continue(next) => next,
                }
            }
            None => at + 1,
        };
    }
    None
}

/// Looks for the end of thoughts that leave a fenced block open. Returns the index of the line after the block if they don't.
fn end_in_fence(
    lines: &[&str],
    opened: usize,
    opening: &Opening<'_>,
    is_file: bool,
) -> ControlFlow<End, usize> {
    // The last mark so far, which may be one of the content.
    let mut last = None;
    let mut has_patch = false;
    let mut at = opened + 1;
    while at < lines.len() {
        if let Some(closed) = blocks::end(lines, at) {
            at = closed;
            continue;
        }
        let line = lines[at];
        if opening.is_closed_by(line) {
            return ControlFlow::Continue(at + 1);
        }
        has_patch |= !is_file && diff::begins(lines, at);
        let is_hunk = line.starts_with([' ', '+', '-', '@']);
        if let Some(byte) = mark_end(line) {
            let end = End { line: at, byte };
            // A line like this isn't one of a patch.
            if opening.is_closed_by(&line[..byte - END.len()]) || (has_patch && !is_hunk) {
                return ControlFlow::Break(end);
            }
            last = if is_hunk { last } else { Some(end) };
        } else if let Some(end) = last.filter(|_| opening.is_reopened_by(line)) {
            return ControlFlow::Break(end);
        }
        at += 1;
    }
    last.map_or(ControlFlow::Continue(at), ControlFlow::Break)
}

/// Returns the first mark from a line on.
fn first_end(lines: &[&str], from: usize) -> Option<End> {
    let end = |line: usize| Some(End { line, byte: lines[line].find(END)? + END.len() });
    (from..lines.len()).find_map(end)
}

/// Returns the byte after the first mark of a line that isn't in quotes or code.
fn mark_end(line: &str) -> Option<usize> {
    // Whether the text before a byte has an odd number of backticks, and the first backtick after it.
    let (mut is_code, mut counted, mut next_tick) = (false, 0, 0);
    let is_mark = |at: &usize| {
        is_code ^= line[counted..*at].matches('`').count() % 2 == 1;
        counted = *at;
        let (before, after) = (&line[..*at], &line[*at + END.len()..]);
        if is_code {
            if next_tick < *at {
                next_tick = after.find('`').map_or(line.len(), |tick| *at + END.len() + tick);
            }
            return next_tick == line.len();
        }
        let quote = before.chars().next_back().filter(|c| matches!(c, '\'' | '"'));
        !quote.is_some_and(|quote| after.starts_with(quote))
    };
    line.match_indices(END).map(|(at, _)| at).find(is_mark).map(|at| at + END.len())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn rest(reply: &str) -> String {
        let lines = without(reply);
        assert_eq!(lines.len(), reply.lines().count(), "numbers of lines stay: {reply}");
        lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn thoughts_are_removed() {
        for (reply, expected) in [
            ("plain", "plain"),
            ("<think>a</think>b", "b"),
            ("<think>a</think><think>\nb</think> c", " c"),
            ("<think>a</think>\nb\n <think>c\nd</think>\ne", "b\ne"),
            ("<think>a or b", "<think>a or b"),
            ("<think>a</think>b\n<think>c", "b\n<think>c"),
            // Without the first mark.
            ("a</think>b", "b"),
            ("- a\n- so I write it.</think>\nb", "b"),
            ("a, done.</think> Here is it:\nb", " Here is it:\nb"),
            ("a</think>File: a.py\n```\nx\n```", "File: a.py\n```\nx\n```"),
            ("a\n</think>\nb</think>\nc", "c"),
            ("a\n```\nb\n```</think>\nc", "c"),
            ("--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n\n- so</think>\nc", "c"),
            // Blocks that the thoughts leave open.
            ("```diff\n--- a\n+++ a\n</think>\n```diff\nc\n```", "```diff\nc\n```"),
            ("```\n--- a\n+++ a\nI see.</think>\n```\nc\n```", "```\nc\n```"),
            ("```python\na\n</think>\nFile: a.py\n```python\nc\n```", "File: a.py\n```python\nc\n```"),
            ("```python\na\n</think>\nc", "c"),
            ("<think>\n```\na\n+ b</think>\n```\nc\n```", "```\nc\n```"),
            ("<think>\n```python\nx = '</think>'\n```\nb\n</think>\nc", "c"),
            ("<<<<<<< SEARCH\na\n</think>\nc", "c"),
        ] {
            assert_eq!(rest(reply), expected, "{reply}");
        }
    }

    #[test]
    fn marks_of_a_change_stay() {
        for reply in [
            "```diff\n--- a\n+++ a\n@@ -1,2 +1,2 @@\n a</think>\n-<think>\n+b </think> c\n```",
            "--- a\n+++ a\n@@ -1,2 +1,2 @@ x</think>\n a</think>\n-<think>\n+b </think> c\nDone.",
            "File: a.html\n```html\n<think>\n</think>\nx</think>y\n```\nDone.",
            "File: a.html\n```html\n--- a\n+++ b\n</think>\n```",
            "File: a.md\n````\n```sh\nx\n```\n</think>\n```sh\ny\n```\n````",
            "a.py\n<<<<<<< SEARCH\n</think>\n=======\nx</think>\n>>>>>>> REPLACE",
            "a.py\n```\n<<<<<<< SEARCH\n</think>\n```sh\n=======\nx</think>\n>>>>>>> REPLACE\n```",
            "x\nI remove `<think>…</think>` and '</think>' now.",
        ] {
            assert_eq!(rest(reply), reply);
        }
    }

    #[test]
    fn many_marks_take_no_time() {
        let part = |text: &str| text.repeat(1_600_000 / text.len());
        let ticks: String =
            (3..600).rev().map(|count| format!("{}a\n</think>\n", "`".repeat(count))).collect();
        let start = Instant::now();
        for reply in [
            part("</think>"),
            part("`</think>"),
            format!("`{}`", part("</think>")),
            format!("{}{}", part("x</think>"), part(" ")),
            part("<think>\n@@\n+</think>\n"),
            part("```a\n</think>\n"),
            part("x</think>\n```\n```\n"),
            part("```\n</think>\n```\n"),
            part("<<<<<<< SEARCH\n</think>\n"),
            format!("{ticks}{}", part("\n")),
            format!("{ticks}{}{}x", part("\n"), "`".repeat(600)),
        ] {
            without(&reply);
        }
        // Seconds, also without optimization; a search that begins anew at each mark takes hours.
        assert!(start.elapsed() < Duration::from_secs(300), "{:?}", start.elapsed());
    }
}
