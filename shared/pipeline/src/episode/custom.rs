//! Custom agents of episodes, loaded from their archives.

use std::io::Cursor;
use std::sync::Arc;

use bench_benchmarks::{AgentChoice, CUSTOM_CONTENT};
use bench_domain::{Code, EpisodeState};
use bench_terminal_tasks::CustomAgent;

use super::EpisodeTurn;
use crate::Pipeline;
use crate::error::PipelineError;

impl Pipeline {
    /// Loads the run's custom agent, and reads it again. If that isn't possible, ends the sample and returns `None`.
    pub(super) async fn load_agent(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        choice: &AgentChoice,
    ) -> Result<Option<Arc<CustomAgent>>, PipelineError> {
        let hash = choice.options.get(CUSTOM_CONTENT).cloned().unwrap_or_default();
        if let Some(agent) = self.agents.get(&hash) {
            return Ok(Some(agent));
        }
        let (code, why) = match self.blobs.get(&bench_blobs::agent_key(&hash)).await? {
            None => (Code::StoredDataMissing, "the agent was removed; upload it again".to_owned()),
            Some(archive) => match read(archive, hash.clone()).await {
                Ok(agent) => {
                    self.agents.add(hash, Arc::clone(&agent));
                    return Ok(Some(agent));
                }
                Err(problem) => (Code::InvalidItem, problem),
            },
        };
        self.end_episode_sandbox(state).await;
        self.end_ungraded(turn, state, code, &why).await?;
        Ok(None)
    }
}

/// Reads an archive, off the threads that serve other samples.
async fn read(archive: bytes::Bytes, hash: String) -> Result<Arc<CustomAgent>, String> {
    let read = tokio::task::spawn_blocking(move || {
        let agent = CustomAgent::read(Cursor::new(archive)).map_err(|refusal| refusal.to_string())?;
        match agent.hash.to_string() == hash {
            true => Ok(Arc::new(agent)),
            false => Err("the agent's archive has other files than the order".to_owned()),
        }
    });
    read.await.map_err(|error| format!("reading the agent failed: {error}"))?
}
