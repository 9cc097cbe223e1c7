//! Elements of a project, and checks that several kinds of elements share.

use bench_domain::similar::most_similar;
use serde_json::{Map, Value};

use super::{ComposePolicy, ComposeSource};
use crate::refusal::{ComposeProblem, Refusal};

/// Table of a project with the words for its refusals.
#[derive(Clone)]
pub(super) struct Element<'a> {
    pub(super) policy: &'a ComposePolicy,
    pub(super) sources: &'a [ComposeSource],
    owner: String,
    /// Path of the element in the project, and below it the path of the table.
    path: Vec<String>,
    /// Number of components of the path that name the element itself.
    owner_depth: usize,
    table: &'a Map<String, Value>,
}

impl<'a> Element<'a> {
    pub(super) fn new(
        policy: &'a ComposePolicy,
        sources: &'a [ComposeSource],
        owner: String,
        path: Vec<String>,
        table: &'a Map<String, Value>,
    ) -> Self {
        Self { policy, sources, owner, owner_depth: path.len(), path, table }
    }

    /// Iterates over the entries that are set. Null and empty values have no effect.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        self.table.iter().map(|(key, value)| (key.as_str(), value)).filter(|(_, value)| !is_unset(value))
    }

    /// Returns the last part of the element's path: the name of a service, a network or another element.
    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.table.get(key)
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(Value::as_str)
    }

    pub(super) fn object(&self, key: &str) -> Option<&'a Map<String, Value>> {
        self.get(key).and_then(Value::as_object)
    }

    /// Returns a table below a key.
    pub(super) fn inner<'b>(&self, key: &str, value: &'b Value) -> Result<Element<'b>, Refusal>
    where
        'a: 'b,
    {
        let Value::Object(table) = value else { return Err(self.refuse_value(key, value, "write a table")) };
        Ok(self.below(key, table))
    }

    /// Returns the tables of a list.
    pub(super) fn inner_list<'b>(&self, key: &str, value: &'b Value) -> Result<Vec<Element<'b>>, Refusal>
    where
        'a: 'b,
    {
        let Value::Array(values) = value else { return Err(self.refuse_value(key, value, "write a list")) };
        let tables = values.iter().enumerate().map(|(index, value)| {
            let Value::Object(table) = value else {
                return Err(self.refuse_value(key, value, "write a list of tables"));
            };
            Ok(self.below(key, table).at(index))
        });
        tables.collect()
    }

    /// Returns a table that the caller found below a key.
    pub(super) fn below<'b>(&self, key: &str, table: &'b Map<String, Value>) -> Element<'b>
    where
        'a: 'b,
    {
        Element { path: self.path_to(&[key]), table, ..self.clone() }
    }

    /// Returns the same element with another table.
    pub(super) fn with<'b>(&self, table: &'b Map<String, Value>) -> Element<'b>
    where
        'a: 'b,
    {
        Element { table, ..self.clone() }
    }

    /// Returns the same table as the element of a list.
    pub(super) fn at(self, index: usize) -> Self {
        Self { path: self.path_to(&[&index.to_string()]), ..self }
    }

    fn path_to(&self, keys: &[&str]) -> Vec<String> {
        self.path.iter().cloned().chain(keys.iter().map(|key| (*key).to_owned())).collect()
    }

    /// Creates a refusal at the line of a key.
    pub(super) fn refuse(&self, keys: &[&str], problem: ComposeProblem) -> Refusal {
        let path = self.path_to(keys);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        // The element may come from any of the files: the one with most of the path has it, and of two the first, which
        // extends the other.
        let places = self.sources.iter().rev().map(|source| (source.depth(&path), source));
        match places.max_by_key(|(depth, _)| *depth) {
            Some((depth, source)) if depth > 0 => {
                Refusal::line(source.file.clone(), source.root.find_line(&path), problem)
            }
            _ => Refusal::whole(problem),
        }
    }

    /// Returns the path of a key inside the element.
    fn key(&self, key: &str) -> String {
        self.path.iter().skip(self.owner_depth).map(String::as_str).chain([key]).collect::<Vec<_>>().join(".")
    }

    /// Creates the refusal of a key that isn't on the list.
    pub(super) fn refuse_key(&self, key: &str, _value: &Value, advice: &'static str) -> Refusal {
        self.refuse_other_key(key, &[], advice)
    }

    /// Creates the refusal of a key that isn't among these, and names the one that may be meant.
    pub(super) fn refuse_other_key(&self, key: &str, allowed: &[&str], advice: &'static str) -> Refusal {
        let meant = most_similar(key, allowed.iter().copied()).map(str::to_owned);
        let (owner, path) = (self.owner.clone(), self.key(key));
        self.refuse(&[key], ComposeProblem::KeyNotAllowed { owner, key: path, meant, advice })
    }

    /// Creates the refusal of a value that isn't on the list.
    pub(super) fn refuse_value(&self, key: &str, value: &Value, advice: &'static str) -> Refusal {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let problem = ComposeProblem::ValueNotAllowed {
            owner: self.owner.clone(),
            key: self.key(key),
            value: shown,
            advice,
        };
        self.refuse(&[key], problem)
    }

    /// Checks that a value is a text with a property.
    pub(super) fn expect_text(
        &self,
        key: &str,
        is_allowed: impl FnOnce(&str) -> bool,
        advice: &'static str,
    ) -> Result<(), Refusal> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(()),
            Some(Value::String(text)) if is_allowed(text) => Ok(()),
            Some(other) => Err(self.refuse_value(key, other, advice)),
        }
    }

    /// Checks a value with a predicate.
    pub(super) fn expect(
        &self,
        key: &str,
        value: &Value,
        is_allowed: impl FnOnce(&Value) -> bool,
        advice: &'static str,
    ) -> Result<(), Refusal> {
        if is_allowed(value) { Ok(()) } else { Err(self.refuse_value(key, value, advice)) }
    }

    /// Checks that all keys of the table are on a list.
    pub(super) fn expect_keys(&self, allowed: &[&str], advice: &'static str) -> Result<(), Refusal> {
        match self.entries().find(|(key, _)| !allowed.contains(key) && !key.starts_with("x-")) {
            Some((key, _)) => Err(self.refuse_other_key(key, allowed, advice)),
            None => Ok(()),
        }
    }
}

