//! Reads fields of an answer, and checks their types.

use bench_domain::Timestamp;
use serde_json::{Map, Value};

/// Maximum length of a text, in characters; the rest is dropped.
const TEXT_CHARS_MAX: usize = 1_000;
/// Numbers above this are milliseconds since 1970 instead of seconds: the year 2603.
const SECONDS_MAX: f64 = 2e10;

/// A field has the wrong type or is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is not {kind}")]
pub(crate) struct FieldError {
    name: String,
    kind: &'static str,
}

impl FieldError {
    pub(crate) fn new(name: impl Into<String>, kind: &'static str) -> Self {
        Self { name: name.into(), kind }
    }
}

/// The fields of an object. Null counts as missing.
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    pub(crate) fn new(value: &'a Value, name: &str) -> Result<Self, FieldError> {
        value.as_object().map(Self).ok_or_else(|| FieldError::new(name, "an object"))
    }

    fn read<T>(
        &self,
        name: &str,
        kind: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, FieldError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| FieldError::new(name, kind)),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, FieldError> {
        self.read(name, "true or false", Value::as_bool)
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, FieldError> {
        let cut = |text: &str| text.chars().take(TEXT_CHARS_MAX).collect();
        self.read(name, "a text", |value| value.as_str().map(cut))
    }

    /// Returns a text of any length.
    pub(crate) fn long_text(&self, name: &str) -> Result<Option<String>, FieldError> {
        self.read(name, "a text", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, FieldError> {
        self.read(name, "a number", Value::as_f64)
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, FieldError> {
        self.read(name, "a whole number", integer)
    }

    pub(crate) fn time(&self, name: &str) -> Result<Option<Timestamp>, FieldError> {
        self.read(name, "a time", |value| match value {
            Value::String(text) => text.parse().ok(),
            value => value.as_f64().map(time_from_number),
        })
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<&'a Map<String, Value>>, FieldError> {
        self.read(name, "an object", Value::as_object)
    }
}

/// Converts a whole number, such as `5` or `5.0`.
#[allow(clippy::cast_possible_truncation)] // checked to be whole and in range
pub(crate) fn integer(value: &Value) -> Option<i64> {
    let whole = |number: f64| number.fract() == 0.0 && number.abs() < 9.0e15;
    value.as_i64().or_else(|| value.as_f64().filter(|number| whole(*number)).map(|number| number as i64))
}

/// Converts seconds or milliseconds since 1970.
#[allow(clippy::cast_possible_truncation)] // saturates
fn time_from_number(number: f64) -> Timestamp {
    let seconds = if number.abs() > SECONDS_MAX { number / 1_000.0 } else { number };
    Timestamp::from_micros((seconds * 1_000_000.0) as i64)
}

/// Reads the entries of a list.
pub(crate) fn read_list<T>(
    value: &Value,
    read: impl Fn(&Fields<'_>) -> Result<T, FieldError>,
) -> Result<Vec<T>, FieldError> {
    let entries = value.as_array().ok_or_else(|| FieldError::new("it", "a list"))?;
    entries.iter().map(|entry| read(&Fields::new(entry, "an entry")?)).collect()
}
