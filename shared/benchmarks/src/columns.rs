//! Reads columns of a row, in the types that datasets use for them.

use bench_items::{Row, RowError};
use serde_json::Value;

/// Returns the value of a text column.
pub fn text<'a>(row: &'a Row, column: &str) -> Result<&'a str, RowError> {
    match row.get(column) {
        Some(Value::String(text)) => Ok(text),
        Some(Value::Null) | None => Err(RowError::column(column, "is missing")),
        Some(_) => Err(RowError::column(column, "is not a string")),
    }
}

/// Returns the value of a column that is a text, or a number in file formats that have numbers. The value must not be
/// blank.
pub fn text_or_number(row: &Row, column: &str) -> Result<String, RowError> {
    let text = match row.get(column) {
        Some(Value::Number(number)) => number.to_string(),
        _ => text(row, column)?.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(RowError::column(column, "is empty"));
    }
    Ok(text)
}

/// Returns the value of a column that is a whole number, written as number or text; `None` if it is empty.
pub fn number(row: &Row, column: &str) -> Result<Option<u64>, RowError> {
    let wrong = || RowError::column(column, "is not a whole number");
    match row.get(column) {
        Some(Value::Null) | None => Ok(None),
        Some(Value::Number(number)) => number.as_u64().map(Some).ok_or_else(wrong),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) => text.trim().parse().map(Some).map_err(|_| wrong()),
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_and_numbers_are_read_in_both_types() {
        let row = json!({"a": "x", "n": 7, "t": " 7 ", "e": " ", "z": null, "f": 1.5, "l": []});
        let row = row.as_object().unwrap();
        assert_eq!(text(row, "a"), Ok("x"));
        assert_eq!(text(row, "n").unwrap_err().problem, "is not a string");
        assert_eq!(text_or_number(row, "n").as_deref(), Ok("7"));
        assert_eq!(text_or_number(row, "e").unwrap_err().problem, "is empty");
        assert_eq!(text_or_number(row, "z").unwrap_err().problem, "is missing");
        for (column, expected) in [("n", Some(7)), ("t", Some(7)), ("e", None), ("z", None), ("none", None)] {
            assert_eq!(number(row, column), Ok(expected), "{column}");
        }
        for column in ["a", "f", "l"] {
            assert_eq!(number(row, column).unwrap_err().column.as_deref(), Some(column));
        }
    }
}
