//! Patterns of Python's `re`, run by an engine with linear running time.
//!
//! A pattern is parsed as Python parses it and rewritten for the `regex` crate: character classes become Python's,
//! case-insensitive `i` matches the same characters as in Python, and invalid patterns stay invalid. Two features have
//! no counterpart and are implemented by changing the text:
//!
//! - The word boundary. The two engines disagree about marks, connectors and numbers such as `²`. For a pattern with a
//!   boundary, such characters in the text are replaced by others about which the engines agree.
//! - `$` outside multi-line mode also matches before a final line feed, so that line feed is removed.
//!
//! Look-around, back-references and possessive repetition inside a pattern are rejected with an error that names them.

mod parser;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, HirKind};

use crate::python;
use parser::Parser;

/// Reason why a pattern can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    /// Python rejects the pattern, too.
    #[error("is not a pattern: {0}")]
    Syntax(&'static str),
    /// Python accepts the pattern, but this program doesn't support it.
    #[error("is a pattern with {0}, which this program does not support")]
    Unsupported(&'static str),
    /// The pattern exceeds the engine's memory limit.
    #[error("is a pattern that is too large")]
    TooLarge,
}

/// Compiled pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: Regex,
    has_boundary: bool,
    has_end: bool,
}

impl Pattern {
    /// Compiles a Python pattern, which may contain the flags `(?i)`, `(?m)` and `(?s)`.
    pub(crate) fn new(python: &str) -> Result<Self, PatternError> {
        let mut parser = Parser::new(python);
        parser.global_flags()?;
        let flags = parser.flags;
        parser.alternation(0)?;
        if parser.peek().is_some() {
            return Err(PatternError::Syntax("unbalanced parenthesis"));
        }
        let regex = RegexBuilder::new(&parser.out)
            .case_insensitive(flags.ignore_case)
            .multi_line(false)
            .dot_matches_new_line(flags.dot_all)
            .build()
            .map_err(|_| PatternError::TooLarge)?;
        Ok(Self { regex, has_boundary: parser.has_boundary, has_end: parser.has_end })
    }

    /// `re.search(pattern, text) is not None`.
    pub(crate) fn is_found(&self, text: &str) -> bool {
        self.regex.is_match(&self.prepare(text))
    }

    /// `len(re.findall(pattern, text))`.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.regex.find_iter(&self.prepare(text)).count()
    }

    /// `re.findall(pattern, text)` of a pattern without groups. Must not be used with `\b`, or with `$` outside
    /// multi-line mode, on texts that [`Self::prepare`] would change.
    pub(crate) fn find_all<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.regex.find_iter(text).map(|found| found.as_str())
    }

    /// `re.split(pattern, text)` of a pattern without groups, with the same restrictions as [`Self::find_all`].
    pub(crate) fn split<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.regex.split(text)
    }

    fn prepare<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = if self.has_end { text.strip_suffix('\n').unwrap_or(text) } else { text };
        if self.has_boundary { with_stand_ins(text) } else { Cow::Borrowed(text) }
    }
}

/// Ranges of numbers that are word characters in Python but not in the engine, each with the count of such numbers
/// before it.
static OTHER_NUMBERS: LazyLock<Vec<(char, char, u32)>> = LazyLock::new(|| {
    let hir = regex_syntax::parse(r"\p{No}").ok();
    let Some(HirKind::Class(Class::Unicode(class))) = hir.as_ref().map(regex_syntax::hir::Hir::kind) else {
        return Vec::new();
    };
    let mut before = 0;
    let ranges = class.ranges().iter().map(|range| {
        let at = before;
        before += range.end() as u32 - range.start() as u32 + 1;
        (range.start(), range.end(), at)
    });
    ranges.collect()
});

/// Returns the replacement for a character about which Python and the engine disagree, or the character itself if they
/// agree.
fn stand_in(c: char) -> char {
    /// Private-use characters, which are not word characters.
    const NO_WORD: u32 = 0xF_0000;
    /// Ideographs of a CJK extension, which are word characters. The range is larger than the number of replaced
    /// characters.
    const WORD: u32 = 0x3_0000;
    if c.is_ascii() {
        return c;
    }
    let code = c as u32;
    let replacement = match (python::is_word(c), regex_syntax::is_word_character(c)) {
        (false, true) => NO_WORD + (code & 0x1_FFFF) % 0xFFFE,
        (true, false) => {
            let after = OTHER_NUMBERS.partition_point(|&(first, ..)| first <= c);
            let Some(&(first, _, before)) = after.checked_sub(1).and_then(|at| OTHER_NUMBERS.get(at)) else {
                return c;
            };
            WORD + before + (code - first as u32)
        }
        _ => return c,
    };
    char::from_u32(replacement).unwrap_or(c)
}

/// Replaces all characters about which Python and the engine disagree.
fn with_stand_ins(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || text.chars().all(|c| stand_in(c) == c) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(stand_in).collect())
}

#[cfg(test)]
mod tests;
