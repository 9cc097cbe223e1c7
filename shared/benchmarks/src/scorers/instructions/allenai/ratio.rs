//! Instructions about ratios and balance.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::super::fn_check::fn_check;
use super::super::text;
use super::CheckResult;
use super::parameters::{Parameters, amount};
use crate::python;

/// Maximum deviation of the overlap from the requested one, in percentage points.
const OVERLAP_TOLERANCE: f64 = 2.0;
/// Number of sentences required by `ratio:sentence_words`.
const EQUAL_SENTENCES: usize = 3;

/// NLTK's English stop words, from its list of 198 entries. Words are runs of word characters here, so the entries with
/// an apostrophe never match, and the older list of 179 entries gives the same verdicts.
static STOP_WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| stop_words::lookup("en").unwrap_or_default().iter().copied().collect());

/// Creates the check of an instruction in the family `ratio`.
pub(super) fn check(name: &str, parameters: &Parameters<'_>) -> Option<CheckResult> {
    Some(match name {
        "stop_words" => {
            parameters.number("percentage").map(|most| fn_check(move |text| stop_words(text, most)))
        }
        "sentence_type" => Ok(fn_check(|text| {
            let [statements, questions, _] = endings(text);
            statements == 2 * questions
        })),
        "sentence_balance" => Ok(fn_check(|text| {
            let [statements, questions, exclamations] = endings(text);
            statements == questions && questions == exclamations
        })),
        "overlap" => overlap(parameters),
        "sentence_words" => Ok(fn_check(are_equally_long)),
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

/// Counts the sentences that end with `.`, `?` and `!`.
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

/// Returns the distinct groups of three adjacent characters, each encoded as one number, sorted.
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

fn overlap(parameters: &Parameters<'_>) -> CheckResult {
    let reference = trigrams(parameters.text("reference_text")?);
    let percentage = parameters.number("percentage")?;
    Ok(fn_check(move |text| {
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
