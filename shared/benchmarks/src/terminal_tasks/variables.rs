//! Variables that a run gives to its tasks and to its custom agent, as options of the benchmark.

use std::collections::BTreeMap;

use bench_domain::Agent;

use super::agent::custom_content;
use crate::options::{OptionError, OptionMetadata, Options};

/// Beginning of the names of options that are variables.
const VARIABLE: &str = "env.";
/// Maximum length of a variable's name, in bytes.
const VARIABLE_BYTES_MAX: usize = 64;

/// Variables of the run.
pub(crate) const OPTION: OptionMetadata = OptionMetadata {
    name: "env.NAME",
    description: "value of the variable NAME, for tasks and custom agents that ask for it with `${NAME}`; it is stored with the run, so give no keys",
    default: "",
};

/// Returns the variables that a run's options give to its tasks and to its custom agent.
pub fn task_variables(options: Option<&Options>) -> BTreeMap<String, String> {
    let options = options.into_iter().flatten();
    let variables =
        options.filter_map(|(name, value)| Some((name.strip_prefix(VARIABLE)?.to_owned(), value.clone())));
    variables.collect()
}

/// Refuses variables in a run that has no custom agent, for benchmarks whose tasks ask for none.
pub(crate) fn refuse_without_custom_agent(options: &Options) -> Result<(), OptionError> {
    let variable = options.keys().find(|name| name.starts_with(VARIABLE));
    match variable.filter(|_| custom_content(options).is_none()) {
        Some(name) => Err(OptionError(format!(
            "`{name}` has no effect: the tasks ask for no variables, only agents of the kind `{}` do",
            Agent::Custom
        ))),
        None => Ok(()),
    }
}

/// Returns true for an option that is a variable.
///
/// # Errors
/// Fails for a variable without a valid name.
pub(crate) fn is_variable(name: &str) -> Result<bool, OptionError> {
    let Some(variable) = name.strip_prefix(VARIABLE) else { return Ok(false) };
    let is_plain = variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_plain || variable.is_empty() || variable.len() > VARIABLE_BYTES_MAX {
        return Err(OptionError(format!(
            "`{VARIABLE}` is followed by a variable's name: up to {VARIABLE_BYTES_MAX} letters, digits and `_`"
        )));
    }
    Ok(true)
}
