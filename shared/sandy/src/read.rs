//! Fields of an answer, each checked for its kind.

use bench_domain::Timestamp;
use serde_json::{Map, Value};

/// Longest text that goes on, in characters.
const TEXT_CHARS_MAX: usize = 1_000;
/// Seconds since 1970 beyond this are milliseconds: the year 2603.
const SECONDS_MAX: f64 = 2e10;

/// A field that is not of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is not {kind}")]
pub(crate) struct NotThat {
    name: String,
    kind: &'static str,
}

impl NotThat {
    pub(crate) fn new(name: impl Into<String>, kind: &'static str) -> Self {
        Self { name: name.into(), kind }
    }
}

/// The fields of an object. A field that is null counts as missing.
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    pub(crate) fn of(value: &'a Value, name: &str) -> Result<Self, NotThat> {
        value.as_object().map(Self).ok_or_else(|| NotThat::new(name, "an object"))
    }

    fn read<T>(
        &self,
        name: &str,
        kind: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, NotThat> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| NotThat::new(name, kind)),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, NotThat> {
        self.read(name, "true or false", Value::as_bool)
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, NotThat> {
        let cut = |text: &str| text.chars().take(TEXT_CHARS_MAX).collect();
        self.read(name, "a text", |value| value.as_str().map(cut))
    }

    /// A text of any length.
    pub(crate) fn long_text(&self, name: &str) -> Result<Option<String>, NotThat> {
        self.read(name, "a text", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, NotThat> {
        self.read(name, "a number", Value::as_f64)
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, NotThat> {
        self.read(name, "a whole number", integer)
    }

    pub(crate) fn time(&self, name: &str) -> Result<Option<Timestamp>, NotThat> {
        self.read(name, "a time", |value| match value {
            Value::String(text) => text.parse().ok(),
            value => value.as_f64().map(time_of_number),
        })
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<&'a Map<String, Value>>, NotThat> {
        self.read(name, "an object", Value::as_object)
    }
}

/// A whole number; `5.0` is one.
#[allow(clippy::cast_possible_truncation)] // checked to be whole and in range
pub(crate) fn integer(value: &Value) -> Option<i64> {
    let whole = |number: f64| number.fract() == 0.0 && number.abs() < 9.0e15;
    value.as_i64().or_else(|| value.as_f64().filter(|number| whole(*number)).map(|number| number as i64))
}

/// Seconds or milliseconds since 1970.
#[allow(clippy::cast_possible_truncation)] // saturates
fn time_of_number(number: f64) -> Timestamp {
    let seconds = if number.abs() > SECONDS_MAX { number / 1_000.0 } else { number };
    Timestamp::from_micros((seconds * 1_000_000.0) as i64)
}

/// The entries of a list.
pub(crate) fn list<T>(
    value: &Value,
    read: impl Fn(&Fields<'_>) -> Result<T, NotThat>,
) -> Result<Vec<T>, NotThat> {
    let entries = value.as_array().ok_or_else(|| NotThat::new("it", "a list"))?;
    entries.iter().map(|entry| read(&Fields::of(entry, "an entry")?)).collect()
}
