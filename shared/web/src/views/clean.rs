//! Cleans texts and JSON that models and programs wrote.

use serde_json::{Map, Value};

/// Returns the fields of an object, or none for other values.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Removes NUL from a text, since many clients can't store it.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "")
}

/// Cleans all texts in an object, including names.
pub(super) fn clean_object(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (clean(&name), clean_value(value))).collect()
}

/// Cleans all texts in a value.
pub(super) fn clean_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(values) => Value::Array(values.into_iter().map(clean_value).collect()),
        Value::Object(fields) => Value::Object(clean_object(fields)),
        other => other,
    }
}
