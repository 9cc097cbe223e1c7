//! Keywords: patterns that nearly always are plain words.

use std::borrow::Cow;

use super::pattern::{Pattern, PatternError};
use crate::python;

/// Keyword: a pattern that is matched case-insensitively.
///
/// Plain ASCII words are searched without a regular expression, because each row has its own keywords, and compiling
/// their patterns takes longer than the search.
#[derive(Debug)]
pub(crate) enum Keyword {
    /// Plain word.
    Plain(Plain),
    /// Any other pattern.
    Pattern(Pattern),
}

/// Lowercase ASCII word.
#[derive(Debug)]
pub(crate) struct Plain {
    word: Vec<u8>,
    is_whole: bool,
}

/// Maximum length of a plain word in bytes. The plain search compares at each position anew, so longer words use a
/// pattern.
const PLAIN_BYTES_MAX: usize = 64;

/// Returns the ASCII letter that a character equals case-insensitively, or the character itself if there is none.
fn letter(c: char) -> char {
    match c {
        '\u{130}' | '\u{131}' => 'i',
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c,
    }
}

/// Replaces all characters that equal an ASCII letter case-insensitively by that letter. Word boundaries don't change.
fn fold_letter_variants(text: &str) -> Cow<'_, str> {
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
    pub(crate) fn whole_word(word: &str) -> Result<Self, PatternError> {
        Self::new(word, true)
    }

    fn new(word: &str, is_whole: bool) -> Result<Self, PatternError> {
        let is_literal = |b: u8| b.is_ascii_alphanumeric() || b" _-'\",!:;@%&=<>/~`".contains(&b);
        if !word.is_empty() && word.len() <= PLAIN_BYTES_MAX && word.bytes().all(is_literal) {
            return Ok(Self::Plain(Plain { word: word.to_ascii_lowercase().into_bytes(), is_whole }));
        }
        Pattern::new(&source(word, is_whole)).map(Self::Pattern)
    }

    /// Returns true if the text contains the keyword.
    pub(crate) fn is_found(&self, text: &str) -> bool {
        match self {
            Self::Plain(plain) => plain.next(&fold_letter_variants(text), 0).is_some(),
            Self::Pattern(pattern) => pattern.is_found(text),
        }
    }

    /// Counts occurrences without overlap.
    pub(crate) fn count(&self, text: &str) -> usize {
        match self {
            Self::Plain(plain) => {
                let text = fold_letter_variants(text);
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

/// Returns the Python pattern of a keyword. Flags must come first.
fn source(word: &str, is_whole: bool) -> String {
    if is_whole { format!(r"(?i)\b{word}\b") } else { format!("(?i){word}") }
}

impl Plain {
    /// Returns the end of the first occurrence at or after an offset.
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

/// Returns true if both ends of an ASCII word are word boundaries.
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
        assert!(Keyword::whole_word("rocks?").unwrap().is_found("a ROCK!"));
        assert!(!Keyword::whole_word("rock").unwrap().is_found("_rock_ rocks"));
        assert!(
            Keyword::whole_word("a|b").unwrap().is_found("ax"),
            "the boundaries belong to the alternatives"
        );
    }

    proptest! {
        #[test]
        fn the_plain_search_agrees_with_the_pattern(
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
