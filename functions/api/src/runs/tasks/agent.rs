//! Agents of orders.

use std::collections::BTreeMap;

use bench_benchmarks::{Options, agent_option_names};
use bench_domain::{Agent, Code};
use bench_runs::{TERMINAL_TASKS, options};
use bench_web::ApiError;

/// Provider of the models that the interface of terminal tasks names.
const PROVIDER: &str = "openrouter";

/// Finds an agent by its name.
///
/// # Errors
/// 400 with the agents of this version.
pub(crate) fn find_agent(name: &str) -> Result<Agent, ApiError> {
    name.parse::<Agent>().map_err(|unknown| ApiError::new(Code::AgentNotSupported, unknown.to_string()))
}

/// Returns the name of the run's model for a task's own agent and model. Agents that ask no model have a source of answers
/// with their own name; the models of the others are those of OpenRouter.
pub(crate) fn model_of(agent: Agent, model: &str) -> String {
    match agent.asks_model() {
        true => format!("{PROVIDER}/{}", model.trim_start_matches("openrouter/")),
        false => agent.as_str().to_owned(),
    }
}

/// Returns the options of the benchmark for an agent with its own options.
///
/// # Errors
/// A sentence about an option that the agent doesn't have, or a value that it doesn't accept.
pub(crate) fn agent_options(agent: Agent, own: &BTreeMap<String, String>) -> Result<Options, String> {
    if !agent.asks_model() && agent != Agent::Custom {
        return match own.keys().next() {
            None => Ok(Options::new()),
            Some(_) => Err(format!("the agent `{agent}` has no options")),
        };
    }
    let named = agent_option_names(agent, own);
    options::parse_choice(TERMINAL_TASKS, &named, &BTreeMap::new())
        .map(|(_, chosen)| chosen)
        .map_err(|problem| problem.to_string())
}
