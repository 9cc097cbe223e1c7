//! Parsers of simple-evals and of GPQA's authors, written as scans that examine each character a bounded number of
//! times.

use serde_json::{Map, json};

use super::{FoundLetter, LetterParser};

/// Parser of openai/simple-evals at ee3b0318: finds the first `Answer: X`, in any case, with a letter from `A` to `D`.
pub static SIMPLE_EVALS: LetterParser = LetterParser {
    name: "simple_evals",
    find: |reply| FoundLetter { letter: simple_evals(reply), detail: Map::new() },
    format_answer: |letter| format!("Answer: {letter}"),
};

/// Parser of idavidrein/gpqa: finds a letter from `A` to `D` in parentheses.
pub static GPQA_AUTHORS: LetterParser = LetterParser {
    name: "gpqa_authors",
    find: |reply| {
        let found = authors(reply);
        let detail = Map::from_iter([("pattern".to_owned(), json!(found.map(|found| found.pattern)))]);
        FoundLetter { letter: found.map(|found| found.letter), detail }
    },
    format_answer: |letter| format!("The correct answer is ({letter})."),
};

const LETTERS: [char; 4] = ['A', 'B', 'C', 'D'];

/// Letter that the authors' parser found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extraction {
    /// Letter from `A` to `D`.
    letter: char,
    /// Number of the pattern that matched, from 1 to 5.
    pattern: u8,
}

/// Texts before the letter in parentheses, in the order of the authors' patterns.
const PREFIXES: [&str; 5] = ["answer is (", "Answer: (", "answer: (", "answer (", "("];

/// Implements the authors' parser. Only the first match of each pattern counts; if it isn't the letter of an option,
/// the next pattern is tried.
fn authors(reply: &str) -> Option<Extraction> {
    PREFIXES.iter().zip(1..).find_map(|(prefix, pattern)| {
        let letter = first_in_parentheses(reply, prefix).filter(|found| LETTERS.contains(found))?;
        Some(Extraction { letter, pattern })
    })
}

/// Returns the first single character between `prefix` and `)`. It may be anything but a line feed.
fn first_in_parentheses(text: &str, prefix: &str) -> Option<char> {
    text.match_indices(prefix).find_map(|(at, _)| {
        let mut after = text.get(at + prefix.len()..)?.chars();
        let found = after.next().filter(|found| *found != '\n')?;
        (after.next() == Some(')')).then_some(found)
    })
}

/// Implements the parser of simple-evals: returns the letter of the first `Answer: X`, keeping its case.
/// written.
fn simple_evals(reply: &str) -> Option<char> {
    reply.match_indices(['a', 'A']).find_map(|(at, _)| letter_after_answer(reply.get(at..)?))
}

/// Returns the letter of a text that begins with `Answer: X`. Any text may follow.
fn letter_after_answer(text: &str) -> Option<char> {
    let text = strip_answer(text)?.trim_start_matches(BLANKS).strip_prefix(':')?;
    let text = text.trim_start_matches(BLANKS);
    let letter = text.strip_prefix('$').unwrap_or(text).chars().next()?;
    LETTERS.contains(&letter.to_ascii_uppercase()).then_some(letter)
}

const BLANKS: [char; 2] = [' ', '\t'];

/// Returns the text after a leading `answer` in any case. Python matches `ſ` (U+017F) with `s`, and no other non-ASCII
/// character with these letters.
fn strip_answer(text: &str) -> Option<&str> {
    let mut after = text.chars();
    let is_there = "answer".chars().all(|wanted| {
        after.next().is_some_and(|c| c.to_ascii_lowercase() == wanted || (wanted == 's' && c == 'ſ'))
    });
    is_there.then_some(after.as_str())
}

#[cfg(test)]
mod tests;
