//! Keys and values of a configuration.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::rc::Rc;

use crate::error::{ConfigError, ErrorKind, Place};
use crate::parse::{self, Statement};
use crate::value::Value;

/// A configuration: values by key.
#[derive(Debug, Default)]
pub struct Config {
    values: BTreeMap<String, Value>,
}

impl Config {
    /// Reads a file.
    pub fn load(file: &str) -> Result<Self, ConfigError> {
        let text = read(file)?;
        let mut config = Self::default();
        let mut section = String::new();
        let mut assigned = HashSet::new();
        parse::parse(Rc::from(file), &text, |statement| {
            match statement {
                Statement::Section { path } => section = path,
                Statement::Assignment { place, path, value } => {
                    let key = joined(&section, &path);
                    if !assigned.insert(key.clone()) {
                        return Err(ConfigError::at(ErrorKind::Duplicate, place, format!("`{key}` is set twice in this file")));
                    }
                    config.set(key, value, place)?;
                }
            }
            Ok(())
        })?;
        Ok(config)
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// Returns all keys with their values, in byte order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    fn set(&mut self, key: String, value: Value, place: Place) -> Result<(), ConfigError> {
        if let Some(other) = self.conflicting(&key) {
            return Err(ConfigError::at(ErrorKind::Conflict, place, format!("`{key}` can't be set, since `{other}` is set")));
        }
        self.values.insert(key, value);
        Ok(())
    }

    /// Returns a key above or below `key`.
    fn conflicting(&self, key: &str) -> Option<String> {
        let above = key.match_indices('.').map(|(end, _)| &key[..end]).find(|above| self.values.contains_key(*above));
        if let Some(above) = above {
            return Some(above.to_owned());
        }
        let prefix = format!("{key}.");
        let (below, _) = self.values.range(prefix.clone()..).next()?;
        below.starts_with(&prefix).then(|| below.clone())
    }
}

fn joined(section: &str, path: &str) -> String {
    if section.is_empty() { path.to_owned() } else { format!("{section}.{path}") }
}

fn read(file: &str) -> Result<String, ConfigError> {
    fs::read_to_string(file).map_err(|error| ConfigError::Read { file: file.to_owned(), message: error.to_string() })
}
