//! Instructions about required and forbidden words and letters.

use super::super::text::Keyword;
use super::super::{Check, CheckError};
use super::fn_check;
use super::parameters::Parameters;
use crate::python;

pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<Result<Box<dyn Check>, CheckError>> {
    Some(match name {
        "existence" => existence(parameters),
        "frequency" => frequency(parameters),
        "forbidden_words" => forbidden_words(parameters),
        "letter_frequency" => letter_frequency(parameters),
        _ => return None,
    })
}

fn existence(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let keywords = parameters.keywords("keywords", Keyword::anywhere)?;
    Ok(fn_check(move |text| keywords.iter().all(|keyword| keyword.is_found(text))))
}

fn frequency(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let keyword = parameters.pattern("keyword", Keyword::anywhere(parameters.trimmed("keyword")?))?;
    let bound = parameters.bound("frequency", "relation")?;
    Ok(fn_check(move |text| bound.allows(keyword.count(text))))
}

fn forbidden_words(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let words = parameters.keywords("forbidden_words", Keyword::whole_word)?;
    Ok(fn_check(move |text| !words.iter().any(|word| word.is_found(text))))
}

fn letter_frequency(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let letter = parameters.text("letter")?;
    if letter.chars().nth(1).is_some() {
        return Err(parameters.error("letter", "is more than one character"));
    }
    let letter = python::lower(letter);
    let bound = parameters.bound("let_frequency", "let_relation")?;
    Ok(fn_check(move |text| bound.allows(letter_count(text, &letter))))
}

/// Counts occurrences of a lowercase letter in the lowercase text.
fn letter_count(text: &str, letter: &str) -> usize {
    match letter.as_bytes() {
        [letter] if text.is_ascii() => text.bytes().filter(|b| b.eq_ignore_ascii_case(letter)).count(),
        _ => python::lower(text).matches(letter).count(),
    }
}
