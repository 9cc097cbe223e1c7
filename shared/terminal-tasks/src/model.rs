//! Model of a terminal task, the same for all formats.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::network::NetworkPolicy;
use crate::variables::Variables;

mod artifact;
mod environment;
mod step;

pub use artifact::Artifact;
pub use environment::{Environment, HealthCheck, McpServer, McpTransport, OperatingSystem, Tpu};
pub use step::{
    AgentPhase, CollectHook, Grading, Keystrokes, PaneParser, Solution, Step, Verifier, VerifierEnvironment,
};

/// Format of a task's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskFormat {
    /// Harbor: `task.toml`.
    Harbor {
        /// Version that the file declares.
        schema_version: String,
    },
    /// Terminal-Bench 1: `task.yaml`.
    TerminalBench1,
}

/// Terminal task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Format of the folder.
    pub format: TaskFormat,
    /// Name that the task gives itself; `None` if the folder's name counts.
    pub name: Option<String>,
    /// Version of the task.
    pub version: Option<String>,
    /// Description for people.
    pub description: String,
    /// Words for searches.
    pub keywords: Vec<String>,
    /// Authors.
    pub authors: Vec<Author>,
    /// Free-form metadata, such as difficulty and category.
    pub metadata: Map<String, Value>,
    /// Source that the task names.
    pub source: Option<String>,
    /// Environment of the agent.
    pub environment: Environment,
    /// Steps, at least one. A task with one step without a name is a single-step task.
    pub steps: Vec<Step>,
    /// Combination of the rewards of several steps.
    pub reward_strategy: RewardStrategy,
}

impl Task {
    /// Returns true if each step has a solution.
    pub fn has_solution(&self) -> bool {
        self.steps.iter().all(|step| step.solution.is_some())
    }

    /// Returns true if the task has named steps.
    pub fn is_multi_step(&self) -> bool {
        self.steps.iter().any(|step| step.name.is_some())
    }

    /// Iterates over all environments: the agent's and those of separate verifiers.
    pub fn environments(&self) -> impl Iterator<Item = &Environment> {
        let verifiers = self.steps.iter().filter_map(|step| match &step.verifier.environment {
            VerifierEnvironment::Shared => None,
            VerifierEnvironment::Separate { environment, .. } => Some(environment.as_ref()),
        });
        std::iter::once(&self.environment).chain(verifiers)
    }

    /// Iterates over the network policies of all environments and phases.
    pub fn network_policies(&self) -> impl Iterator<Item = &NetworkPolicy> {
        let phases =
            self.steps.iter().flat_map(|step| step.agent.network.iter().chain(step.verifier.network.iter()));
        self.environments().map(|environment| &environment.network).chain(phases)
    }

    /// Iterates over all variables that an order may have to give.
    pub fn variables(&self) -> impl Iterator<Item = &Variables> {
        let steps = self.steps.iter().flat_map(|step| {
            let solution = match &step.solution {
                Some(Solution::Script { env, .. }) => Some(env),
                _ => None,
            };
            std::iter::once(&step.verifier.env).chain(solution)
        });
        self.environments().map(|environment| &environment.env).chain(steps)
    }

    /// Returns the maximum duration of an episode, without the agent's setup; `None` if a phase has no limit.
    pub fn time_limit(&self) -> Option<Duration> {
        let steps = self.steps.iter().map(|step| Some(step.agent.timeout? + step.verifier.timeout));
        let sum: Option<Duration> = steps.sum();
        Some(self.environment.build_timeout + sum?)
    }
}

/// Author of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Name.
    pub name: String,
    /// Address.
    pub email: Option<String>,
}

/// Combination of the rewards of several steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RewardStrategy {
    /// Mean over the steps with a reward, for each key; a missing key counts as 0.
    #[default]
    Mean,
    /// Reward of the last executed step.
    Final,
}

/// User of a command in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum User {
    /// Name, as in the image's `/etc/passwd`.
    Name(String),
    /// Number.
    Id(u32),
}
