//! Splits off outer punctuation of words as the official program does, using spaces and the 32 ASCII punctuation marks.

use std::borrow::Cow;

use crate::python;

/// Python's `string.punctuation`, in its order.
pub(super) const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

fn is_outer(c: char) -> bool {
    c.is_ascii_punctuation() || c == ' '
}

/// Removes all punctuation marks.
pub(super) fn remove_marks(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_punctuation(), "")
}

/// Trims marks and spaces (but no other whitespace) at both ends.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_outer)
}

/// Trims marks and spaces at the start.
pub(super) fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_outer)
}

/// Trims marks and spaces at the end.
pub(super) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_outer)
}

/// Returns true if both ends of a part of the text are word boundaries (`\b` of `re`).
pub(super) fn is_bounded(text: &str, start: usize, end: usize) -> bool {
    let boundary = |at: usize| {
        let before = text.get(..at).and_then(|text| text.chars().next_back()).is_some_and(python::is_word);
        let after = text.get(at..).and_then(|text| text.chars().next()).is_some_and(python::is_word);
        before != after
    };
    boundary(start) && boundary(end)
}

/// Returns true if the text contains a nonempty word in the same case, with a word boundary at both ends.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, found)| is_bounded(text, at, at + found.len()))
}

/// Removes diacritics: applies compatibility decomposition and drops non-ASCII characters.
pub(super) fn fold_to_ascii(text: &str) -> Cow<'_, str> {
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
        assert_eq!(remove_marks("a-b, «c»: 3.5!"), "ab «c» 35");
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
        assert_eq!(fold_to_ascii("Chișinău"), "Chisinau");
        assert_eq!(fold_to_ascii("São Tomé ﬁ ² ß 東"), "Sao Tome fi 2  ");
        assert!(matches!(fold_to_ascii("plain"), Cow::Borrowed("plain")));
    }
}
