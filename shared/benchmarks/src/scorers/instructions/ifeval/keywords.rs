//! Words and letters that have to be there, or must not.

use super::super::text::Keyword;
use super::super::{Check, CheckError};
use super::by;
use super::parameters::Parameters;
use crate::python;

pub(super) fn check(name: &str, given: &Parameters<'_>) -> Option<Result<Box<dyn Check>, CheckError>> {
    Some(match name {
        "existence" => existence(given),
        "frequency" => frequency(given),
        "forbidden_words" => forbidden_words(given),
        "letter_frequency" => letter_frequency(given),
        _ => return None,
    })
}

fn existence(given: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let keywords = given.keywords("keywords", Keyword::anywhere)?;
    Ok(by(move |text| keywords.iter().all(|keyword| keyword.is_found(text))))
}

fn frequency(given: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let keyword = given.pattern("keyword", Keyword::anywhere(given.trimmed("keyword")?))?;
    let bound = given.bound("frequency", "relation")?;
    Ok(by(move |text| bound.allows(keyword.count(text))))
}

fn forbidden_words(given: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let words = given.keywords("forbidden_words", Keyword::whole)?;
    Ok(by(move |text| !words.iter().any(|word| word.is_found(text))))
}

fn letter_frequency(given: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let letter = given.text("letter")?;
    if letter.chars().nth(1).is_some() {
        return Err(given.error("letter", "is more than one character"));
    }
    let letter = python::lower(letter);
    let bound = given.bound("let_frequency", "let_relation")?;
    Ok(by(move |text| bound.allows(letter_count(text, &letter))))
}

/// How often a lower-case letter is in the lower-case text.
fn letter_count(text: &str, letter: &str) -> usize {
    match letter.as_bytes() {
        [letter] if text.is_ascii() => text.bytes().filter(|b| b.eq_ignore_ascii_case(letter)).count(),
        _ => python::lower(text).matches(letter).count(),
    }
}
