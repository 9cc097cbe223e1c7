//! A JSON object of which only known fields are accepted.

use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// Maximum number of entries of a list or map, and of characters of a text, in one field.
const ENTRIES_MAX: usize = 1024;
const CHARS_MAX: usize = 128 << 10;

/// Values that a field may have. `null` is always allowed, since clients send it for fields that aren't set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// Any text.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A number that isn't negative.
    Number,
    /// A list of texts, or one text.
    Texts,
    /// An object with texts as values.
    TextMap,
    /// An object with empty objects as values, as the engine's sets are written.
    Set,
    /// Nothing, in any of its forms: `""`, `0`, `false`, `[]` or `{}`. The string says what is allowed instead.
    Unset(&'static str),
    /// Only `null`, because an empty value has a meaning of its own.
    Null,
    /// Checked by other code.
    Elsewhere,
}

/// Checks an object at `place` against a table of all its allowed fields.
pub(crate) fn check_fields<'a>(
    place: &str,
    value: &'a mut Value,
    table: &[(&str, Rule)],
) -> Result<&'a mut Map<String, Value>, Refusal> {
    let Value::Object(fields) = value else {
        let what = if place.is_empty() { "the body" } else { place };
        return Err(Refusal::Malformed(format!("{what} must be a JSON object")));
    };
    for (name, value) in fields.iter() {
        let full_name = join(place, name);
        let Some((_, rule)) = table.iter().find(|(known, _)| known == name) else {
            let names: Vec<_> =
                table.iter().filter(|(_, rule)| !rule.is_unset()).map(|(name, _)| *name).collect();
            return Err(Refusal::field(full_name, format!("the fields {}", names.join(", "))));
        };
        if let Some(allowed) = rule.refuses(value) {
            return Err(Refusal::field(full_name, allowed));
        }
    }
    // A field that may only be unset isn't passed on, in whatever form.
    fields.retain(|name, value| {
        let is_unset = table.iter().any(|(known, rule)| known == name && rule.is_unset());
        !is_unset && !value.is_null()
    });
    Ok(fields)
}

/// Returns the full name of a field, such as `HostConfig.Privileged`.
pub(crate) fn join(place: &str, name: &str) -> String {
    let name: String = name.chars().take(100).collect();
    if place.is_empty() { name } else { format!("{place}.{name}") }
}

impl Rule {
    fn is_unset(self) -> bool {
        matches!(self, Self::Unset(_) | Self::Null)
    }

    /// Returns what is allowed, if `value` isn't.
    fn refuses(self, value: &Value) -> Option<String> {
        if value.is_null() {
            return None;
        }
        let (is_allowed, allowed) = match self {
            Self::Text => (is_text(value), "a text".to_owned()),
            Self::OneOf(texts) => {
                let names: Vec<_> = texts.iter().map(|text| format!("`{text}`")).collect();
                (value.as_str().is_some_and(|text| texts.contains(&text)), names.join(", "))
            }
            Self::Flag => (value.is_boolean(), "`true` or `false`".to_owned()),
            Self::Number => (value.is_u64(), "a number that isn't negative".to_owned()),
            Self::Texts => {
                let is_list = |list: &Vec<Value>| list.len() <= ENTRIES_MAX && list.iter().all(is_text);
                (is_text(value) || value.as_array().is_some_and(is_list), "a list of texts".to_owned())
            }
            Self::TextMap => {
                let is_map = |map: &Map<_, _>| map.len() <= ENTRIES_MAX && map.values().all(is_text);
                (value.as_object().is_some_and(is_map), "an object of texts".to_owned())
            }
            Self::Set => {
                let is_set = |map: &Map<_, _>| map.len() <= ENTRIES_MAX && map.values().all(is_unset);
                (value.as_object().is_some_and(is_set), "an object of empty objects".to_owned())
            }
            Self::Unset(allowed) => (is_unset(value), allowed.to_owned()),
            Self::Null => (false, "only `null`".to_owned()),
            Self::Elsewhere => (true, String::new()),
        };
        (!is_allowed).then_some(allowed)
    }
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() <= CHARS_MAX && !text.contains('\0'))
}

/// Returns true for all forms of a value that isn't set.
pub(crate) fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
