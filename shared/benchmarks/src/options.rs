//! Settings of a benchmark of its own, such as a release of its dataset.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::benchmark::Benchmark;

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

/// The settings of a run that are not the default ones.
///
/// # Errors
/// What the benchmark says of a name or value that it does not know; for one without a value, that it has none.
pub fn chosen_options(benchmark: &dyn Benchmark, given: &Options) -> Result<Options, OptionError> {
    let given = given.iter().map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    let mut options: Options = given.collect();
    benchmark.under_options(&options)?;
    if let Some((name, _)) = options.iter().find(|(_, value)| value.is_empty()) {
        return Err(OptionError(format!("the option `{name}` has no value; left out it has its default")));
    }
    options.retain(|name, value| {
        !benchmark.options().iter().any(|option| option.name == name && option.default == value)
    });
    Ok(options)
}

/// All settings that count for a run: its own, and the defaults of the others.
pub fn effective_options(benchmark: &dyn Benchmark, given: &Options) -> Options {
    let defaults = benchmark.options().iter().filter(|option| !option.default.is_empty());
    let mut all: Options =
        defaults.map(|option| (option.name.to_owned(), option.default.to_owned())).collect();
    all.extend(given.iter().map(|(name, value)| (name.clone(), value.clone())));
    all
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
