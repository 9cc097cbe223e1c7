//! Reasons why orders of custom agents are rejected.

use bench_benchmarks::CUSTOM_CONTENT;
use bench_domain::Code;

/// Reason why an order of a custom agent is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CustomAgentProblem {
    /// A model was ordered, too.
    #[error("{}", NO_MODEL)]
    HasModel,
    /// The order names no uploaded agent.
    #[error(
        "the agent `custom` works on terminal tasks and is named by its content: order `tasks` with the agent option \
         `{CUSTOM_CONTENT}`, the content hash of an uploaded agent (on the command line `--agent custom --agent-folder DIR`)"
    )]
    NoContent,
    /// No agent of the caller has this content.
    #[error(
        "Agent not found: none of your agents has the content hash `{0}`; upload it with `POST /api/agents`"
    )]
    NotFound(String),
    /// The order lacks a variable that has no default.
    #[error(
        "the agent `{agent}` needs the variable `{variable}`: give it with the order as the option `env.{variable}` (on the \
         command line `--option env.{variable}=VALUE`), or add a default to its `agent.toml`: `${{{variable}:-VALUE}}`"
    )]
    NoVariable {
        /// Name of the agent.
        agent: String,
        /// Name of the variable.
        variable: String,
    },
}

/// Reason why custom agents have no model.
pub const NO_MODEL: &str = "the agent `custom` takes no model: programs in a task's container get no provider's key until there is \
    a gateway, and models that need no key are named by the agent itself; leave the model out";

impl CustomAgentProblem {
    /// Returns the stable code.
    pub const fn code(&self) -> Code {
        match self {
            Self::HasModel => Code::InvalidModel,
            Self::NoContent | Self::NoVariable { .. } => Code::InvalidRequest,
            Self::NotFound(_) => Code::AgentNotFound,
        }
    }
}
