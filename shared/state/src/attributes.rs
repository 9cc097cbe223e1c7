//! Conversion between values and DynamoDB attributes.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use bench_domain::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::StateError;

pub(crate) type Record = HashMap<String, AttributeValue>;

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(crate) fn time(value: Timestamp) -> AttributeValue {
    number(value.as_micros())
}

/// Serializes JSON as text, so that `1.0` stays `1.0`.
pub(crate) fn json<T: Serialize + ?Sized>(what: &str, value: &T) -> Result<AttributeValue, StateError> {
    serde_json::to_string(value).map(AttributeValue::S).map_err(|error| StateError::damaged(what, error))
}

/// Reads the attributes of one record. Errors name the record and the attribute.
pub(crate) struct Reader<'a> {
    record: &'a Record,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(record: &'a Record) -> Self {
        Self { record }
    }

    pub(crate) fn key(&self) -> String {
        let part = |name| self.text_or_empty(name);
        format!("{}/{}", part("pk"), part("sk"))
    }

    fn bad(&self, name: &str, problem: &str) -> StateError {
        StateError::damaged(self.key(), format!("attribute `{name}` {problem}"))
    }

    pub(crate) fn maybe_text(&self, name: &str) -> Option<&'a str> {
        self.record.get(name).and_then(|value| value.as_s().ok()).map(String::as_str)
    }

    pub(crate) fn text_or_empty(&self, name: &str) -> &'a str {
        self.maybe_text(name).unwrap_or_default()
    }

    pub(crate) fn text(&self, name: &str) -> Result<&'a str, StateError> {
        self.maybe_text(name).ok_or_else(|| self.bad(name, "is missing"))
    }

    pub(crate) fn maybe_number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, StateError> {
        match self.record.get(name).and_then(|value| value.as_n().ok()) {
            Some(digits) => digits.parse().map(Some).map_err(|_| self.bad(name, "is not a number in range")),
            None => Ok(None),
        }
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, StateError> {
        self.maybe_number(name)?.ok_or_else(|| self.bad(name, "is missing"))
    }

    pub(crate) fn number_or<T: std::str::FromStr>(&self, name: &str, other: T) -> Result<T, StateError> {
        Ok(self.maybe_number(name)?.unwrap_or(other))
    }

    /// Reads a count, even one out of range: a count that an older version let grow beyond all bounds reads as the
    /// largest number, and a negative one as 0.
    pub(crate) fn count_or(&self, name: &str, other: u64) -> Result<u64, StateError> {
        match self.record.get(name).and_then(|value| value.as_n().ok()) {
            None => Ok(other),
            Some(digits) => match digits.parse::<i128>() {
                Ok(count) => Ok(u64::try_from(count.max(0)).unwrap_or(u64::MAX)),
                // A decimal number with more digits is still a number.
                Err(_) => match digits.parse::<f64>() {
                    Ok(count) if count > 0.0 => Ok(u64::MAX),
                    Ok(_) => Ok(0),
                    Err(_) => Err(self.bad(name, "is not a number in range")),
                },
            },
        }
    }

    pub(crate) fn maybe_time(&self, name: &str) -> Result<Option<Timestamp>, StateError> {
        Ok(self.maybe_number(name)?.map(Timestamp::from_micros))
    }

    pub(crate) fn time(&self, name: &str) -> Result<Timestamp, StateError> {
        self.number(name).map(Timestamp::from_micros)
    }

    pub(crate) fn maybe_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StateError> {
        match self.maybe_text(name) {
            Some(json) => serde_json::from_str(json).map(Some).map_err(|e| self.bad(name, &e.to_string())),
            None => Ok(None),
        }
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, StateError> {
        self.maybe_json(name)?.ok_or_else(|| self.bad(name, "is missing"))
    }
}
