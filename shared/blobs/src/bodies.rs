//! Bodies of samples, stored under keys that contain the attempt.

use bench_domain::{SampleBody, SampleRef};
use sha2::{Digest, Sha256};

use crate::{BlobError, Blobs, compress, decompress};

/// Maximum size of one body, in bytes after decompression.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Returns the prefix of all bodies of a run.
pub fn bodies_prefix(run: bench_domain::RunId) -> String {
    format!("bodies/{run}/")
}

/// Returns the prefix of all exports of a run.
pub fn exports_prefix(run: bench_domain::RunId) -> String {
    format!("exports/{run}/")
}

/// Returns the key of the archive of a terminal task, by the task's content hash.
pub fn task_key(content_hash: &str) -> String {
    format!("tasks/{content_hash}.zip")
}

/// Returns the key of the archive of a custom agent, by the agent's content hash.
pub fn agent_key(content_hash: &str) -> String {
    format!("agents/{content_hash}.zip")
}

/// Returns the key of the body of an attempt: JSON, compressed with zstd.
pub fn body_key(sample: &SampleRef, attempt: u32) -> String {
    let SampleRef { run, benchmark, plan, position, .. } = sample;
    format!("bodies/{run}/{benchmark}/{plan}/{:08}.{:04}.{attempt}.json.zst", position.item, position.sample)
}

impl Blobs {
    /// Stores the body of an attempt. Returns the SHA-256 of the stored bytes, lowercase hex.
    pub async fn put_body(
        &self,
        sample: &SampleRef,
        attempt: u32,
        body: &SampleBody,
    ) -> Result<String, BlobError> {
        let key = body_key(sample, attempt);
        let text = serde_json::to_vec(body).map_err(|error| BlobError::request(&key, error))?;
        let packed = compress(&text).map_err(|error| BlobError::request(&key, error))?;
        let sha256 = hex::encode(Sha256::digest(&packed));
        self.put(&key, packed.into(), "application/zstd").await?;
        Ok(sha256)
    }

    /// Loads the body of an attempt, with the SHA-256 of the stored bytes; `None` if the attempt
    /// stored none.
    ///
    /// Returns an error if the bytes don't match `expected_sha256`.
    pub async fn get_body(
        &self,
        sample: &SampleRef,
        attempt: u32,
        expected_sha256: Option<&str>,
    ) -> Result<Option<(SampleBody, String)>, BlobError> {
        let key = body_key(sample, attempt);
        let Some(packed) = self.get(&key).await? else { return Ok(None) };
        let damaged = |problem: String| BlobError::Damaged { key: key.clone(), problem };
        let sha256 = hex::encode(Sha256::digest(&packed));
        if expected_sha256.is_some_and(|expected| expected != sha256) {
            return Err(damaged("its SHA-256 is not the one in the sample's record".into()));
        }
        let text = decompress(&packed, BODY_BYTES_MAX).map_err(|error| damaged(error.to_string()))?;
        let body = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        Ok(Some((body, sha256)))
    }
}
