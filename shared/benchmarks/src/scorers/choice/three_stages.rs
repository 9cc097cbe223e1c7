//! Parser of MMLU-Pro: three patterns, tried one after the other.
//!
//! Protocol: TIGER-AI-Lab/MMLU-Pro at f418b116, `evaluate_from_api.py`.
//!
//! The patterns are implemented as scans instead of regular expressions, because the third one looks ahead over the
//! rest of the text at every letter, and its word boundary is Python's.

use serde_json::{Map, json};

use super::{FoundLetter, LetterParser};
use crate::python;

/// MMLU-Pro's parser: `answer is (X)`, else `Answer: X`, else the last letter that is a word of its own; from `A` to
/// `J`.
pub static MMLU_PRO_API: LetterParser =
    LetterParser { name: "mmlu_pro_api", find, format_answer: |letter| format!("The answer is ({letter}).") };

const LETTERS: &str = "ABCDEFGHIJ";

/// Letter that the parser found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extraction {
    /// Letter from `A` to `J`.
    letter: char,
    /// Number of the pattern that matched, from 1 to 3.
    stage: u8,
}

fn find(reply: &str) -> FoundLetter {
    let found = extract(reply);
    let detail = Map::from_iter([("stage".to_owned(), json!(found.map(|found| found.stage)))]);
    FoundLetter { letter: found.map(|found| found.letter), detail }
}

/// Extracts the answer from a reply. Removes bold marks first, as the official API script does.
fn extract(reply: &str) -> Option<Extraction> {
    find_in_stages(&reply.replace("**", ""))
}

fn find_in_stages(text: &str) -> Option<Extraction> {
    let stages = [after_answer_is, after_answer_colon, last_lone_letter];
    stages.iter().zip(1..).find_map(|(find, stage)| find(text).map(|letter| Extraction { letter, stage }))
}

fn leading_letter(text: &str) -> Option<char> {
    text.chars().next().filter(|c| LETTERS.contains(*c))
}

/// Returns the letter of the first `answer is X` or `answer is (X`. Any text may follow.
fn after_answer_is(text: &str) -> Option<char> {
    const WORDS: &str = "answer is ";
    text.match_indices(WORDS).find_map(|(at, _)| {
        let after = text.get(at + WORDS.len()..)?;
        leading_letter(after.strip_prefix('(').unwrap_or(after))
    })
}

/// Finds the first line with an `Answer: X` or `answer: X`, and returns the letter of the last one on it. The letter
/// itself may be on a later line.
fn after_answer_colon(text: &str) -> Option<char> {
    const WORD: &str = "nswer:";
    let mut found = None;
    for (at, _) in text.match_indices(WORD) {
        let (before, after) = (text.get(..at)?, text.get(at + WORD.len()..)?);
        let Some(start) = before.strip_suffix(['a', 'A']) else { continue };
        if let Some((line_end, _)) = found
            && start.len() > line_end
        {
            break;
        }
        if let Some(letter) = leading_letter(after.trim_start_matches(python::is_space)) {
            let line_end = match found {
                Some((line_end, _)) => line_end,
                None => after.find('\n').map_or(text.len(), |length| at + WORD.len() + length),
            };
            found = Some((line_end, letter));
        }
    }
    found.map(|(_, letter)| letter)
}

/// Returns the last letter that is a word of its own.
fn last_lone_letter(text: &str) -> Option<char> {
    let mut after = None;
    let mut characters = text.chars().rev().peekable();
    while let Some(c) = characters.next() {
        let is_alone = |neighbor: Option<&char>| neighbor.is_none_or(|&c| !python::is_word(c));
        if LETTERS.contains(c) && is_alone(after.as_ref()) && is_alone(characters.peek()) {
            return Some(c);
        }
        after = Some(c);
    }
    None
}

#[cfg(test)]
mod tests;
