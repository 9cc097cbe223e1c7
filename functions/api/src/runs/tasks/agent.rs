//! Agents of orders.

use bench_domain::{Agent, Code};
use bench_web::ApiError;

/// Finds an agent by its name.
///
/// # Errors
/// 400 with the agents of this version.
pub(crate) fn find_agent(name: &str) -> Result<Agent, ApiError> {
    name.parse::<Agent>().map_err(|unknown| ApiError::new(Code::AgentNotSupported, unknown.to_string()))
}

/// Returns the name of the run's model. Agents that ask no model have a source of answers with their own name; for
/// those that do, this is where a model of this interface becomes one of OpenRouter.
pub(crate) const fn model_of(agent: Agent) -> &'static str {
    match agent {
        Agent::Oracle | Agent::Nop => agent.as_str(),
    }
}
