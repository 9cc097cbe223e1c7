//! Multiple choice: a letter is found in the reply and compared with the right one.

mod stated;
mod three_stages;

use bench_domain::Answer;
use bench_items::{Item, Row, RowError};
use serde_json::{Map, Value, json};

use super::Scorer;
use crate::grading::Grading;
use crate::grading::{self, Finding};
use crate::metrics::guessing;

pub use stated::{GPQA_AUTHORS, SIMPLE_EVALS};
pub use three_stages::MMLU_PRO_API;

/// What a parser made of a reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundLetter {
    /// The letter, as it is written; `None` when none was found.
    pub letter: Option<char>,
    /// What else is worth recording, such as which pattern found it.
    pub detail: Map<String, Value>,
}

/// A way to find the letter in a reply.
#[derive(Debug)]
pub struct LetterParser {
    /// Its name in verdicts.
    pub name: &'static str,
    /// Finds the letter.
    pub find: fn(&str) -> FoundLetter,
    /// Says a letter in a form that it finds.
    pub say: fn(&str) -> String,
}

/// Takes an answer for right when the letter that is found in it is the right one.
#[derive(Debug)]
pub struct ChoiceLetter {
    /// How the letter is found.
    pub parser: &'static LetterParser,
    /// The letter that is right.
    pub gold: fn(&Item) -> Result<char, RowError>,
    /// The chance to be right by guessing, recorded where no letter was found; see [`guessing`].
    pub chance: fn(&Item) -> Option<f64>,
    /// [`Scorer::score_row`].
    pub score_row: fn(&Row) -> Result<Item, RowError>,
}

impl Scorer for ChoiceLetter {
    fn expected(&self, item: &Item) -> String {
        (self.gold)(item).map(String::from).unwrap_or_default()
    }

    fn oracle(&self, item: &Item) -> String {
        (self.parser.say)(&self.expected(item))
    }

    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        let Ok(gold) = (self.gold)(item) else { return grading::without_gold().into() };
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
        grading::settle(answer, Finding { extracted: letter.map(String::from), correct, reason, detail })
            .into()
    }

    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        (self.score_row)(row)
    }
}

/// The letter in the first of these columns that is not null; `None` where all of them are.
///
/// # Errors
/// When the column holds anything but one of the letters.
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