impl ComposeSource {
    /// Returns the number of components of the path that exist.
    fn depth(&self, path: &[&str]) -> usize {
        let mut lines = Vec::new();
        let mut node = &self.root;
        for part in path {
            let next = match &node.value {
                crate::node::Value::Table(table) => table.get(*part).map(|(_, node)| node),
                crate::node::Value::List(nodes) => {
                    part.parse().ok().and_then(|index: usize| nodes.get(index))
                }
                _ => None,
            };
            let Some(next) = next else { break };
            lines.push(next.line);
            node = next;
        }
        lines.len()
    }
}

/// Returns true for values with which a key has no effect.
pub(super) fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(table) => table.is_empty(),
        _ => false,
    }
}

/// Returns true for numbers, and texts that are numbers, from 0 to `max`.
pub(super) fn is_number_up_to(value: &Value, max: f64) -> bool {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number.is_some_and(|number| (0.0..=max).contains(&number))
}

/// Returns true for a text, or a list of texts.
pub(super) fn is_text_or_texts(value: &Value) -> bool {
    value.is_string() || is_texts(value)
}

/// Returns true for a list of texts.
pub(super) fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|values| values.iter().all(Value::is_string))
}

/// Returns true for a table of plain values.
pub(super) fn is_plain_table(value: &Value) -> bool {
    value.as_object().is_some_and(|table| table.values().all(|value| !value.is_object() && !value.is_array()))
}

/// Returns true if the path is a folder or inside it, without `.`, `..` and empty components.
pub(super) fn is_inside(path: &str, folder: &str) -> bool {
    let is_clean = |path: &str| {
        path.strip_prefix('/').is_some_and(|rest| {
            rest.split('/').all(|part| !matches!(part, "" | "." | "..")) && !path.contains(['\\', '\0'])
        })
    };
    let inner = path.strip_prefix(folder);
    is_clean(folder)
        && is_clean(path)
        && inner.is_some_and(|inner| inner.is_empty() || inner.starts_with('/'))
}
