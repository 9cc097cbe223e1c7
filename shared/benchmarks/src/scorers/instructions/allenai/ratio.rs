//! Instructions about shares and balances.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::super::by::by;
use super::super::text;
use super::Made;
use super::parameters::{Parameters, amount};
use crate::python;

/// How far the overlap may be from what is asked for, in percent.
const OVERLAP_TOLERANCE: f64 = 2.0;
/// Sentences that `ratio:sentence_words` asks for.
const EQUAL_SENTENCES: usize = 3;

/// NLTK's English stop words, as of the list of 198 entries. Since words are runs of word characters here, the
/// entries with an apostrophe never match, and the older list of 179 gives the same verdicts.
static STOP_WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| stop_words::lookup("en").unwrap_or_default().iter().copied().collect());

/// The instruction of that name in the family `ratio`.
pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<Made> {
    Some(match name {
        "stop_words" => parameters.number("percentage").map(|most| by(move |text| stop_words(text, most))),
        "sentence_type" => Ok(by(|text| {
            let [statements, questions, _] = endings(text);
            statements == 2 * questions
        })),
        "sentence_balance" => Ok(by(|text| {
            let [statements, questions, exclamations] = endings(text);
            statements == questions && questions == exclamations
        })),
        "overlap" => overlap(parameters),
        "sentence_words" => Ok(by(are_equally_long)),
        _ => return None,
    })
}

fn stop_words(text: &str, most: f64) -> bool {
    let mut all = 0;
    let mut stopping = 0;
    for word in text::words(text) {
        all += 1;
        stopping += usize::from(STOP_WORDS.contains(python::lower(word).as_str()));
    }
    all > 0 && amount(stopping) / amount(all) * 100.0 <= most
}

/// How many sentences end with `.`, with `?` and with `!`.
fn endings(text: &str) -> [usize; 3] {
    let mut counts = [0; 3];
    for sentence in text::sentences(text) {
        let kind = ['.', '?', '!'].iter().position(|&mark| sentence.ends_with(mark));
        if let Some(count) = kind.and_then(|kind| counts.get_mut(kind)) {
            *count += 1;
        }
    }
    counts
}

/// The different groups of three neighbouring characters, sorted, each as one number.
fn trigrams(text: &str) -> Vec<u64> {
    /// Bits of a code point.
    const BITS: u32 = 21;
    let mut window = 0;
    let windows = text.chars().map(|c| {
        window = (window << BITS | u64::from(c)) & ((1 << (3 * BITS)) - 1);
        window
    });
    let mut trigrams: Vec<u64> = windows.skip(2).collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    trigrams
}

fn overlap(parameters: &Parameters<'_>) -> Made {
    let reference = trigrams(parameters.text("reference_text")?);
    let percentage = parameters.number("percentage")?;
    Ok(by(move |text| {
        let trigrams = trigrams(text);
        if trigrams.is_empty() {
            return false;
        }
        let shared = trigrams.iter().filter(|trigram| reference.binary_search(trigram).is_ok()).count();
        let share = amount(shared) / amount(trigrams.len()) * 100.0;
        (percentage - OVERLAP_TOLERANCE..=percentage + OVERLAP_TOLERANCE).contains(&share)
    }))
}

fn are_equally_long(text: &str) -> bool {
    let sentences = text::sentences(text);
    let mut lengths = sentences.iter().map(|sentence| python::strip(sentence).chars().count());
    let first = lengths.next();
    sentences.len() == EQUAL_SENTENCES && lengths.all(|length| Some(length) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigrams_are_of_characters() {
        for (text, count) in [("", 0), ("ab", 0), ("abc", 1), ("aaaa", 1), ("日本語🎂", 2), ("abcabc", 3)]
        {
            assert_eq!(trigrams(text).len(), count, "{text:?}");
        }
        assert_eq!(trigrams("xab\u{10ffff}yab\u{10ffff}").len(), 5);
    }

    #[test]
    fn stop_words_are_those_of_nltk() {
        assert_eq!(STOP_WORDS.len(), 198);
        assert_eq!(STOP_WORDS.iter().filter(|word| !word.contains('\'')).count(), 153);
    }
}
