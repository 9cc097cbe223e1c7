//! Custom agents that were read, for all runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bench_terminal_tasks::CustomAgent;

/// Maximum number of agents in memory. Each has at most 16 MiB of files.
const AGENTS_MAX: usize = 4;

/// Agents that were read, the most recently used one last.
#[derive(Debug, Default)]
pub(crate) struct AgentCache {
    agents: Mutex<VecDeque<(String, Arc<CustomAgent>)>>,
}

impl AgentCache {
    /// Returns an agent by its content hash.
    pub(crate) fn get(&self, hash: &str) -> Option<Arc<CustomAgent>> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let at = agents.iter().position(|(known, _)| known == hash)?;
        let found = agents.remove(at)?;
        let agent = Arc::clone(&found.1);
        agents.push_back(found);
        Some(agent)
    }

    /// Adds an agent, and drops the least recently used ones.
    pub(crate) fn add(&self, hash: String, agent: Arc<CustomAgent>) {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        agents.retain(|(known, _)| *known != hash);
        agents.push_back((hash, agent));
        while agents.len() > AGENTS_MAX {
            agents.pop_front();
        }
    }
}
