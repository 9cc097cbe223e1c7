//! Official results, and their special forms.

use serde_json::Value;

/// Reads a file of official results.
pub(crate) fn vectors(name: &str) -> String {
    let path = format!("{}/../../tests/data/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Reads a number, or the form of one that isn't finite.
pub(crate) fn number(value: &Value) -> f64 {
    match &value["float"] {
        Value::String(name) => name.parse().unwrap(),
        _ => value.as_f64().unwrap(),
    }
}

/// Reads a text, or the code points of one with lone surrogates, which become U+FFFD.
pub(crate) fn text(value: &Value) -> String {
    match &value["code_points"] {
        Value::Array(codes) => {
            let code = |code: &Value| u32::try_from(code.as_u64().unwrap()).unwrap();
            codes.iter().map(|value| char::from_u32(code(value)).unwrap_or('\u{fffd}')).collect()
        }
        _ => value.as_str().unwrap().to_owned(),
    }
}

/// Returns true if two numbers are the same, also if both aren't numbers.
pub(crate) fn is_same(left: f64, right: f64) -> bool {
    left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan())
}
