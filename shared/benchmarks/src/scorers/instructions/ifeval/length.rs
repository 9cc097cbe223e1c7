//! Numbers of sentences, paragraphs and words.

use std::sync::LazyLock;

use super::super::text::{self, Pattern};
use super::super::{Check, CheckError};
use super::by;
use super::parameters::{Parameters, amount};
use crate::python;

pub(super) fn check(name: &str, given: &Parameters<'_>) -> Option<Result<Box<dyn Check>, CheckError>> {
    Some(match name {
        "number_sentences" => given
            .bound("num_sentences", "relation")
            .map(|bound| by(move |text| bound.allows(text::sentences(text).len()))),
        "number_words" => given
            .bound("num_words", "relation")
            .map(|bound| by(move |text| bound.allows(text::word_count(text)))),
        "number_paragraphs" => given
            .number("num_paragraphs")
            .map(|number| by(move |text| paragraphs(text).is_some_and(|count| amount(count) == number))),
        "nth_paragraph_first_word" => first_word(given),
        _ => return None,
    })
}

/// What sets paragraphs apart.
static DIVIDER: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new(r"\s?\*\*\*\s?").ok());

/// The number of paragraphs between dividers; `None` when there is nothing between two of them.
fn paragraphs(text: &str) -> Option<usize> {
    let pieces: Vec<&str> = DIVIDER.as_ref()?.split(text).collect();
    let is_blank = |piece: &&str| python::strip(piece).is_empty();
    let last = pieces.len().checked_sub(1)?;
    let inner = pieces.get(1..last).unwrap_or_default();
    if inner.iter().any(is_blank) {
        return None;
    }
    Some(pieces.iter().filter(|piece| !python::strip(piece).is_empty()).count())
}

fn first_word(given: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let number = given.number("num_paragraphs")?;
    let place = given.place("nth_paragraph")?;
    if amount(place) > number {
        return Err(given.error("nth_paragraph", "is more than num_paragraphs"));
    }
    let word = python::lower(given.text("first_word")?);
    Ok(by(move |text| {
        let pieces: Vec<&str> = text.split("\n\n").map(python::strip).collect();
        let count = pieces.iter().filter(|piece| !piece.is_empty()).count();
        // The place is one among all pieces, those that are blank included.
        let start = pieces.get(place - 1).and_then(|piece| python::split(piece).next());
        place <= count && amount(count) == number && start.is_some_and(|start| bare(start) == word)
    }))
}

/// A word without quotes before it and without marks after it, each of its letters in lower case.
fn bare(word: &str) -> String {
    let word = word.trim_start_matches('\'').trim_start_matches('"');
    let letters = word.chars().take_while(|c| !matches!(c, '.' | ',' | '?' | '!' | '\'' | '"'));
    letters.flat_map(char::to_lowercase).collect()
}
