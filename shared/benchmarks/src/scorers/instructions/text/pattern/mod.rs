//! Patterns of Python's `re`, run by an engine whose time is linear.
//!
//! A pattern is parsed as Python parses it and written again for the `regex` crate: character classes become
//! Python's, `i` gets the partners that Python gives it when case does not matter, and texts that are an error in
//! Python stay one. Two things have no counterpart and are done on the text instead:
//!
//! - The word boundary. The two engines disagree about marks, connectors and numbers such as `²`. A pattern with a
//!   boundary runs on a text in which such characters stand for others, about which they agree.
//! - `$` outside multi-line mode also matches before a final line feed, which is therefore cut off.
//!
//! Look-around, back-references and possessive repetition inside a pattern are refused by name.

mod parser;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, HirKind};

use crate::python;
use parser::Parser;

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    /// Python refuses it as well.
    #[error("is not a pattern: {0}")]
    Syntax(&'static str),
    /// Python takes it, this program does not.
    #[error("is a pattern with {0}, which this program does not support")]
    Unsupported(&'static str),
    /// More than the engine's memory bound allows.
    #[error("is a pattern that is too large")]
    TooLarge,
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: Regex,
    has_boundary: bool,
    has_end: bool,
}

impl Pattern {
    /// Compiles a Python pattern. Flags can be given in it: `(?i)`, `(?m)`, `(?s)`.
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

    /// `re.findall(pattern, text)` of a pattern without groups. Not for patterns with `\b` or with `$` outside
    /// multi-line mode on texts where these are special; see the module's head.
    pub(crate) fn find_all<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.regex.find_iter(text).map(|found| found.as_str())
    }

    /// `re.split(pattern, text)` of a pattern without groups; the same limits as [`Self::find_all`].
    pub(crate) fn split<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.regex.split(text)
    }

    fn prepare<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = if self.has_end { text.strip_suffix('\n').unwrap_or(text) } else { text };
        if self.has_boundary { agreed(text) } else { Cow::Borrowed(text) }
    }
}

/// Numbers that are word characters in Python and not in the engine, as ranges with the count of those before.
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

/// The character that stands for one about which Python and the engine disagree; itself where they agree.
fn agreed_character(c: char) -> char {
    /// Private use, hence no word character.
    const NO_WORD: u32 = 0xF_0000;
    /// An ideographic extension of rare names, hence word characters; larger than the numbers are many.
    const WORD: u32 = 0x3_0000;
    if c.is_ascii() {
        return c;
    }
    let code = c as u32;
    let stand_in = match (python::is_word(c), regex_syntax::is_word_character(c)) {
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
    char::from_u32(stand_in).unwrap_or(c)
}

/// The text with stand-ins for characters about which Python and the engine disagree.
fn agreed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || text.chars().all(|c| agreed_character(c) == c) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(agreed_character).collect())
}

#[cfg(test)]
mod tests;
