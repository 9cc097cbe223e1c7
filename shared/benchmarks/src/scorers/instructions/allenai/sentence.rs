//! Instructions about each sentence.

use super::super::by::by;
use super::super::text;
use super::Made;
use super::marks;
use super::parameters::{Parameters, amount};
use crate::python;

/// The instruction of that name in the family `sentence`.
pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<Made> {
    Some(match name {
        "alliteration_increment" => Ok(by(alliterates_more_and_more)),
        "keyword" => keyword(parameters),
        "increment" => parameters.number("small_n").map(|step| by(move |text| grows_by(text, step))),
        _ => return None,
    })
}

/// Words in runs of neighbours with the same first letter: the first pair of a run is two, each further word one.
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

fn keyword(parameters: &Parameters<'_>) -> Made {
    let word = parameters.word("word")?;
    let place = parameters.number("N")?;
    Ok(by(move |text| {
        let sentences = text::sentences(text);
        // Sentence 0 is the last one, as a list of Python has it.
        let sentence = if place == 0.0 { sentences.last() } else { sentences.get(index(place)) };
        amount(sentences.len()) >= place && sentence.is_some_and(|sentence| word.is_found(sentence))
    }))
}

/// The index of a place counted from 1, without its fraction.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a huge place is beyond every list all the same
fn index(place: f64) -> usize {
    (place - 1.0) as usize
}

/// Whether each sentence has `step` words more than the one before.
fn grows_by(text: &str, step: f64) -> bool {
    let lengths = text::sentences(text)
        .into_iter()
        .map(|sentence| amount(python::split(&marks::without_marks(sentence)).count()))
        .collect::<Vec<_>>();
    !lengths.is_empty() && lengths.is_sorted_by(|before, after| *after == before + step)
}
