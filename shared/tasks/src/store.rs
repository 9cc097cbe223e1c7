//! The store of tasks.

use std::sync::Arc;
use std::time::Duration;

use bench_blobs::{Blobs, task_key};
use bench_datasets::Library;
use bench_domain::run::Owner;
use bench_state::{NewTask, State, TaskRecord};
use tokio::sync::Semaphore;

use crate::archive::UploadedArchive;
use crate::check::{CheckedTask, task_name};
use crate::error::TaskError;
use crate::limits::TaskLimits;

/// Number of archives that are inflated at once: it takes a processor, and memory for texts.
const CHECKS_AT_ONCE: usize = 2;
/// Number of bytes of an archive to read at once.
const PIECE_BYTES: usize = 1 << 20;
/// Maximum number of tries to store a task whose archive is being removed.
const TRIES_MAX: u32 = 20;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Returns the key of the facts about an archive's content.
pub(crate) fn facts_key(hash: &str) -> String {
    format!("tasks/{hash}.json.zst")
}

/// What the uploader says about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskUpload {
    /// Name; if it is blank, the task gets its own.
    pub name: String,
    /// File name that the client sent.
    pub file_name: String,
    /// Model.
    pub model: String,
    /// Agent.
    pub agent: String,
    /// Harness.
    pub harness: String,
    /// Number of episodes of an execution.
    pub num_runs: u32,
    /// True if lists leave the task out, because it is stored for a run.
    pub unlisted: bool,
    /// Owner.
    pub owner: Owner,
}

/// Store of uploaded tasks.
#[derive(Debug)]
pub struct TaskStore {
    /// Records.
    pub state: State,
    /// Archives.
    pub blobs: Blobs,
    /// Library that datasets of tasks are imported to.
    pub library: Arc<Library>,
    /// Limits of uploads.
    pub limits: TaskLimits,
    checks: Arc<Semaphore>,
}

impl TaskStore {
    /// Creates a store over these services.
    pub fn new(state: State, blobs: Blobs, library: Arc<Library>, limits: TaskLimits) -> Self {
        Self { state, blobs, library, limits, checks: Arc::new(Semaphore::new(CHECKS_AT_ONCE)) }
    }

    /// Checks an archive without storing it.
    ///
    /// # Errors
    /// [`TaskError::Refused`] for an archive that isn't admitted.
    pub async fn check(
        &self,
        mut archive: UploadedArchive,
    ) -> Result<(CheckedTask, UploadedArchive), TaskError> {
        let internal = |problem: String| TaskError::Internal(problem);
        let permit = Arc::clone(&self.checks).acquire_owned().await;
        let permit = permit.map_err(|error| internal(error.to_string()))?;
        let limits = self.limits.clone();
        let checked = tokio::task::spawn_blocking(move || {
            // The permit is in use until the work ends, even if the caller goes away.
            let _permit = permit;
            CheckedTask::read(&mut archive, &limits).map(|checked| (checked, archive))
        });
        checked.await.map_err(|error| internal(error.to_string()))?
    }

    /// Admits an archive and stores it as a new task.
    ///
    /// # Errors
    /// [`TaskError::Refused`] for an archive that isn't admitted; then nothing is stored.
    pub async fn add(
        &self,
        archive: UploadedArchive,
        upload: TaskUpload,
    ) -> Result<(TaskRecord, CheckedTask), TaskError> {
        let (checked, mut archive) = self.check(archive).await?;
        self.store_content(&checked, &mut archive).await?;
        let TaskUpload { name, file_name, model, agent, harness, num_runs, unlisted, owner } = upload;
        let task_name = task_name(checked.name.as_deref(), &name);
        let facts = NewTask {
            name: if name.trim().is_empty() { task_name.clone() } else { name },
            task_name,
            file_name,
            content_hash: checked.content_hash.clone(),
            archive_bytes: archive.bytes(),
            model,
            agent,
            harness,
            num_runs,
            unlisted,
            owner,
            created_at: bench_clock::now(),
        };
        for _ in 0..TRIES_MAX {
            if let Some(task) = self.state.add_task(&facts).await? {
                // A removal of the same content may have ended between the two writes.
                self.store_content(&checked, &mut archive).await?;
                tracing::info!(task.id = task.id, "Stored task {}", task.id);
                return Ok((task, checked));
            }
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
        }
        Err(TaskError::RemovalInProgress)
    }

    /// Writes the objects of a content that don't exist yet.
    async fn store_content(
        &self,
        checked: &CheckedTask,
        archive: &mut UploadedArchive,
    ) -> Result<(), TaskError> {
        let hash = &checked.content_hash;
        if self.blobs.head(&facts_key(hash)).await?.is_none() {
            self.blobs.put_json(&facts_key(hash), checked).await?;
        }
        if self.blobs.head(&task_key(hash)).await?.is_some() {
            return Ok(());
        }
        let mut upload = self.blobs.upload(task_key(hash), "application/zip");
        let (mut offset, mut piece) = (0_u64, vec![0; PIECE_BYTES]);
        loop {
            let count = match archive.read_at(offset, &mut piece) {
                Ok(count) => count,
                Err(error) => {
                    // An unfinished upload costs money until it expires.
                    let _ = upload.abort().await;
                    return Err(error.into());
                }
            };
            let read = piece.get(..count).unwrap_or_default();
            if read.is_empty() {
                break;
            }
            if let Err(error) = upload.write(read).await {
                let _ = upload.abort().await;
                return Err(error.into());
            }
            offset += count as u64;
        }
        upload.finish().await?;
        Ok(())
    }

    /// Returns a task; `None` if it doesn't exist or is being removed.
    ///
    /// # Errors
    /// If the table can't be read.
    pub async fn get(&self, id: u64) -> Result<Option<TaskRecord>, TaskError> {
        Ok(self.state.task(id).await?.filter(|task| !task.deleted))
    }

    /// Lists all tasks, newest first.
    ///
    /// # Errors
    /// If the table can't be read.
    pub async fn list(&self) -> Result<Vec<TaskRecord>, TaskError> {
        Ok(self.state.list_tasks().await?)
    }

    /// Removes a hidden task ([`State::hide_task`]) whose runs are over, and its archive if no other task has the same
    /// content. Safe to repeat.
    ///
    /// # Errors
    /// If the table or the blob store can't be written. Repeating the call continues.
    pub async fn remove(&self, task: &TaskRecord) -> Result<(), TaskError> {
        let hash = &task.facts.content_hash;
        self.state.purge_task(task).await?;
        if let Some(removal) = self.state.begin_archive_removal(hash).await? {
            self.blobs.delete(&task_key(hash)).await?;
            self.blobs.delete(&facts_key(hash)).await?;
            self.state.end_archive_removal(removal).await?;
        }
        tracing::info!(task.id = task.id, "Removed task {}", task.id);
        Ok(())
    }
}
