//! Keywords: patterns that nearly always are plain words.

use std::borrow::Cow;

use super::pattern::{Pattern, PatternError};
use crate::python;

/// A keyword, which is a pattern found whatever the case.
///
/// Plain ASCII words are searched for without a regular expression: a row has its own keywords, and compiling
/// a pattern for each takes longer than the search.
#[derive(Debug)]
pub(crate) enum Keyword {
    /// A plain word.
    Plain(Plain),
    /// Any other pattern.
    Pattern(Pattern),
}

/// A lower-case ASCII word.
#[derive(Debug)]
pub(crate) struct Plain {
    word: Vec<u8>,
    is_whole: bool,
}

/// Longer words are left to the engine: the search here compares at each place anew.
const PLAIN_BYTES_MAX: usize = 64;

/// The ASCII letter that a character equals when case does not matter; itself where it is not such a character.
fn letter(c: char) -> char {
    match c {
        '\u{130}' | '\u{131}' => 'i',
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c,
    }
}

/// The text with ASCII letters for all characters that equal one. Word boundaries stay where they are.
fn with_letters(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || text.chars().all(|c| letter(c) == c) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(letter).collect())
}

impl Keyword {
    /// `re.search(word, text, re.IGNORECASE)`.
    pub(crate) fn anywhere(word: &str) -> Result<Self, PatternError> {
        Self::new(word, false)
    }

    /// `re.search(r'\b' + word + r'\b', text, re.IGNORECASE)`.
    pub(crate) fn whole(word: &str) -> Result<Self, PatternError> {
        Self::new(word, true)
    }

    fn new(word: &str, is_whole: bool) -> Result<Self, PatternError> {
        let is_literal = |b: u8| b.is_ascii_alphanumeric() || b" _-'\",!:;@%&=<>/~`".contains(&b);
        if !word.is_empty() && word.len() <= PLAIN_BYTES_MAX && word.bytes().all(is_literal) {
            return Ok(Self::Plain(Plain { word: word.to_ascii_lowercase().into_bytes(), is_whole }));
        }
        Pattern::new(&source(word, is_whole)).map(Self::Pattern)
    }

    /// Whether the text has it.
    pub(crate) fn is_found(&self, text: &str) -> bool {
        match self {
            Self::Plain(plain) => plain.next(&with_letters(text), 0).is_some(),
            Self::Pattern(pattern) => pattern.is_found(text),
        }
    }

    /// How often the text has it, without overlap.
    pub(crate) fn count(&self, text: &str) -> usize {
        match self {
            Self::Plain(plain) => {
                let text = with_letters(text);
                let (mut from, mut count) = (0, 0);
                while let Some(end) = plain.next(&text, from) {
                    count += 1;
                    from = end;
                }
                count
            }
            Self::Pattern(pattern) => pattern.count(text),
        }
    }
}

/// The pattern as Python would be given it; flags stand at the very start.
fn source(word: &str, is_whole: bool) -> String {
    if is_whole { format!(r"(?i)\b{word}\b") } else { format!("(?i){word}") }
}

impl Plain {
    /// The end of the first occurrence from an offset on.
    fn next(&self, text: &str, from: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let first = *self.word.first()?;
        let mut at = from;
        loop {
            let rest = bytes.get(at..)?;
            at += memchr::memchr2(first, first.to_ascii_uppercase(), rest)?;
            let end = at + self.word.len();
            let found = bytes.get(at..end)?;
            if found.eq_ignore_ascii_case(&self.word) && (!self.is_whole || is_whole(text, at, end)) {
                return Some(end);
            }
            at += 1;
        }
    }
}

/// Whether both ends of an ASCII word are boundaries.
fn is_whole(text: &str, start: usize, end: usize) -> bool {
    let ends_word = |c: Option<char>| c.is_some_and(python::is_word);
    let (Some(before), Some(word), Some(after)) = (text.get(..start), text.get(start..end), text.get(end..))
    else {
        return false;
    };
    ends_word(before.chars().next_back()) != ends_word(word.chars().next())
        && ends_word(word.chars().next_back()) != ends_word(after.chars().next())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keywords_are_patterns() {
        assert_eq!(Keyword::anywhere("w.r").unwrap().count("war wor"), 2);
        assert!(Keyword::anywhere("(").is_err());
        assert!(Keyword::whole("rocks?").unwrap().is_found("a ROCK!"));
        assert!(!Keyword::whole("rock").unwrap().is_found("_rock_ rocks"));
        assert!(Keyword::whole("a|b").unwrap().is_found("ax"), "the boundaries belong to the alternatives");
    }

    proptest! {
        #[test]
        fn the_short_way_finds_what_the_pattern_finds(
            word in "[abik '-]{1,4}",
            text in "[abikABIK '²\u{301}é_ıKſ.-]{0,40}",
        ) {
            for is_whole in [false, true] {
                let keyword = Keyword::new(&word, is_whole).unwrap();
                let pattern = Pattern::new(&source(&word, is_whole)).unwrap();
                prop_assert_eq!(keyword.is_found(&text), pattern.is_found(&text));
                prop_assert_eq!(keyword.count(&text), pattern.count(&text));
            }
        }
    }
}
