//! Columns of a row, and the question that a protocol shows.

use std::borrow::Cow;

use bench_items::{Item, ROW_SIGN, Row, RowError};
use serde_json::{Value, json};

use super::{LETTERS, Protocol};
use crate::scorers::choice;

pub(super) const QUESTION: &str = "Question";
const RIGHT: &str = "Correct Answer";
const WRONG: [&str; 3] = ["Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"];
const DOMAIN: &str = "High-level domain";
/// Column of the dataset's own id.
pub(super) const RECORD_ID: &str = "Record ID";

/// Columns that items keep. The dataset has about 60 more, which aren't needed.
const KEPT: [&str; 8] = [QUESTION, RIGHT, WRONG[0], WRONG[1], WRONG[2], RECORD_ID, DOMAIN, "Subdomain"];

/// Index of the sample for which an item was prepared; not a column of the dataset.
const SAMPLE: &str = "sample";
/// Gold letter, for stored responses; not a column of the dataset.
const ANSWER: &str = "answer";

/// Question as a protocol shows it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DisplayedQuestion<'a> {
    pub(super) question: Cow<'a, str>,
    /// Options in display order, with their whitespace unchanged.
    pub(super) options: [Cow<'a, str>; 4],
    /// Letter of the right option.
    pub(super) gold: char,
}

/// Returns a text column, or a number column as it is written.
fn text<'a>(row: &'a Row, column: &str) -> Result<Cow<'a, str>, RowError> {
    let text = match row.get(column) {
        Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
        Some(Value::Number(number)) => Cow::Owned(number.to_string()),
        Some(Value::Null) | None => return Err(RowError::column(column, "is missing")),
        Some(_) => return Err(RowError::column(column, "is neither a text nor a number")),
    };
    if text.trim().is_empty() {
        return Err(RowError::column(column, "is empty"));
    }
    Ok(text)
}

/// Converts a row to an item. `index` counts the rows of the file from 0.
pub(super) fn item(index: u64, row: &Row) -> Result<Item, RowError> {
    for column in [QUESTION, RIGHT].into_iter().chain(WRONG) {
        text(row, column)?;
    }
    let domain = row.get(DOMAIN).and_then(Value::as_str).map(str::trim);
    let group = domain.filter(|domain| !domain.is_empty()).map(str::to_owned);
    let kept = KEPT.iter().filter_map(|column| Some(((*column).to_owned(), row.get(*column)?.clone())));
    Ok(Item::new(index.to_string(), group, kept.collect()))
}

/// Returns the question with its options in the order of a protocol and sample.
pub(super) fn display(item: &Item, protocol: Protocol) -> Result<DisplayedQuestion<'_>, RowError> {
    let row = &item.row;
    let index: u64 = item.id.parse().map_err(|_| RowError {
        column: None,
        problem: "the item's id is not the index of its row, on which the order of the options depends"
            .into(),
    })?;
    let sample = row.get(SAMPLE).and_then(Value::as_u64).and_then(|sample| u32::try_from(sample).ok());
    let columns = protocol.columns();
    let order = protocol.order(index, sample.unwrap_or(0));
    let column_of = |at: u8| columns.get(usize::from(at)).copied().unwrap_or(RIGHT);
    let [a, b, c, d] = order.map(|at| text(row, column_of(at)));
    let options = [a?, b?, c?, d?];
    let right = text(row, RIGHT)?;
    // Options can have equal texts. The first one that equals the right answer counts, as in every official script.
    let gold = LETTERS.chars().zip(&options).find(|(_, option)| **option == right);
    let gold = gold.map(|(letter, _)| letter).ok_or_else(|| RowError::column(RIGHT, "is not shown"))?;
    Ok(DisplayedQuestion { question: text(row, QUESTION)?, options, gold })
}

impl Protocol {
    /// Columns of the options, as ordered in the official script.
    const fn columns(self) -> [&'static str; 4] {
        let [one, two, three] = WRONG;
        match self {
            Self::SimpleEvals => [RIGHT, one, two, three],
            Self::Authors => [one, two, three, RIGHT],
        }
    }
}

/// Returns the gold letter.
pub(super) fn gold(item: &Item, protocol: Protocol) -> Result<char, RowError> {
    match given_letter(&item.row)? {
        Some(letter) => Ok(letter),
        None => display(item, protocol).map(|shown| shown.gold),
    }
}

/// Returns the gold letter of a stored response, if its line has one.
fn given_letter(row: &Row) -> Result<Option<char>, RowError> {
    choice::letter_in(row, &[ANSWER, "gold"], LETTERS)
}

/// Makes the item for a stored response, from its gold letter or from the dataset's columns and the row index, as in
/// `#12`. As everywhere, a number without `#` would be an id.
pub(super) fn score_row(row: &Row, protocol: Protocol) -> Result<Item, RowError> {
    if let Some(letter) = given_letter(row)? {
        let row = Row::from_iter([(ANSWER.to_owned(), json!(letter))]);
        return Ok(Item::new("", None, row));
    }
    if row.get(RIGHT).is_none_or(Value::is_null) {
        return Err(RowError::column(ANSWER, "is missing"));
    }
    let index = match row.get("item_id") {
        Some(Value::String(name)) => name.strip_prefix(ROW_SIGN).and_then(|index| index.parse().ok()),
        _ => None,
    };
    let index = index.ok_or_else(|| {
        RowError::column(
            "item_id",
            "is not the index of the row, such as `#12`, on which the order of the options depends",
        )
    })?;
    let item = item(index, row)?;
    display(&item, protocol)?;
    Ok(item)
}

/// Returns the item as one of its samples presents it; `None` if it is the same for all samples.
pub(super) fn for_sample(item: &Item, protocol: Protocol, sample: u32) -> Option<Item> {
    let has_letter = item.row.contains_key(ANSWER);
    (protocol == Protocol::SimpleEvals && !has_letter).then(|| {
        let mut item = item.clone();
        item.row.insert(SAMPLE.to_owned(), json!(sample));
        item
    })
}
