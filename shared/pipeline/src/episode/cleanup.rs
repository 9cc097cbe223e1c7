//! Ends the sandboxes of episodes, and removes what they have at the engine.

use bench_domain::EpisodeState;
use bench_environments::ErrorKind;
use bench_state::Turn;

use super::{engine_sandbox, saved_episode};
use crate::Pipeline;
use crate::error::PipelineError;

impl Pipeline {
    /// Ends the sandbox of a round, and removes what it has at its engine. Returns false if it was lost, with things
    /// at its engine that another sandbox of the host can remove.
    pub(super) async fn end_episode_sandbox(&self, state: &EpisodeState) -> bool {
        let Some(sandbox) = &state.sandbox else { return true };
        if bench_episodes::is_workspace(state) {
            self.end_sandbox(sandbox).await;
            return true;
        }
        let canceled = bench_episodes::cancel(&self.sandboxes.sandy, sandbox, state).await;
        self.end_sandbox(sandbox).await;
        !canceled.is_err_and(|error| error.kind() == ErrorKind::SandboxLost)
    }

    /// Ends the sandbox of the last round. If it was lost, removes what it has at its engine through another one.
    pub(super) async fn end_last_episode_sandbox(&self, state: &EpisodeState) {
        if self.end_episode_sandbox(state).await {
            return;
        }
        match self.sandboxes.sandy.create(&engine_sandbox()).await {
            Ok(sandbox) => {
                let other = EpisodeState { sandbox: Some(sandbox), ..state.clone() };
                self.end_episode_sandbox(&other).await;
            }
            Err(error) => {
                tracing::warn!(%error, "Containers of a lost sandbox were not removed: {error}");
            }
        }
    }

    /// Ends the episode of a sample whose run is over or deleted.
    pub(crate) async fn end_episode_of(&self, turn: &Turn) -> Result<(), PipelineError> {
        if let Some(state) = saved_episode(turn)? {
            self.end_last_episode_sandbox(&state).await;
        }
        Ok(())
    }
}
