//! Text processing as in the official programs: Python's `re`, and NLTK's sentences and word tokens.

mod keyword;
mod language;
mod pattern;
mod punkt;
mod tokens;

pub(crate) use keyword::Keyword;
pub(crate) use language::NormalizedText;
pub(crate) use pattern::{Pattern, PatternError};
pub(crate) use punkt::sentences;
pub(crate) use tokens::{for_each_word_token, word_tokens};

use crate::python;

/// Returns the matches of `\w+`.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !python::is_word(c)).filter(|word| !word.is_empty())
}

/// `len(re.findall(r'\w+', text))`.
pub(crate) fn word_count(text: &str) -> usize {
    if text.is_ascii() {
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let starts =
            text.as_bytes().windows(2).filter(|pair| matches!(pair, [a, b] if !is_word(*a) && is_word(*b)));
        return starts.count() + usize::from(text.bytes().next().is_some_and(is_word));
    }
    let mut count = 0;
    let mut is_inside = false;
    for c in text.chars() {
        let is_word = python::is_word(c);
        count += usize::from(is_word && !is_inside);
        is_inside = is_word;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_word_characters() {
        for (text, count) in [
            ("", 0),
            ("well-known fact", 3),
            ("don't go", 3),
            ("a_b c d", 3),
            ("a", 1),
            (" a. b ", 2),
            ("½ x² 日本語", 3),
            ("cafe\u{301} a", 2),
            ("हिन्दी", 3),
            ("😀 Ⓐ ‿ \u{200d}", 0),
        ] {
            assert_eq!((words(text).count(), word_count(text)), (count, count), "{text:?}");
        }
    }
}
