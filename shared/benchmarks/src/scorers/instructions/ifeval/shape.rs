//! How the text as a whole is made: repeated prompt, two responses, quotes, ending, no commas.

use super::super::{Check, CheckError};
use super::by;
use super::parameters::Parameters;
use crate::python;

pub(super) fn check(
    family: &str,
    name: &str,
    given: &Parameters<'_>,
) -> Option<Result<Box<dyn Check>, CheckError>> {
    Some(match (family, name) {
        ("combination", "two_responses") => Ok(by(are_two)),
        ("combination", "repeat_prompt") => given.text("prompt_to_repeat").map(|prompt| {
            let prompt = python::lower(python::strip(prompt));
            by(move |text| python::lower(python::strip(text)).starts_with(&prompt))
        }),
        ("startend", "end_checker") => given.trimmed("end_phrase").map(|phrase| {
            let phrase = python::lower(phrase);
            by(move |text| python::lower(python::strip(text).trim_matches('"')).ends_with(&phrase))
        }),
        ("startend", "quotation") => Ok(by(|text| {
            let text = python::strip(text);
            text.len() > 1 && text.starts_with('"') && text.ends_with('"')
        })),
        ("punctuation", "no_comma") => Ok(by(|text| !text.contains(','))),
        _ => return None,
    })
}

/// Two responses that differ, with six asterisks between them.
fn are_two(text: &str) -> bool {
    let pieces: Vec<&str> = text.split("******").map(python::strip).collect();
    let last = pieces.len().saturating_sub(1);
    let has_gap = pieces.iter().enumerate().any(|(at, piece)| piece.is_empty() && at != 0 && at != last);
    let filled: Vec<&str> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
    !has_gap && matches!(filled[..], [first, second] if first != second)
}
