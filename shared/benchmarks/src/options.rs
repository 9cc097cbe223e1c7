//! Settings of a benchmark of its own, such as a release of its dataset.

use std::collections::BTreeMap;

use serde::Serialize;

/// Settings by name.
pub type Options = BTreeMap<String, String>;

/// A setting that a run may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OptionFacts {
    /// Its name.
    pub name: &'static str,
    /// What it does and what it may be.
    pub description: &'static str,
    /// What it is where a run does not say; empty: not set.
    pub default: &'static str,
}

/// A setting that a benchmark does not have, or that has no such value: one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionError(pub String);

impl OptionError {
    /// For a name that is not known.
    pub(crate) fn unknown(name: &str, known: &[OptionFacts]) -> Self {
        let name: String = name.chars().take(64).collect();
        let known: Vec<&str> = known.iter().map(|option| option.name).collect();
        Self(match known.as_slice() {
            [] => format!("there is no option `{name}`: this benchmark has none"),
            known => format!("there is no option `{name}`; this benchmark has {}", known.join(", ")),
        })
    }
}
