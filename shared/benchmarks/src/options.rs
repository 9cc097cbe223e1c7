//! Options that only some benchmarks have, such as a release of the dataset.

use std::collections::BTreeMap;

use serde::Serialize;

/// Option values by name.
pub type Options = BTreeMap<String, String>;

/// Description of an option that a run may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OptionMetadata {
    /// Name of the option.
    pub name: &'static str,
    /// Meaning and allowed values.
    pub description: &'static str,
    /// Default value; empty if the option is unset by default.
    pub default: &'static str,
}

/// Unknown option, or an invalid value of an option, described in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionError(pub String);

impl OptionError {
    /// Creates the error for an unknown name.
    pub(crate) fn unknown(name: &str, known: &[OptionMetadata]) -> Self {
        let name: String = name.chars().take(64).collect();
        let known: Vec<&str> = known.iter().map(|option| option.name).collect();
        Self(match known.as_slice() {
            [] => format!("unknown option `{name}`; this benchmark has no options"),
            known => format!("unknown option `{name}`; this benchmark has {}", known.join(", ")),
        })
    }
}
