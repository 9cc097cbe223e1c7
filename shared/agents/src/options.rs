//! Options of agents, as orders give them: names and texts.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Maximum length of an option's value in bytes, and of a value in a message in characters.
const VALUE_BYTES_MAX: usize = 1_024;
const SHOWN_CHARS_MAX: usize = 50;

/// Error in the options of an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// The agent has no such option.
    #[error("agent `{agent}` has no option `{name}`; its options are {known}")]
    Unknown {
        /// Name of the agent.
        agent: &'static str,
        /// Name as given, without control characters, cut to 50 characters.
        name: String,
        /// All options of the agent.
        known: String,
    },
    /// The value isn't one that the option accepts.
    #[error("option `{name}` must be {expected}, not `{value}`")]
    Invalid {
        /// Name of the option.
        name: &'static str,
        /// Values that it accepts.
        expected: String,
        /// Value as given, without control characters, cut to 50 characters.
        value: String,
    },
    /// Two names of one option are given.
    #[error("option `{name}` is given twice, also as `{alias}`: leave one out")]
    Twice {
        /// Name of the option.
        name: &'static str,
        /// Other name.
        alias: &'static str,
    },
}

/// Reads options one by one, and refuses those that are left.
pub(crate) struct Options<'a> {
    agent: &'static str,
    left: BTreeMap<&'a str, &'a str>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    pub(crate) fn new(agent: &'static str, given: &'a BTreeMap<String, String>) -> Self {
        let left = given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Self { agent, left, known: Vec::new() }
    }

    /// Gives an option the value of one of its other names.
    pub(crate) fn alias(&mut self, name: &'static str, aliases: &[&'static str]) -> Result<(), OptionError> {
        for alias in aliases {
            if let Some(value) = self.left.remove(alias)
                && self.left.insert(name, value).is_some()
            {
                return Err(OptionError::Twice { name, alias });
            }
        }
        Ok(())
    }

    /// Reads a number within bounds.
    pub(crate) fn number<T: FromStr + PartialOrd + Display>(
        &mut self,
        name: &'static str,
        range: &RangeInclusive<T>,
    ) -> Result<Option<T>, OptionError> {
        let expected = || format!("a number from {} to {}", range.start(), range.end());
        self.read(name, expected, |value| value.parse().ok().filter(|number| range.contains(number)))
    }

    /// Reads `true` or `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, OptionError> {
        self.read(name, || "`true` or `false`".to_owned(), |value| value.to_ascii_lowercase().parse().ok())
    }

    /// Reads a value.
    pub(crate) fn read<T>(
        &mut self,
        name: &'static str,
        expected: impl FnOnce() -> String,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, OptionError> {
        self.known.push(name);
        let Some(value) = self.left.remove(name) else { return Ok(None) };
        match Some(value).filter(|value| value.len() <= VALUE_BYTES_MAX).and_then(parse) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(OptionError::Invalid { name, expected: expected(), value: shown(value) }),
        }
    }

    /// Refuses options that weren't read.
    pub(crate) fn finish(self) -> Result<(), OptionError> {
        let Some(name) = self.left.into_keys().next() else { return Ok(()) };
        let known: Vec<_> = self.known.iter().map(|name| format!("`{name}`")).collect();
        Err(OptionError::Unknown { agent: self.agent, name: shown(name), known: known.join(", ") })
    }
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}
