//! Instructions about the numbers of sentences, paragraphs and words.

use std::sync::LazyLock;

use super::super::text::{self, Pattern};
use super::super::{Check, CheckError};
use super::fn_check;
use super::parameters::{Parameters, amount};
use crate::python;

pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<Result<Box<dyn Check>, CheckError>> {
    Some(match name {
        "number_sentences" => parameters
            .bound("num_sentences", "relation")
            .map(|bound| fn_check(move |text| bound.allows(text::sentences(text).len()))),
        "number_words" => parameters
            .bound("num_words", "relation")
            .map(|bound| fn_check(move |text| bound.allows(text::word_count(text)))),
        "number_paragraphs" => parameters.number("num_paragraphs").map(|number| {
            fn_check(move |text| paragraphs(text).is_some_and(|count| amount(count) == number))
        }),
        "nth_paragraph_first_word" => first_word(parameters),
        _ => return None,
    })
}

/// Divider between paragraphs.
static DIVIDER: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new(r"\s?\*\*\*\s?").ok());

/// Returns the number of paragraphs between dividers; `None` if there is nothing between two dividers.
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

fn first_word(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let number = parameters.number("num_paragraphs")?;
    let place = parameters.position("nth_paragraph")?;
    if amount(place) > number {
        return Err(parameters.error("nth_paragraph", "is more than num_paragraphs"));
    }
    let word = python::lower(parameters.text("first_word")?);
    Ok(fn_check(move |text| {
        let pieces: Vec<&str> = text.split("\n\n").map(python::strip).collect();
        let count = pieces.iter().filter(|piece| !piece.is_empty()).count();
        // The position counts all pieces, including blank ones.
        let start = pieces.get(place - 1).and_then(|piece| python::split(piece).next());
        place <= count && amount(count) == number && start.is_some_and(|start| normalized_word(start) == word)
    }))
}

/// Returns a word in lowercase, without quotes before it, up to the first mark.
fn normalized_word(word: &str) -> String {
    let word = word.trim_start_matches('\'').trim_start_matches('"');
    let letters = word.chars().take_while(|c| !matches!(c, '.' | ',' | '?' | '!' | '\'' | '"'));
    letters.flat_map(char::to_lowercase).collect()
}
