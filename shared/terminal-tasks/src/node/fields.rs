//! Typed access to the fields of a table. Refusals name the file, the line and the path of the field.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Node, Table, Value};
use crate::refusal::{FormatProblem, Refusal};

/// Table of a configuration file with its path in the file.
///
/// Fields that nobody reads are ignored, as the formats demand.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    file: &'a str,
    path: String,
    line: u32,
    table: &'a Table,
}

impl<'a> Fields<'a> {
    /// Returns the root table of a file. An empty file is an empty table.
    pub(crate) fn root(file: &'a str, node: &'a Node) -> Result<Self, Refusal> {
        static EMPTY: Table = Table::new();
        let table = match &node.value {
            Value::Table(table) => table,
            Value::Null => &EMPTY,
            other => return Err(wrong_type(file, "the file", "a table", other, node.line)),
        };
        Ok(Self { file, path: String::new(), line: node.line, table })
    }

    /// Returns the file's name.
    pub(crate) fn file(&self) -> &'a str {
        self.file
    }

    /// Returns the path of a field in the file.
    pub(crate) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns the line of a field, or of the table if there is no such field.
    pub(crate) fn line(&self, key: &str) -> u32 {
        self.table.get(key).map_or(self.line, |(line, _)| *line)
    }

    /// Returns the keys of the table.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.table.keys().map(String::as_str)
    }

    /// Creates a refusal at a field.
    pub(crate) fn refuse(&self, key: &str, problem: impl Into<crate::refusal::Problem>) -> Refusal {
        Refusal::line(self.file, self.line(key), problem)
    }

    /// Creates the refusal of a value.
    pub(crate) fn invalid(&self, key: &str, value: impl Into<String>, expected: &'static str) -> Refusal {
        self.refuse(key, FormatProblem::InvalidValue { key: self.key(key), value: value.into(), expected })
    }

    /// Creates the refusal of two fields that contradict each other.
    pub(crate) fn conflict(&self, key: &str, other: &str) -> Refusal {
        self.refuse(key, FormatProblem::Conflict { key: self.key(key), other: self.key(other) })
    }

    /// Returns true if the table has the field, whatever its value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Returns the value of a field. Null counts as missing.
    pub(crate) fn value(&self, key: &str) -> Option<&'a Value> {
        self.table.get(key).map(|(_, node)| &node.value).filter(|value| **value != Value::Null)
    }

    fn typed<T>(
        &self,
        key: &str,
        expected: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.value(key) else { return Ok(None) };
        convert(value)
            .map(Some)
            .ok_or_else(|| wrong_type(self.file, &self.key(key), expected, value, self.line(key)))
    }

    /// Returns a string.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, Refusal> {
        self.typed(key, "a string", |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns a string that must exist.
    pub(crate) fn required_text(&self, key: &str) -> Result<&'a str, Refusal> {
        self.text(key)?.ok_or_else(|| self.refuse(key, FormatProblem::MissingField { key: self.key(key) }))
    }

    /// Returns a boolean.
    pub(crate) fn boolean(&self, key: &str) -> Result<Option<bool>, Refusal> {
        self.typed(key, "true or false", |value| match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        })
    }

    /// Returns a number. Integers are numbers, too.
    pub(crate) fn number(&self, key: &str) -> Result<Option<f64>, Refusal> {
        let number = self.typed(key, "a number", |value| match value {
            Value::Integer(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            _ => None,
        })?;
        match number {
            Some(value) if !value.is_finite() => Err(self.invalid(key, value.to_string(), "a finite number")),
            other => Ok(other),
        }
    }

    /// Returns an integer from 0.
    pub(crate) fn count(&self, key: &str) -> Result<Option<u64>, Refusal> {
        let value = self.typed(key, "an integer", |value| match value {
            Value::Integer(value) => Some(*value),
            // `2048.0` is an integer for the format's own program.
            Value::Float(value) if value.fract() == 0.0 && value.abs() < 1e15 => Some(*value as i64),
            _ => None,
        })?;
        value
            .map(|value| {
                u64::try_from(value).map_err(|_| self.invalid(key, value.to_string(), "an integer from 0"))
            })
            .transpose()
    }

    /// Returns a time in seconds, from 0.
    pub(crate) fn seconds(&self, key: &str) -> Result<Option<Duration>, Refusal> {
        let Some(value) = self.number(key)? else { return Ok(None) };
        let duration = Duration::try_from_secs_f64(value);
        duration.map(Some).map_err(|_| self.invalid(key, value.to_string(), "a number of seconds from 0"))
    }

    /// Returns a time limit in seconds, above 0.
    pub(crate) fn time_limit(&self, key: &str) -> Result<Option<Duration>, Refusal> {
        match self.seconds(key)? {
            Some(Duration::ZERO) => Err(self.invalid(key, "0", "a number of seconds above 0")),
            other => Ok(other),
        }
    }

    /// Returns a list of strings.
    pub(crate) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, Refusal> {
        self.typed(key, "a list of strings", |value| {
            let Value::List(nodes) = value else { return None };
            let texts = nodes.iter().map(|node| match &node.value {
                Value::Text(text) => Some(text.clone()),
                _ => None,
            });
            texts.collect()
        })
    }

    /// Returns a table whose values are strings.
    pub(crate) fn text_map(&self, key: &str) -> Result<BTreeMap<String, String>, Refusal> {
        let Some(fields) = self.table(key)? else { return Ok(BTreeMap::new()) };
        fields.keys().map(|name| Ok((name.to_owned(), fields.required_text(name)?.to_owned()))).collect()
    }

    /// Returns a table.
    pub(crate) fn table(&self, key: &str) -> Result<Option<Self>, Refusal> {
        let table = self.typed(key, "a table", |value| match value {
            Value::Table(table) => Some(table),
            _ => None,
        })?;
        Ok(table.map(|table| Self { file: self.file, path: self.key(key), line: self.line(key), table }))
    }

    /// Returns the nodes of a list; none if it is missing.
    pub(crate) fn list(&self, key: &str) -> Result<&'a [Node], Refusal> {
        let list = self.typed(key, "a list", |value| match value {
            Value::List(nodes) => Some(nodes.as_slice()),
            _ => None,
        })?;
        Ok(list.unwrap_or_default())
    }

    /// Returns the tables of a list; none if it is missing.
    pub(crate) fn tables(&self, key: &str) -> Result<Vec<Self>, Refusal> {
        let nodes = self.list(key)?.iter().enumerate();
        nodes.map(|(index, node)| self.element(key, index, node)).collect()
    }

    /// Returns an element of the list `key` as a table.
    pub(crate) fn element(&self, key: &str, index: usize, node: &'a Node) -> Result<Self, Refusal> {
        let path = format!("{}[{index}]", self.key(key));
        match &node.value {
            Value::Table(table) => Ok(Self { file: self.file, path, line: node.line, table }),
            other => Err(wrong_type(self.file, &path, "a table", other, node.line)),
        }
    }
}

fn wrong_type(file: &str, key: &str, expected: &'static str, found: &Value, line: u32) -> Refusal {
    let problem = FormatProblem::WrongType {
        key: key.to_owned(),
        expected: expected.into(),
        found: found.kind().into(),
    };
    Refusal::line(file, line, problem)
}
