//! Trees of values with line numbers, from TOML and YAML within bounds, and typed access to their fields.

use std::collections::BTreeMap;

use crate::refusal::{FormatProblem, Refusal};

mod fields;
mod toml;
mod yaml;

pub(crate) use fields::Fields;

/// Maximum size of a configuration file, in bytes.
pub(crate) const CONFIG_BYTES_MAX: usize = 1 << 20;
/// Maximum number of values in a file, aliases expanded.
const VALUES_MAX: usize = 50_000;
/// Maximum depth of nested values.
const DEPTH_MAX: usize = 40;

/// Value with the line where it starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) line: u32,
    pub(crate) value: Value,
}

/// Value of a configuration file. Dates of TOML are texts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Table),
}

/// Entries of a table, each with the line of its key.
pub(crate) type Table = BTreeMap<String, (u32, Node)>;

impl Value {
    /// Returns the name of the type with its article.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "empty",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// Converts the value to JSON. Numbers that JSON doesn't have become null.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Integer(value) => (*value).into(),
            Self::Float(value) => (*value).into(),
            Self::Text(value) => value.as_str().into(),
            Self::List(nodes) => nodes.iter().map(|node| node.value.to_json()).collect(),
            Self::Table(table) => {
                table.iter().map(|(key, (_, node))| (key.clone(), node.value.to_json())).collect()
            }
        }
    }
}

impl Node {
    /// Parses TOML. `file` is named in refusals.
    pub(crate) fn parse_toml(file: &str, bytes: &[u8]) -> Result<Self, Refusal> {
        toml::parse(file, check_text(file, bytes)?)
    }

    /// Parses one YAML document. `file` is named in refusals.
    pub(crate) fn parse_yaml(file: &str, bytes: &[u8]) -> Result<Self, Refusal> {
        yaml::parse(file, check_text(file, bytes)?)
    }

    /// Returns the line of the only field with a name and a property, in any table but that of metadata; `None` if there
    /// are several.
    pub(crate) fn only_line_of(
        &self,
        is_named: &dyn Fn(&str) -> bool,
        is_wanted: &dyn Fn(&Value) -> bool,
    ) -> Option<u32> {
        let mut lines = Vec::new();
        self.add_lines_of(is_named, is_wanted, &mut lines);
        match lines.as_slice() {
            [line] => Some(*line),
            _ => None,
        }
    }

    fn add_lines_of(
        &self,
        is_named: &dyn Fn(&str) -> bool,
        is_wanted: &dyn Fn(&Value) -> bool,
        lines: &mut Vec<u32>,
    ) {
        match &self.value {
            Value::Table(table) => {
                for (key, (line, node)) in table.iter().filter(|(key, _)| *key != METADATA) {
                    if is_named(key) && is_wanted(&node.value) {
                        lines.push(*line);
                    } else {
                        node.add_lines_of(is_named, is_wanted, lines);
                    }
                }
            }
            Value::List(nodes) => {
                for node in nodes {
                    node.add_lines_of(is_named, is_wanted, lines);
                }
            }
            _ => {}
        }
    }

    /// Returns the line of the longest part of the path that exists, looking into keys and positions.
    pub(crate) fn find_line(&self, path: &[&str]) -> u32 {
        let mut line = self.line;
        let mut node = self;
        for part in path {
            let next = match &node.value {
                Value::Table(table) => table.get(*part).map(|(key_line, node)| (*key_line, node)),
                Value::List(nodes) => {
                    part.parse().ok().and_then(|index: usize| nodes.get(index)).map(|node| (node.line, node))
                }
                _ => None,
            };
            let Some(next) = next else { break };
            (line, node) = next;
        }
        line
    }
}

/// Table of the configuration that may contain anything.
const METADATA: &str = "metadata";

/// Checks size and encoding. A byte order mark is removed.
fn check_text<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, Refusal> {
    if bytes.len() > CONFIG_BYTES_MAX {
        return Err(Refusal::file(file, FormatProblem::TooLarge { bytes_max: CONFIG_BYTES_MAX }));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::file(file, FormatProblem::NotUtf8))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Counts values, and refuses files with too many of them or too many levels.
#[derive(Default)]
struct Budget {
    values: usize,
}

impl Budget {
    fn take(&mut self, file: &str, line: u32, values: usize, depth: usize) -> Result<(), Refusal> {
        self.values = self.values.saturating_add(values);
        if self.values > VALUES_MAX || depth > DEPTH_MAX {
            let problem = FormatProblem::TooComplex { values_max: VALUES_MAX, depth_max: DEPTH_MAX };
            return Err(Refusal::line(file, line, problem));
        }
        Ok(())
    }
}
