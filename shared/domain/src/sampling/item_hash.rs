//! Hash that identifies an item across runs and systems, and the JSON form that it's computed from.

use std::fmt::Write;

use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

/// Number of hex digits of SHA-256 in an item hash.
const ITEM_HASH_DIGITS: usize = 16;

/// Returns the first 16 hex digits of SHA-256 of the item's identifying data: of the text itself if it is a string,
/// otherwise of [`python_json`].
#[must_use]
pub fn item_hash(data: &Value) -> String {
    match data {
        Value::String(text) => item_hash_of_text(text),
        data => item_hash_of_text(&python_json(data)),
    }
}

/// Returns the item hash of an item identified by a text.
#[must_use]
pub fn item_hash_of_text(text: &str) -> String {
    let mut hash = hex::encode(Sha256::digest(text.as_bytes()));
    hash.truncate(ITEM_HASH_DIGITS);
    hash
}

/// Returns the text of Python's `json.dumps(value, sort_keys=True)`: keys sorted by code point, `", "` and `": "` as
/// separators, everything but printable ASCII escaped, floats as Python writes them.
///
/// `serde_json` has already turned integers beyond 64 bits into floats, where Python keeps every digit.
#[must_use]
pub fn python_json(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => write_number(text, number),
        Value::String(string) => write_string(text, string),
        Value::Array(values) => {
            text.push('[');
            for (position, value) in values.iter().enumerate() {
                separate(text, position);
                write_value(text, value);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            // The map's own order depends on a feature of serde_json. UTF-8 sorts in the order of code points.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (position, (name, value)) in fields.into_iter().enumerate() {
                separate(text, position);
                write_string(text, name);
                text.push_str(": ");
                write_value(text, value);
            }
            text.push('}');
        }
    }
}

fn separate(text: &mut String, position: usize) {
    if position > 0 {
        text.push_str(", ");
    }
}

fn write_number(text: &mut String, number: &Number) {
    match number.as_f64() {
        Some(float) if number.is_f64() => write_float(text, float),
        _ => text.push_str(&number.to_string()),
    }
}

/// Writes `repr(float)`: the shortest digits that read back as the same value, with an exponent of at least two digits
/// below 10⁻⁴ and from 10¹⁶ on. The float is finite, since JSON has no other floats.
fn write_float(text: &mut String, float: f64) {
    let scientific = shortest_scientific(float.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if float.is_sign_negative() {
        text.push('-');
    }
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a String can't fail.
        let _ = write!(text, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    let digits = mantissa.replace('.', "");
    if exponent < 0 {
        text.push_str("0.");
        text.extend(std::iter::repeat_n('0', exponent.unsigned_abs() as usize - 1));
        text.push_str(&digits);
        return;
    }
    let whole = exponent.unsigned_abs() as usize + 1;
    match digits.split_at_checked(whole) {
        Some((whole, fraction)) if !fraction.is_empty() => {
            let _ = write!(text, "{whole}.{fraction}");
        }
        _ => {
            let _ = write!(text, "{digits:0<whole$}.0");
        }
    }
}

/// Returns the shortest digits that read back as `float`, in scientific notation. If two such texts are equally close,
/// Python writes the one with the even last digit and Rust the greater one. The digits are therefore rounded again, to
/// even, with the number of digits that Rust found sufficient.
fn shortest_scientific(float: f64) -> String {
    let shortest = format!("{float:e}");
    let mantissa = shortest.split_once('e').map_or("", |(mantissa, _)| mantissa);
    let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let rounded = format!("{float:.decimals$e}");
    // At a power of two the nearest text of that length may belong to the value below.
    if rounded.parse() == Ok(float) { rounded } else { shortest }
}

fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            ' '..='~' => text.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a String can't fail.
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::tests::vectors;
    use super::*;

    #[test]
    fn hashes_match_the_vectors() {
        let cases = vectors("item_hash");
        assert_eq!(cases.len(), 5);
        for case in &cases {
            let canonical = case["canonical"].as_str().unwrap();
            assert_eq!(item_hash(&case["data"]), case["hash"].as_str().unwrap());
            assert_eq!(item_hash_of_text(canonical), case["hash"].as_str().unwrap());
            if !case["data"].is_string() {
                assert_eq!(python_json(&case["data"]), canonical);
            }
        }
    }

    /// The expected texts were printed by CPython's `json.dumps`.
    #[test]
    fn floats_read_as_in_python() {
        let floats = [
            (1e16, "1e+16"),
            (1.5e16, "1.5e+16"),
            (1.234_567_890_123_456_8e17, "1.2345678901234568e+17"),
            (1e15, "1000000000000000.0"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e-5, "1e-05"),
            (-1.25e-7, "-1.25e-07"),
            (1e-4, "0.0001"),
            (-0.0, "-0.0"),
            (1e22, "1e+22"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (0.1, "0.1"),
            (100.0, "100.0"),
            (1e100, "1e+100"),
            (0.00123, "0.00123"),
            (12.5, "12.5"),
            // Halfway between two shortest texts.
            (-3_954_167_980_520_637.0 / 4.0, "-988541995130159.2"),
            (212_896_255_456_977.0 / 16.0, "13306015966061.062"),
            // A power of two, where the nearest text with as many digits is another value.
            (5.960_464_477_539_063e-8, "5.960464477539063e-08"),
        ];
        for (float, text) in floats {
            assert_eq!(python_json(&json!(float)), text);
        }
        assert_eq!(python_json(&json!([u64::MAX, i64::MIN])), "[18446744073709551615, -9223372036854775808]");
    }

    #[test]
    fn strings_and_key_order_are_as_in_python() {
        assert_eq!(
            python_json(&json!("\0\u{1f}\u{7f}\u{8}\u{c}\n\r\t\"\\/é🙂\u{2028}")),
            r#""\u0000\u001f\u007f\b\f\n\r\t\"\\/\u00e9\ud83d\ude42\u2028""#
        );
        assert_eq!(
            python_json(&json!({"é": 1, "z": 2, "🙂": 3, "\u{ffff}": 4, "": [], "a": {}})),
            r#"{"": [], "a": {}, "z": 2, "\u00e9": 1, "\uffff": 4, "\ud83d\ude42": 3}"#
        );
    }

    proptest! {
        #[test]
        fn the_text_is_ascii_and_reads_back(
            name in ".{0,8}", string in any::<String>(), float in any::<f64>(), int in any::<i64>(),
        ) {
            let float = if float.is_finite() { float } else { 0.5 };
            let value = json!({ name: [string, float, int], "fixed": null });
            let text = python_json(&value);
            prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }
}
