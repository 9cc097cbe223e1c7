//! The parsers of simple-evals and of GPQA's authors, as scans: each looks at every character a bounded number of
//! times.

use serde_json::{Map, json};

use super::{FoundLetter, LetterParser};

/// The parser of openai/simple-evals at ee3b0318: the first `Answer: X`, upper or lower case, `A` to `D`.
pub static SIMPLE_EVALS: LetterParser = LetterParser {
    name: "simple_evals",
    find: |reply| FoundLetter { letter: simple_evals(reply), detail: Map::new() },
    say: |letter| format!("Answer: {letter}"),
};

/// The parser of idavidrein/gpqa: a letter in parentheses, `A` to `D`.
pub static GPQA_AUTHORS: LetterParser = LetterParser {
    name: "gpqa_authors",
    find: |reply| {
        let found = authors(reply);
        let detail = Map::from_iter([("pattern".to_owned(), json!(found.map(|found| found.pattern)))]);
        FoundLetter { letter: found.map(|found| found.letter), detail }
    },
    say: |letter| format!("The correct answer is ({letter})."),
};

const LETTERS: [char; 4] = ['A', 'B', 'C', 'D'];

/// A letter that the authors' parser found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extraction {
    /// `A` to `D`.
    letter: char,
    /// Which of the five patterns found it, from 1.
    pattern: u8,
}

/// What stands before the letter in parentheses, in the order in which the authors look for it.
const BEFORE: [&str; 5] = ["answer is (", "Answer: (", "answer: (", "answer (", "("];

/// The authors' parser: of each pattern the first match alone counts, and when that is no letter of an option,
/// the next pattern is tried.
fn authors(reply: &str) -> Option<Extraction> {
    BEFORE.iter().zip(1..).find_map(|(before, pattern)| {
        let letter = first_in_parentheses(reply, before).filter(|found| LETTERS.contains(found))?;
        Some(Extraction { letter, pattern })
    })
}

/// The first single character that stands between `before` and `)`. It may be anything but a line feed.
fn first_in_parentheses(text: &str, before: &str) -> Option<char> {
    text.match_indices(before).find_map(|(at, _)| {
        let mut after = text.get(at + before.len()..)?.chars();
        let found = after.next().filter(|found| *found != '\n')?;
        (after.next() == Some(')')).then_some(found)
    })
}

/// The parser of simple-evals: the first `Answer: X`, upper or lower case. The letter comes as it is written.
fn simple_evals(reply: &str) -> Option<char> {
    reply.match_indices(['a', 'A']).find_map(|(at, _)| letter_after_answer(reply.get(at..)?))
}

/// The letter of a text that begins with `Answer: X`. Nothing is required after it.
fn letter_after_answer(text: &str) -> Option<char> {
    let text = strip_answer(text)?.trim_start_matches(BLANKS).strip_prefix(':')?;
    let text = text.trim_start_matches(BLANKS);
    let letter = text.strip_prefix('$').unwrap_or(text).chars().next()?;
    LETTERS.contains(&letter.to_ascii_uppercase()).then_some(letter)
}

const BLANKS: [char; 2] = [' ', '\t'];

/// What comes after `answer` in upper and lower case. Python takes `ſ` (U+017F) for a case of `s`, and no other
/// character beyond ASCII for a case of these letters.
fn strip_answer(text: &str) -> Option<&str> {
    let mut after = text.chars();
    let is_there = "answer".chars().all(|wanted| {
        after.next().is_some_and(|c| c.to_ascii_lowercase() == wanted || (wanted == 's' && c == 'ſ'))
    });
    is_there.then_some(after.as_str())
}

#[cfg(test)]
mod tests;
