//! Instructions about the text as a whole: repeated prompt, two responses, quotes, ending, no commas.

use super::super::{Check, CheckError};
use super::fn_check;
use super::parameters::Parameters;
use crate::python;

pub(super) fn check(
    family: &str,
    name: &str,
    parameters: &Parameters<'_>,
) -> Option<Result<Box<dyn Check>, CheckError>> {
    Some(match (family, name) {
        ("combination", "two_responses") => Ok(fn_check(has_two_responses)),
        ("combination", "repeat_prompt") => parameters.text("prompt_to_repeat").map(|prompt| {
            let prompt = python::lower(python::strip(prompt));
            fn_check(move |text| python::lower(python::strip(text)).starts_with(&prompt))
        }),
        ("startend", "end_checker") => parameters.trimmed("end_phrase").map(|phrase| {
            let phrase = python::lower(phrase);
            fn_check(move |text| python::lower(python::strip(text).trim_matches('"')).ends_with(&phrase))
        }),
        ("startend", "quotation") => Ok(fn_check(|text| {
            let text = python::strip(text);
            text.len() > 1 && text.starts_with('"') && text.ends_with('"')
        })),
        ("punctuation", "no_comma") => Ok(fn_check(|text| !text.contains(','))),
        _ => return None,
    })
}

/// Returns true if the text has two different responses, separated by six asterisks.
fn has_two_responses(text: &str) -> bool {
    let pieces: Vec<&str> = text.split("******").map(python::strip).collect();
    let last = pieces.len().saturating_sub(1);
    let has_gap = pieces.iter().enumerate().any(|(at, piece)| piece.is_empty() && at != 0 && at != last);
    let filled: Vec<&str> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
    !has_gap && matches!(filled[..], [first, second] if first != second)
}
