//! Store of custom agents.

use bench_blobs::{Blobs, agent_key};
use bench_domain::run::Owner;
use bench_state::{AgentRecord, State};
use bench_terminal_tasks::CustomAgent;

use crate::archive::UploadedArchive;
use crate::error::TaskError;

/// Adds, lists and removes custom agents. Their files are stored once per content.
#[derive(Debug, Clone)]
pub struct AgentStore {
    /// Records.
    pub state: State,
    /// Archives.
    pub blobs: Blobs,
}

impl AgentStore {
    /// Creates a store over these services.
    pub const fn new(state: State, blobs: Blobs) -> Self {
        Self { state, blobs }
    }

    /// Reads an archive and stores it as an agent of an owner. The same files again are the same agent, with the facts of
    /// its first upload.
    ///
    /// # Errors
    /// [`TaskError::Refused`] for an archive that isn't an agent; then nothing is stored.
    pub async fn add(&self, mut archive: UploadedArchive, owner: Owner) -> Result<AgentRecord, TaskError> {
        let read = tokio::task::spawn_blocking(move || {
            let agent = CustomAgent::read(archive.reader()?)?;
            let mut bytes = vec![0; usize::try_from(archive.bytes()).unwrap_or(usize::MAX)];
            let count = archive.read_at(0, &mut bytes)?;
            bytes.truncate(count);
            Ok::<_, TaskError>((agent, bytes::Bytes::from(bytes)))
        });
        let (agent, bytes) = read.await.map_err(|error| TaskError::Internal(error.to_string()))??;
        let hash = agent.hash.to_string();
        let known = self.state.agents_of_content(&hash).await?.into_iter().find(|known| known.owner == owner);
        let record = known.unwrap_or_else(|| AgentRecord {
            name: agent.name.clone(),
            version: agent.version.clone(),
            required_variables: agent.env.required().map(str::to_owned).collect(),
            files: agent.files.len() as u64,
            expanded_bytes: agent.files.iter().map(|file| file.bytes.len() as u64).sum(),
            archive_bytes: bytes.len() as u64,
            owner,
            created_at: bench_clock::now(),
            content_hash: hash.clone(),
        });
        self.put_missing(&hash, &bytes).await?;
        self.state.put_agent(&record).await?;
        // A removal of the last other record of this content may have deleted it between the two writes.
        self.put_missing(&hash, &bytes).await?;
        tracing::info!(agent.hash = hash, "Stored agent {hash}");
        Ok(record)
    }

    async fn put_missing(&self, hash: &str, archive: &bytes::Bytes) -> Result<(), TaskError> {
        let key = agent_key(hash);
        if self.blobs.head(&key).await?.is_none() {
            self.blobs.put(&key, archive.clone(), "application/zip").await?;
        }
        Ok(())
    }

    /// Lists the agents of all owners, newest first.
    ///
    /// # Errors
    /// If the table can't be read.
    pub async fn list(&self) -> Result<Vec<AgentRecord>, TaskError> {
        Ok(self.state.list_agents().await?)
    }

    /// Returns the records of all owners of a content.
    ///
    /// # Errors
    /// If the table can't be read.
    pub async fn of_content(&self, hash: &str) -> Result<Vec<AgentRecord>, TaskError> {
        Ok(self.state.agents_of_content(hash).await?)
    }

    /// Removes an owner's agent, and its files if no other owner has the same. Safe to repeat.
    ///
    /// # Errors
    /// If the table or the blob store can't be written. Repeating the call continues.
    pub async fn remove(&self, agent: &AgentRecord) -> Result<(), TaskError> {
        let hash = &agent.content_hash;
        let key = agent_key(hash);
        let archive = self.blobs.get(&key).await?;
        self.state.remove_agent(hash, &agent.owner).await?;
        if self.state.agents_of_content(hash).await?.is_empty() {
            self.blobs.delete(&key).await?;
            // An upload of the same files may have found them just before.
            if let Some(archive) = archive
                && !self.state.agents_of_content(hash).await?.is_empty()
            {
                self.put_missing(hash, &archive).await?;
            }
        }
        tracing::info!(agent.hash = hash, "Removed agent {hash}");
        Ok(())
    }
}
