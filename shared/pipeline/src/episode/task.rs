//! Tasks of episodes, loaded from their archives.

use std::sync::Arc;

use bench_benchmarks::TASK_HASH_COLUMN;
use bench_domain::{Code, EpisodeState};
use bench_episodes::{TaskFiles, TaskFilesError};
use bench_terminal_tasks::{AdmissionLimits, TreeLimits};

use super::EpisodeTurn;
use crate::Pipeline;
use crate::error::PipelineError;

impl Pipeline {
    /// Loads the sample's task, and admits it again. If that isn't possible, ends the sample and returns `None`.
    pub(super) async fn load_task(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
    ) -> Result<Option<Arc<TaskFiles>>, PipelineError> {
        let item = turn.claimed.item(&self.blobs).await?;
        let hash = item.row.get(TASK_HASH_COLUMN).and_then(|hash| hash.as_str()).unwrap_or_default();
        if let Some(files) = self.tasks.get(hash) {
            return Ok(Some(files));
        }
        let problem = match self.blobs.get(&bench_blobs::task_key(hash)).await? {
            None => (Code::StoredDataMissing, "the task's archive is gone".to_owned()),
            Some(archive) => match read(archive, hash.to_owned()).await {
                Ok(files) => {
                    self.tasks.add(hash.to_owned(), Arc::clone(&files));
                    return Ok(Some(files));
                }
                Err(problem) => (Code::InvalidItem, problem),
            },
        };
        self.end_episode_sandbox(state).await;
        self.end_without_verdict(turn.claimed, problem.0, &problem.1).await?;
        Ok(None)
    }
}

/// Reads an archive, off the threads that serve other samples.
async fn read(archive: bytes::Bytes, hash: String) -> Result<Arc<TaskFiles>, String> {
    let read = tokio::task::spawn_blocking(move || {
        let files = TaskFiles::read(&archive, TreeLimits::default(), &AdmissionLimits::any_demand())
            .map_err(|error: TaskFilesError| error.to_string())?;
        match files.admitted.hash.to_string() == hash {
            true => Ok(Arc::new(files)),
            false => Err("the task's archive has other files than the order".to_owned()),
        }
    });
    read.await.map_err(|error| format!("reading the task failed: {error}"))?
}
