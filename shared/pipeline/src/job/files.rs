//! Copies a dataset's separate files into sandboxes.

use std::path::Path;

use async_trait::async_trait;
use bench_blobs::{BlobError, Blobs};
use bench_domain::{FileContent, JobSpec, StoredFile};
use bench_sandy::job::{FileSource, JobError, SourceError};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex;

use crate::Pipeline;

/// Bytes of a file held in memory while it is copied.
const PIECE_BYTES: u64 = 8 << 20;

/// Reads files from the blob store.
pub(super) struct StoredFiles(Blobs);

#[async_trait]
impl FileSource for StoredFiles {
    async fn read(&self, file: &StoredFile, offset: u64, length: u64) -> Result<Bytes, SourceError> {
        let bytes = self.0.get_range(&file.key, offset, length).await;
        bytes.map_err(|error| SourceError {
            reason: error.to_string(),
            is_transient: matches!(error, BlobError::Store { .. }),
        })
    }
}

impl Pipeline {
    /// Returns the source of the dataset's separate files.
    pub(super) fn stored_files(&self) -> StoredFiles {
        StoredFiles(self.blobs.clone())
    }

    /// Copies the job's stored files to the folder that all sandboxes of this machine can read.
    pub(super) async fn share_files(&self, spec: &JobSpec) -> Result<(), JobError> {
        let Some(folder) = &self.sandboxes.files else { return Ok(()) };
        for file in &spec.files {
            let FileContent::Stored(stored) = &file.content else { continue };
            share(&self.stored_files(), folder, stored)
                .await
                .map_err(|source| JobError::Source { path: file.path.clone(), source })?;
        }
        Ok(())
    }
}

/// Allows one copy at a time; waiting tasks find the files already copied.
static SHARING: Mutex<()> = Mutex::const_new(());

async fn share(source: &StoredFiles, folder: &Path, file: &StoredFile) -> Result<(), SourceError> {
    let path = folder.join(&file.sha256);
    let is_there = async || match tokio::fs::metadata(&path).await {
        Ok(found) => found.is_file() && found.len() == file.bytes,
        Err(_) => false,
    };
    if is_there().await {
        return Ok(());
    }
    let _one = SHARING.lock().await;
    if is_there().await {
        return Ok(());
    }
    let failed = |error: std::io::Error| SourceError {
        reason: format!("{} could not be written: {error}", folder.display()),
        is_transient: false,
    };
    tokio::fs::create_dir_all(folder).await.map_err(failed)?;
    // Written under a temporary name first, so that a file with the final name is always complete.
    let part = folder.join(format!("{}.part", file.sha256));
    let mut out = tokio::fs::File::create(&part).await.map_err(failed)?;
    let mut digest = Sha256::new();
    let mut offset = 0;
    while offset < file.bytes {
        let bytes = source.read(file, offset, PIECE_BYTES.min(file.bytes - offset)).await?;
        if bytes.is_empty() {
            break;
        }
        digest.update(&bytes);
        out.write_all(&bytes).await.map_err(failed)?;
        offset += bytes.len() as u64;
    }
    // Without it, `sync_all` succeeds although the last write has failed.
    out.flush().await.map_err(failed)?;
    out.sync_all().await.map_err(failed)?;
    if hex::encode(digest.finalize()) != file.sha256 {
        tokio::fs::remove_file(&part).await.ok();
        let reason = "its bytes are not those that its checksum names".to_owned();
        return Err(SourceError { reason, is_transient: false });
    }
    tokio::fs::rename(&part, &path).await.map_err(failed)
}
