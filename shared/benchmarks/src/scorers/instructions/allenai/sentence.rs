//! Instructions about each sentence.

use super::super::fn_check::fn_check;
use super::super::text;
use super::CheckResult;
use super::marks;
use super::parameters::{Parameters, amount};
use crate::python;

/// Creates the check of an instruction in the family `sentence`.
pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<CheckResult> {
    Some(match name {
        "alliteration_increment" => Ok(fn_check(alliterates_more_and_more)),
        "keyword" => keyword(parameters),
        "increment" => parameters.number("small_n").map(|step| fn_check(move |text| grows_by(text, step))),
        _ => return None,
    })
}

/// Counts words in runs of adjacent words with the same first letter: the first pair of a run counts two, each further
/// word one.
fn alliteration(sentence: &str) -> usize {
    let sentence = python::lower(sentence);
    let mut words = python::split(&sentence).filter_map(|token| marks::trim_start(token).chars().next());
    let mut sum = 0;
    let mut in_run = false;
    let Some(mut previous) = words.next() else { return 0 };
    for first in words {
        let is_same = first == previous;
        if is_same {
            sum += if in_run { 1 } else { 2 };
        }
        in_run = is_same;
        previous = first;
    }
    sum
}

fn alliterates_more_and_more(text: &str) -> bool {
    let sums = text::sentences(text).into_iter().map(alliteration);
    sums.is_sorted_by(|before, after| before < after)
}

fn keyword(parameters: &Parameters<'_>) -> CheckResult {
    let word = parameters.word("word")?;
    let place = parameters.number("N")?;
    Ok(fn_check(move |text| {
        let sentences = text::sentences(text);
        // `N` = 0 selects the last sentence, as index -1 does in Python.
        let sentence = if place == 0.0 { sentences.last() } else { sentences.get(index(place)) };
        amount(sentences.len()) >= place && sentence.is_some_and(|sentence| word.is_found(sentence))
    }))
}

/// Converts a position counted from 1 to an index, dropping its fraction.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturation is fine: a huge index is out of range, too
fn index(place: f64) -> usize {
    (place - 1.0) as usize
}

/// Returns true if each sentence has `step` words more than the one before.
fn grows_by(text: &str, step: f64) -> bool {
    let lengths = text::sentences(text)
        .into_iter()
        .map(|sentence| amount(python::split(&marks::remove_marks(sentence)).count()))
        .collect::<Vec<_>>();
    !lengths.is_empty() && lengths.is_sorted_by(|before, after| *after == before + step)
}
