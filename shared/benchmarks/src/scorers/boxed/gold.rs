//! Reads gold answers, in the forms that the datasets use.

use bench_items::{Row, RowError};
use num_bigint::BigInt;
use serde_json::Value;

use crate::python;

/// Returns the gold answer of a row: the column `gold` or `answer`, a number or a text.
pub(crate) fn gold(row: &Row) -> Result<BigInt, RowError> {
    let present = |column: &&str| row.get(*column).is_some_and(|value| !value.is_null());
    let column = ["gold", "answer"].into_iter().find(present);
    let column = column.ok_or_else(|| RowError::column("answer", "is missing"))?;
    let value = match row.get(column) {
        Some(Value::String(text)) => parse_text(text),
        Some(Value::Number(number)) => parse_number(number),
        _ => None,
    };
    value.ok_or_else(|| RowError::column(column, "is not an integer"))
}

fn parse_number(number: &serde_json::Number) -> Option<BigInt> {
    if let Some(integer) = number.as_i64() {
        return Some(BigInt::from(integer));
    }
    #[allow(clippy::cast_possible_truncation)] // whole and below 2^53
    number
        .as_f64()
        .filter(|value| value.fract() == 0.0 && value.abs() < 9e15)
        .map(|value| BigInt::from(value as i64))
}

/// Parses an integer after removing dollar signs, whitespace and degree signs.
fn parse_text(text: &str) -> Option<BigInt> {
    let mut text = text.replace("^{\\circ}", "").replace("^\\circ", "");
    text.retain(|c| !matches!(c, '$' | '°') && !python::is_space(c));
    python::parse_int(&text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Option<String> {
        let row = Row::from_iter([("answer".to_owned(), value)]);
        gold(&row).ok().map(|gold| gold.to_string())
    }

    #[test]
    fn every_form_of_the_datasets_is_parsed() {
        for value in [
            json!(70),
            json!(70.0),
            json!("70"),
            json!("070"),
            json!(" $70$ "),
            json!("70^\\circ"),
            json!("$70^{\\circ}$"),
            json!("70°"),
        ] {
            assert_eq!(read(value.clone()).as_deref(), Some("70"), "{value}");
        }
        for value in [json!("seventy"), json!(""), json!(70.5), json!([70]), json!(true)] {
            assert_eq!(read(value.clone()), None, "{value}");
        }
    }
}
