//! Columns of a problem.

use std::borrow::Cow;

use bench_items::{Item, Row, RowError};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::columns::text;

pub(super) const QUESTION: &str = "question_content";
pub(super) const PUBLIC: &str = "public_test_cases";
pub(super) const PRIVATE: &str = "private_test_cases";
const METADATA: &str = "metadata";
const DATE: &str = "contest_date";

/// Tag for selecting problems in a run: the day of the contest, with the time unless it is midnight.
pub(super) const DATE_TAG: &str = "date";

/// Column of demo rows with a right program, written for this project.
pub(super) const REFERENCE: &str = "reference_solution";

/// Columns that items keep.
pub(super) const COLUMNS: [&str; 12] = [
    "question_title",
    QUESTION,
    "platform",
    "question_id",
    "contest_id",
    DATE,
    "starter_code",
    "difficulty",
    PUBLIC,
    PRIVATE,
    METADATA,
    REFERENCE,
];

/// Returns the value of a text column that may be missing or empty.
pub(super) fn optional_text<'a>(row: &'a Row, column: &str) -> Result<Option<&'a str>, RowError> {
    match row.get(column) {
        Some(Value::Null) | None => Ok(None),
        Some(_) => text(row, column).map(|text| Some(text).filter(|text| !text.is_empty())),
    }
}

/// Returns a column of tests unchanged: JSON text, or for private tests JSON text that may be encoded. A list is
/// converted to JSON.
pub(super) fn tests<'a>(row: &'a Row, column: &str) -> Result<Cow<'a, str>, RowError> {
    match row.get(column) {
        Some(list @ Value::Array(_)) => Ok(list.to_string().into()),
        _ => match text(row, column)? {
            "" => Err(RowError::column(column, "is empty")),
            text => Ok(text.into()),
        },
    }
}

/// Returns the number of tests in a column; `None` if they are encoded.
pub(super) fn test_count(row: &Row, column: &str) -> Option<usize> {
    let text = tests(row, column).ok()?;
    serde_json::from_str::<Vec<IgnoredAny>>(&text).ok().map(|tests| tests.len())
}

/// Returns the name of the method to call; `None` for a program that reads stdin and prints.
pub(super) fn method(row: &Row) -> Result<Option<String>, RowError> {
    let wrong = || RowError::column(METADATA, "is not the JSON text of an object");
    let metadata: Cow<'_, Value> = match row.get(METADATA) {
        Some(metadata @ Value::Object(_)) => Cow::Borrowed(metadata),
        _ => match optional_text(row, METADATA)? {
            None => return Ok(None),
            Some(text) => Cow::Owned(serde_json::from_str(text).map_err(|_| wrong())?),
        },
    };
    match metadata.as_object().ok_or_else(wrong)?.get("func_name") {
        Some(Value::Null) | None => Ok(None),
        Some(Value::String(name)) => Ok(Some(name.clone())),
        Some(_) => Err(RowError::column(METADATA, "has a func_name that is not a string")),
    }
}

/// Returns the date of the contest in the form of [`DATE_TAG`].
pub(super) fn date(row: &Row) -> Result<Option<String>, RowError> {
    let Some(text) = optional_text(row, DATE)? else { return Ok(None) };
    let wrong = || RowError::column(DATE, "is not a date of the form YYYY-MM-DD, with or without a time");
    let day = text.get(..10).filter(|day| is_day(day)).ok_or_else(wrong)?;
    let time = match text.get(10..).unwrap_or_default() {
        "" => "",
        rest => rest.strip_prefix(['T', ' ']).filter(|time| is_time(time)).ok_or_else(wrong)?,
    };
    let is_midnight = time.chars().all(|c| !c.is_ascii_digit() || c == '0');
    Ok(Some(if is_midnight { day.to_owned() } else { format!("{day}T{time}") }))
}

fn is_time(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || ":.".contains(c))
}

/// Returns true if the text is a calendar day, written YYYY-MM-DD.
pub(super) fn is_day(text: &str) -> bool {
    let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse::<u32>().ok(),
        false => None,
    };
    let mut parts = text.splitn(3, '-');
    let mut next = |length| parts.next().filter(|part| part.len() == length).and_then(number);
    let (Some(year), Some(month), Some(day)) = (next(4), next(2), next(2)) else { return false };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    };
    year > 0 && (1..=days).contains(&day)
}

/// Converts a row to an item; `None` if the row has no question.
pub(super) fn item(index: u64, mut row: Row) -> Result<Option<Item>, RowError> {
    match row.get(QUESTION) {
        Some(Value::Null) => return Ok(None),
        _ if text(&row, QUESTION)?.is_empty() => return Ok(None),
        _ => {}
    }
    let mut item = grading_item(&mut row)?;
    item.id = index.to_string();
    item.row = row;
    Ok(Some(item))
}

/// Makes an item from the columns that grading needs, and validates them.
pub(super) fn grading_item(row: &mut Row) -> Result<Item, RowError> {
    tests(row, PUBLIC)?;
    tests(row, PRIVATE)?;
    method(row)?;
    optional_text(row, "starter_code")?;
    let group = optional_text(row, "difficulty")?.map(str::to_owned);
    let date = date(row)?;
    row.retain(|column, _| COLUMNS.contains(&column.as_str()));
    let mut item = Item::new("", group, Row::new());
    item.tags.extend(date.map(|date| (DATE_TAG.to_owned(), date)));
    Ok(item)
}
