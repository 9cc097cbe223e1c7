//! Records of agents that ask a model: one object for each step, written once.

use bench_domain::{AgentRecord, SampleRef};

use crate::{BlobError, Blobs, bodies_prefix, compress, decompress};

/// Maximum size of one record, in bytes after decompression.
const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Place of an agent's records: a round of a sample's episode, and a step of its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRecords {
    /// Beginning of the keys.
    prefix: String,
}

impl AgentRecords {
    /// Creates the place for a round, by its random name, and the task's step, from 0. The objects are deleted with the run.
    pub fn new(sample: &SampleRef, nonce: &str, task_step: usize) -> Self {
        let SampleRef { run, benchmark, plan, position, .. } = sample;
        let prefix = bodies_prefix(*run);
        Self {
            prefix: format!(
                "{prefix}{benchmark}/{plan}/{:08}.{:04}.episode/{nonce}/{task_step}/",
                position.item, position.sample
            ),
        }
    }

    /// Returns the prefix of all keys.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    fn key(&self, number: u32) -> String {
        format!("{}{number:06}.json.zst", self.prefix)
    }
}

impl Blobs {
    /// Stores a record, unless there is one with this number. Returns the size of the stored bytes, or `None` if another
    /// attempt has stored one.
    pub async fn put_agent_record(
        &self,
        place: &AgentRecords,
        number: u32,
        record: &AgentRecord,
    ) -> Result<Option<usize>, BlobError> {
        let key = place.key(number);
        let text = serde_json::to_vec(record).map_err(|error| BlobError::request(&key, error))?;
        let packed = compress(&text).map_err(|error| BlobError::request(&key, error))?;
        let bytes = packed.len();
        let is_new = self.put_new(&key, packed.into(), "application/zstd").await?;
        Ok(is_new.then_some(bytes))
    }

    /// Loads a record; `None` if it wasn't stored.
    pub async fn agent_record(
        &self,
        place: &AgentRecords,
        number: u32,
    ) -> Result<Option<AgentRecord>, BlobError> {
        let key = place.key(number);
        let Some(packed) = self.get(&key).await? else { return Ok(None) };
        let damaged = |problem: String| BlobError::Damaged { key: key.clone(), problem };
        let text = decompress(&packed, RECORD_BYTES_MAX).map_err(|error| damaged(error.to_string()))?;
        serde_json::from_slice(&text).map(Some).map_err(|error| damaged(error.to_string()))
    }
}
