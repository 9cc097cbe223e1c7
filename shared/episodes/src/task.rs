//! Task, agent and variables of an episode, and the names of its environments.

use std::collections::BTreeMap;

use bench_domain::Agent;
use bench_environments::{Environment, EnvironmentError, InvalidName, Labels};
use bench_terminal_tasks::CustomAgent;

use crate::TaskFiles;
use crate::stop::Stop;
use crate::thinker::Thinker;

/// Task, agent and variables of an episode.
#[derive(Debug, Clone, Copy)]
pub struct EpisodeTask<'a> {
    /// The task.
    pub files: &'a TaskFiles,
    /// The agent.
    pub agent: Agent,
    /// Files and settings of the agent `custom`; `None` for the others.
    pub custom: Option<&'a CustomAgent>,
    /// What the agent needs that asks a model; `None` for the others.
    pub thinker: Option<&'a Thinker>,
    /// Variables of the order, for the task's `${NAME}`.
    pub variables: &'a BTreeMap<String, String>,
    /// Labels of everything that the episode has at the container engine.
    pub labels: &'a Labels,
}

impl EpisodeTask<'_> {
    /// Returns the name of the agent in reports: `custom/NAME@VERSION` for a custom one.
    pub(crate) fn agent_name(&self) -> String {
        match self.custom {
            Some(custom) => format!("{}/{}", self.agent, custom.title()),
            None => self.agent.as_str().to_owned(),
        }
    }
}

/// Returns the name of the agent's environment in a round.
pub fn environment_name(nonce: &str) -> String {
    format!("episode-{nonce}")
}

/// Returns the name of the environment of a step's verifier.
pub(crate) fn verifier_name(nonce: &str, step: usize) -> String {
    format!("{}-v{step}", environment_name(nonce))
}

/// Creates the environment with this name.
pub(crate) fn environment(name: &str, task: &EpisodeTask<'_>) -> Result<Environment, Stop> {
    let name = name
        .parse()
        .map_err(|error: InvalidName| Stop::Failure(EnvironmentError::Invalid(error.to_string())))?;
    let content_hash = task.files.admitted.hash.to_string();
    Ok(Environment { name, labels: task.labels.clone(), content_hash })
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use bench_environments::EnvironmentName;

    use super::*;

    #[test]
    fn names_of_environments_are_valid() {
        let nonce = "f".repeat(32);
        for name in [environment_name(&nonce), verifier_name(&nonce, 999)] {
            assert!(EnvironmentName::from_str(&name).is_ok(), "{name}");
        }
    }
}
