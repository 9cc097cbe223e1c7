//! Texts and JSON that models and programs wrote, made fit to be shown.

use serde_json::{Map, Value};

/// The fields of an object; none of anything else.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// A text without NUL, which many clients cannot store.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "")
}

/// The same for all texts in an object, names included.
pub(super) fn clean_object(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (clean(&name), clean_value(value))).collect()
}

/// The same for all texts in a value.
pub(super) fn clean_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(values) => Value::Array(values.into_iter().map(clean_value).collect()),
        Value::Object(fields) => Value::Object(clean_object(fields)),
        other => other,
    }
}
