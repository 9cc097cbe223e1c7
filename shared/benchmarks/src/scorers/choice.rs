//! Multiple choice: extracts a letter from the reply and compares it with the gold letter.

mod gpqa;
mod three_stages;

use bench_domain::Answer;
use bench_items::{Item, Row, RowError};
use serde_json::{Map, Value, json};

use super::Scorer;
use crate::grading::Grading;
use crate::grading::{self, ParserResult};
use crate::metrics::guessing;

pub use gpqa::{GPQA_AUTHORS, SIMPLE_EVALS};
pub use three_stages::MMLU_PRO_API;

/// Result of a parser.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundLetter {
    /// Letter as written in the reply; `None` if none was found.
    pub letter: Option<char>,
    /// Additional values to record, such as the pattern that matched.
    pub detail: Map<String, Value>,
}

/// Parser that extracts the letter from a reply.
#[derive(Debug)]
pub struct LetterParser {
    /// Name in verdicts.
    pub name: &'static str,
    /// Extracts the letter.
    pub find: fn(&str) -> FoundLetter,
    /// Formats a letter so that the parser finds it.
    pub format_answer: fn(&str) -> String,
}

/// Accepts an answer if the extracted letter is the gold letter.
#[derive(Debug)]
pub struct ChoiceLetter {
    /// Parser that extracts the letter.
    pub parser: &'static LetterParser,
    /// Returns the gold letter.
    pub gold: fn(&Item) -> Result<char, RowError>,
    /// Returns the chance of guessing right, which is recorded if no letter was found; see [`guessing`].
    pub chance: fn(&Item) -> Option<f64>,
    /// Implementation of [`Scorer::score_row`].
    pub score_row: fn(&Row) -> Result<Item, RowError>,
}

impl Scorer for ChoiceLetter {
    fn expected(&self, item: &Item) -> String {
        (self.gold)(item).map(String::from).unwrap_or_default()
    }

    fn oracle(&self, item: &Item) -> String {
        (self.parser.format_answer)(&self.expected(item))
    }

    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        let Ok(gold) = (self.gold)(item) else { return grading::missing_gold_verdict().into() };
        let FoundLetter { letter, mut detail } = (self.parser.find)(&answer.text);
        detail.insert("parser".into(), json!(self.parser.name));
        if let (None, Some(chance)) = (letter, (self.chance)(item)) {
            guessing::record(&mut detail, chance);
        }
        let reason = match letter {
            Some(letter) if letter.is_ascii_lowercase() => {
                format!(
                    "The answer is a lower-case {letter}, which the protocol never takes for right; right is {gold}."
                )
            }
            Some(letter) => format!("The answer is {letter}; right is {gold}."),
            None => String::new(),
        };
        let correct = letter == Some(gold);
        grading::verdict_for(
            answer,
            ParserResult { extracted: letter.map(String::from), correct, reason, detail },
        )
        .into()
    }

    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        (self.score_row)(row)
    }
}

/// Returns the letter in the first of these columns that isn't null; `None` if all are.
///
/// # Errors
/// Returns an error if the column holds anything but one of the letters.
pub fn letter_in(row: &Row, columns: &[&str], letters: &str) -> Result<Option<char>, RowError> {
    let given = |column: &&str| row.get(*column).filter(|given| !given.is_null());
    let Some((column, given)) = columns.iter().find_map(|column| Some((column, given(column)?))) else {
        return Ok(None);
    };
    let letter = given.as_str().map(str::trim).and_then(|given| {
        let mut characters = given.chars();
        characters.next().filter(|_| characters.next().is_none())
    });
    let letter = letter.filter(|letter| letters.contains(*letter));
    letter.map(Some).ok_or_else(|| {
        let ends = letters.chars().next().zip(letters.chars().next_back());
        let (first, last) = ends.unwrap_or_default();
        RowError::column(column, format!("is not one of the letters {first} to {last}"))
    })
}
