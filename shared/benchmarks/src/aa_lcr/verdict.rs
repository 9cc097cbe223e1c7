//! Parses judges' replies, for both versions of the protocol.

use crate::python;
use crate::scorers::judged::{json_object, strip_fence};
use serde_json::{Map, Value};

const VERDICT: &str = "verdict";
const CORRECT: &str = "correct";
const INCORRECT: &str = "incorrect";

/// Words that negate or weaken the word after them.
const DOUBTS: [&str; 24] = [
    "not",
    "no",
    "never",
    "neither",
    "nor",
    "cannot",
    "cant",
    "isnt",
    "wasnt",
    "arent",
    "doesnt",
    "didnt",
    "wouldnt",
    "hardly",
    "barely",
    "partially",
    "partly",
    "mostly",
    "almost",
    "nearly",
    "somewhat",
    "half",
    "semi",
    "non",
];
/// Words that deny the word before them.
const DENIALS: [&str; 4] = ["no", "not", "false", "nope"];
/// Maximum number of words between a doubt and the verdict that it affects, within a sentence.
const DOUBT_WORDS_MAX: usize = 4;

/// Reads a reply of version 1.0: the requested word, which may be in a sentence or be the `verdict` value of a JSON
/// object. A reply that contains both words, or denies or weakens one of them, has no verdict.
///
/// # Errors
/// Returns a short reason if the reply has no verdict.
pub(super) fn read_1_0(reply: &str) -> Result<bool, String> {
    let text = python::strip(strip_fence(reply));
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.starts_with(['{', '[']) {
        // Other members of the object don't count.
        let object = json_object(text)?;
        return match object.get(VERDICT) {
            Some(Value::String(value)) => verdict_in_words(value),
            _ => Err("its JSON has no `verdict` in words".to_owned()),
        };
    }
    verdict_in_words(text)
}

/// Reads a reply of version 1.1: a JSON object whose only key is `verdict`.
///
/// # Errors
/// Returns a short reason if the reply has no verdict.
pub(super) fn read_1_1(reply: &str) -> Result<bool, String> {
    let object: Map<String, Value> = json_object(reply)?;
    let verdict = object.get(VERDICT).filter(|_| object.len() == 1);
    let verdict = verdict.ok_or_else(|| "its JSON has other keys than `verdict`".to_owned())?;
    match verdict.as_str() {
        Some(value) if value.eq_ignore_ascii_case(CORRECT) => Ok(true),
        Some(value) if value.eq_ignore_ascii_case(INCORRECT) => Ok(false),
        _ => Err("its verdict is neither CORRECT nor INCORRECT".to_owned()),
    }
}

/// Returns the verdict that a text states as a whole word.
fn verdict_in_words(text: &str) -> Result<bool, String> {
    let mut found: Option<bool> = None;
    // True if the last word was a verdict, which the next word may deny.
    let mut follows_verdict = false;
    // Number of words since the last doubt in this sentence.
    let mut doubt: Option<usize> = None;
    for token in tokens(text) {
        let word = match token {
            Token::End => {
                doubt = None;
                continue;
            }
            Token::Word(word) => word,
        };
        if follows_verdict && DENIALS.contains(&word.as_str()) {
            return Err("it denies its verdict".to_owned());
        }
        let verdict = match word.as_str() {
            CORRECT => Some(true),
            INCORRECT => Some(false),
            _ => None,
        };
        follows_verdict = verdict.is_some();
        if let Some(verdict) = verdict {
            if doubt.is_some_and(|ago| ago < DOUBT_WORDS_MAX) {
                return Err("it denies or weakens its verdict".to_owned());
            }
            if found.is_some_and(|found| found != verdict) {
                return Err("it says both CORRECT and INCORRECT".to_owned());
            }
            found = Some(verdict);
        }
        doubt = if DOUBTS.contains(&word.as_str()) { Some(0) } else { doubt.map(|ago| ago + 1) };
    }
    found.ok_or_else(|| "it says neither CORRECT nor INCORRECT".to_owned())
}

enum Token {
    /// Letters, digits, `_` and inner hyphens, in lowercase and without apostrophes.
    Word(String),
    /// The end of a sentence.
    End,
}

fn tokens(text: &str) -> impl Iterator<Item = Token> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'' | '’' | '-' | '‐' | '‑');
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            if is_word(first) {
                let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                rest = after;
                let plain = word.to_lowercase().replace(['\'', '’'], "");
                // Emphasis and list marks aren't part of the word.
                return Some(Token::Word(plain.trim_matches(['_', '-']).to_owned()));
            }
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            if matches!(first, '.' | '!' | '?' | ';' | '\n') {
                return Some(Token::End);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const YES: Option<bool> = Some(true);
    const NO: Option<bool> = Some(false);

    #[test]
    fn each_version_reads_replies_by_its_own_rules() {
        for (reply, first, second) in [
            ("CORRECT", YES, None),
            ("INCORRECT", NO, None),
            ("correct.", YES, None),
            ("**CORRECT**", YES, None),
            ("The answer is INCORRECT", NO, None),
            ("NOT CORRECT", None, None),
            ("CORRECT. It is not incorrect.", None, None),
            ("", None, None),
            (" \n", None, None),
            ("{\"verdict\":\"CORRECT\"}", YES, YES),
            ("{\"verdict\":\"incorrect\"}", NO, NO),
            ("{\"verdict\":\"CORRECT\",\"why\":\"x\"}", YES, None),
            ("{\"verdict\":true}", None, None),
            // More cases.
            ("```json\n{\"verdict\":\"CORRECT\"}\n```", YES, None),
            ("{\"verdict\":\"CORRECT\"} {\"verdict\":\"CORRECT\"}", None, None),
            ("{\"verdict\":\"CORRECT\",\"verdict\":\"INCORRECT\"}", None, None),
            ("{\"verdict\":\"maybe\"}", None, None),
            ("{\"correct\":false}", None, None),
            ("{\"correct\":\"CORRECT\"}", None, None),
            ("[\"CORRECT\"]", None, None),
            ("\"CORRECT\"", YES, None),
            ("_Incorrect_", NO, None),
            ("INCORRECT, the year does not match.", NO, None),
            ("The candidate does not name the year. INCORRECT", NO, None),
            ("It isn't correct", None, None),
            ("It isn’t entirely correct.", None, None),
            ("Partially correct", None, None),
            ("not incorrect", None, None),
            ("CORRECT or INCORRECT", None, None),
            ("Correct? No.", None, None),
            ("correct: false", None, None),
            ("in-correct", None, None),
            ("- CORRECT", YES, None),
            ("uncorrect", None, None),
            ("correctness", None, None),
            ("CORRECT_ANSWER", None, None),
            ("I think that the answer is good.", None, None),
        ] {
            assert_eq!(read_1_0(reply).ok(), first, "1.0: {reply}");
            assert_eq!(read_1_1(reply).ok(), second, "1.1: {reply}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_replies_are_read(reply in any::<String>()) {
            let _ = read_1_1(&reply);
            let lower = reply.to_lowercase();
            if read_1_0(&reply).is_ok() {
                prop_assert!(lower.contains(CORRECT));
            }
        }

        #[test]
        fn prose_without_the_words_has_no_verdict(reply in "([a-bd-z]{1,8}[ .,\n]){0,40}") {
            prop_assert!(read_1_0(&reply).is_err() && read_1_1(&reply).is_err());
        }
    }
}
