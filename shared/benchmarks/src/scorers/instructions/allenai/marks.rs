//! Words and their outer punctuation, as the original cuts them: by blanks and the 32 ASCII punctuation marks.

use std::borrow::Cow;

use crate::python;

/// Python's `string.punctuation`, in its order.
pub(super) const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

fn is_outer(c: char) -> bool {
    c.is_ascii_punctuation() || c == ' '
}

/// The text without punctuation marks.
pub(super) fn without_marks(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_punctuation(), "")
}

/// Without the marks and spaces (no other blanks) at both ends.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_outer)
}

/// Without the marks and spaces at the start.
pub(super) fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_outer)
}

/// Without the marks and spaces at the end.
pub(super) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_outer)
}

/// Whether `\b` of `re` holds at both ends of a part of the text.
pub(super) fn is_bounded(text: &str, start: usize, end: usize) -> bool {
    let boundary = |at: usize| {
        let before = text.get(..at).and_then(|text| text.chars().next_back()).is_some_and(python::is_word);
        let after = text.get(at..).and_then(|text| text.chars().next()).is_some_and(python::is_word);
        before != after
    };
    boundary(start) && boundary(end)
}

/// Whether the word is in the text with a word boundary at both ends, in this very case. It is not empty.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, found)| is_bounded(text, at, at + found.len()))
}

/// Diacritics away: compatibility decomposition without what is not ASCII.
pub(super) fn folded(text: &str) -> Cow<'_, str> {
    use unicode_normalization::UnicodeNormalization;
    if text.is_ascii() { text.into() } else { text.nfkd().filter(char::is_ascii).collect::<String>().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_are_those_of_python() {
        assert_eq!(PUNCTUATION.len(), 32);
        assert!(PUNCTUATION.chars().all(|c| c.is_ascii_punctuation()));
        assert_eq!(without_marks("a-b, «c»: 3.5!"), "ab «c» 35");
        assert_eq!(trim(" \"x.y\" .\t"), "x.y\" .\t");
        assert_eq!((trim_start("-- a -"), trim_end("- a --")), ("a -", "- a"));
    }

    #[test]
    fn words_end_where_python_says() {
        assert!(has_word("(Ella)", "Ella"));
        assert!(has_word("Ellas or Ella", "Ella"));
        assert!(has_word("Ella\u{301}", "Ella"), "a combining mark is no word character");
        for text in ["Ellas", "Ella_", "Ella2", "Ellaé", "ella", ""] {
            assert!(!has_word(text, "Ella"), "{text:?}");
        }
        assert!(!has_word("a +1 b", "+1"), "no boundary between a blank and a mark");
        assert!(has_word("a+1 b", "+1"));
    }

    #[test]
    fn folding_keeps_the_plain_letter() {
        assert_eq!(folded("Chișinău"), "Chisinau");
        assert_eq!(folded("São Tomé ﬁ ² ß 東"), "Sao Tome fi 2  ");
        assert!(matches!(folded("plain"), Cow::Borrowed("plain")));
    }
}
