//! Tasks of episodes, loaded from their archives.

use std::sync::Arc;

use bench_benchmarks::{PackedTask, TASK_HASH_COLUMN};
use bench_domain::{Code, EpisodeState};
use bench_episodes::{TaskFiles, TaskFilesError};
use bench_items::Item;
use bench_terminal_tasks::{AdmissionLimits, TreeLimits};

use super::EpisodeTurn;
use crate::Pipeline;
use crate::error::PipelineError;

mod packed;

/// Place of a task's archive.
enum Source {
    /// Uploaded, by content hash.
    Uploaded(String),
    /// File of the item.
    Packed(PackedTask),
}

impl Source {
    fn of_item(item: &Item) -> Result<Self, String> {
        match PackedTask::of_item(item) {
            Ok(Some(task)) => Ok(Self::Packed(task)),
            Ok(None) => {
                let hash = item.row.get(TASK_HASH_COLUMN).and_then(|hash| hash.as_str());
                Ok(Self::Uploaded(hash.unwrap_or_default().to_owned()))
            }
            Err(error) => Err(format!("the task's row can't be used: {error}")),
        }
    }

    /// Returns the name of the task among those that were read.
    fn key(&self) -> &str {
        match self {
            Self::Uploaded(hash) => hash,
            Self::Packed(task) => &task.file.sha256,
        }
    }
}

impl Pipeline {
    /// Loads the sample's task, and admits it again. If that isn't possible, ends the sample and returns `None`.
    pub(super) async fn load_task(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
    ) -> Result<Option<Arc<TaskFiles>>, PipelineError> {
        let source = Source::of_item(turn.claimed.item(&self.blobs).await?);
        let problem = match source {
            Ok(source) => {
                if let Some(files) = self.tasks.get(source.key()) {
                    return Ok(Some(files));
                }
                let archive = match &source {
                    Source::Uploaded(hash) => self.blobs.get(&bench_blobs::task_key(hash)).await?,
                    Source::Packed(task) => {
                        let used = &turn.claimed.benchmark.plan.dataset;
                        bench_datasets::load_item_file(&self.blobs, used, &task.file).await?
                    }
                };
                let key = source.key().to_owned();
                match archive {
                    None => (Code::StoredDataMissing, "the task's archive is gone".to_owned()),
                    Some(archive) => match read(archive, source).await {
                        Ok(files) => {
                            self.tasks.add(key, Arc::clone(&files));
                            return Ok(Some(files));
                        }
                        Err(problem) => (Code::InvalidItem, problem),
                    },
                }
            }
            Err(problem) => (Code::InvalidItem, problem),
        };
        self.end_episode_sandbox(state).await;
        self.end_ungraded(turn, state, problem.0, &problem.1).await?;
        Ok(None)
    }
}

/// Reads an archive, off the threads that serve other samples.
async fn read(archive: bytes::Bytes, source: Source) -> Result<Arc<TaskFiles>, String> {
    let read = tokio::task::spawn_blocking(move || match source {
        Source::Uploaded(hash) => uploaded(&archive, &hash),
        Source::Packed(task) => packed::read(&archive, &task),
    });
    let read = read.await.map_err(|error| format!("reading the task failed: {error}"))?;
    read.map(Arc::new)
}

fn uploaded(archive: &[u8], hash: &str) -> Result<TaskFiles, String> {
    let files = TaskFiles::read(archive, TreeLimits::default(), &AdmissionLimits::any_demand())
        .map_err(|error: TaskFilesError| error.to_string())?;
    match files.admitted.hash.to_string() == hash {
        true => Ok(files),
        false => Err("the task's archive has other files than the order".to_owned()),
    }
}
