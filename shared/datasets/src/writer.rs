//! Writer that appends items to the data object of a dataset.

use std::collections::HashMap;

use bench_blobs::{BlobError, Blobs, OBJECT_BYTES_MAX, Upload, UploadState, compress};
use bench_items::{IndexEntry, Item};
use serde::{Deserialize, Serialize};
use sha2::digest::common::hazmat::{SerializableState, SerializedState};
use sha2::{Digest, Sha256};

use crate::error::DatasetError;

/// Maximum number of items in a dataset, since their index is held in memory.
const ITEMS_MAX: usize = 1_000_000;
/// Approximate maximum size of the index, so that it stays readable.
const INDEX_BYTES_MAX: usize = OBJECT_BYTES_MAX / 2;
/// Approximate bytes of an index entry besides its names.
const INDEX_ENTRY_BYTES: usize = 64;
/// Longer items are compressed on another thread, so that they don't block other tasks.
const AT_ONCE_BYTES_MAX: usize = 1024 * 1024;
const CONTENT_TYPE: &str = "application/zstd";

/// Writes the items of a dataset one after the other.
pub(crate) struct Writer {
    upload: Upload,
    offset: u64,
    digest: Sha256,
    entries: Vec<IndexEntry>,
    /// Ids and the row that used each one first; `None` for ids that another process has written.
    seen: HashMap<String, Option<u64>>,
    /// Approximate size of the index.
    index_bytes: usize,
}

/// Saved state of a writer; another process can continue from it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WriterState {
    upload: UploadState,
    /// Serialized state of the hash over all items so far, in hex.
    digest: String,
    entries: Vec<IndexEntry>,
    offset: u64,
}

/// Result of a finished writer.
pub(crate) struct WrittenItems {
    pub(crate) digest: Sha256,
    pub(crate) entries: Vec<IndexEntry>,
    pub(crate) bytes: u64,
}

impl Writer {
    pub(crate) fn new(blobs: &Blobs, key: &str) -> Self {
        Self {
            upload: blobs.upload(key, CONTENT_TYPE),
            offset: 0,
            digest: Sha256::new(),
            entries: Vec::new(),
            seen: HashMap::new(),
            index_bytes: 0,
        }
    }

    /// Continues from a saved [`Writer::state`]; `None` if it isn't valid.
    pub(crate) fn resume(blobs: &Blobs, key: &str, state: WriterState) -> Option<Self> {
        let WriterState { upload, digest, entries, offset } = state;
        let digest = SerializedState::<Sha256>::try_from(hex::decode(digest).ok()?.as_slice()).ok()?;
        Some(Self {
            upload: blobs.resume_upload(key, CONTENT_TYPE, upload).ok()?,
            offset,
            digest: Sha256::deserialize(&digest).ok()?,
            seen: entries.iter().map(|entry| (entry.id.clone(), None)).collect(),
            index_bytes: entries
                .iter()
                .map(|entry| entry_bytes(&entry.id, entry.source_id.as_deref(), entry.group.as_deref()))
                .sum(),
            entries,
        })
    }

    /// Returns the current state.
    pub(crate) fn state(&self) -> WriterState {
        WriterState {
            upload: self.upload.state(),
            digest: hex::encode(self.digest.serialize()),
            entries: self.entries.clone(),
            offset: self.offset,
        }
    }

    /// Number of items so far.
    pub(crate) fn items(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Writes an item together with the dataset's own id of it.
    pub(crate) async fn add(
        &mut self,
        item: Item,
        source_id: Option<String>,
        file: &str,
        row: u64,
    ) -> Result<(), DatasetError> {
        self.index_bytes += entry_bytes(&item.id, source_id.as_deref(), item.group.as_deref());
        if self.entries.len() >= ITEMS_MAX || self.index_bytes > INDEX_BYTES_MAX {
            let problem = format!("there are more than {ITEMS_MAX} items, or their ids are too long");
            return Err(DatasetError::content(file, row, None, problem));
        }
        if let Some(first) = self.seen.insert(item.id.clone(), Some(row)) {
            let first = first.map_or_else(|| "an earlier row".to_owned(), |first| format!("row {first}"));
            let problem = format!("its item id `{}` is that of {first} already", item.id);
            return Err(DatasetError::content(file, row, None, problem));
        }
        let content = to_json(file, &item)?;
        let Item { id, group, tags, row: columns } = item;
        // Free the row, which may be larger than everything else and isn't needed any more.
        drop(columns);
        if content.len() > OBJECT_BYTES_MAX {
            let problem = format!(
                "item `{id}` has {} bytes, more than the {OBJECT_BYTES_MAX} of an object",
                content.len()
            );
            return Err(DatasetError::content(file, row, None, problem));
        }
        let frame = if content.len() <= AT_ONCE_BYTES_MAX {
            self.update_digest(&content);
            compress_frame(file, &content)?
        } else {
            let mut digest = std::mem::take(&mut self.digest);
            let name = file.to_owned();
            let packed = tokio::task::spawn_blocking(move || {
                digest.update(&content);
                digest.update(b"\n");
                compress_frame(&name, &content).map(|frame| (digest, frame))
            });
            let packed = packed.await.map_err(|error| DatasetError::Interrupted(error.to_string()))?;
            let (digest, frame) = packed?;
            self.digest = digest;
            frame
        };
        self.upload.write(&frame).await?;
        let length = frame.len() as u64;
        self.entries.push(IndexEntry { id, source_id, group, tags, offset: self.offset, length });
        self.offset += length;
        Ok(())
    }

    fn update_digest(&mut self, content: &[u8]) {
        self.digest.update(content);
        self.digest.update(b"\n");
    }

    /// Completes the upload, which makes the object visible.
    pub(crate) async fn finish(self) -> Result<WrittenItems, DatasetError> {
        let Self { upload, digest, entries, .. } = self;
        let bytes = Box::pin(upload.finish()).await?;
        Ok(WrittenItems { digest, entries, bytes })
    }

    /// Aborts the upload and removes its parts.
    pub(crate) async fn abort(self) {
        // A failure is only logged: the caller reports the original error, and parts of an upload
        // aren't visible.
        if let Err(abort) = self.upload.abort().await {
            tracing::warn!(error = %abort, "An unfinished upload could not be removed");
        }
    }
}

/// Approximate bytes of an index entry.
fn entry_bytes(id: &str, source_id: Option<&str>, group: Option<&str>) -> usize {
    INDEX_ENTRY_BYTES + id.len() + source_id.map_or(0, str::len) + group.map_or(0, str::len)
}

pub(crate) fn to_json<T: Serialize>(key: &str, value: &T) -> Result<Vec<u8>, DatasetError> {
    let failed =
        |error: serde_json::Error| BlobError::Request { key: key.to_owned(), problem: error.to_string() };
    Ok(serde_json::to_vec(value).map_err(failed)?)
}

pub(crate) fn compress_frame(key: &str, content: &[u8]) -> Result<Vec<u8>, DatasetError> {
    let failed =
        |error: std::io::Error| BlobError::Request { key: key.to_owned(), problem: error.to_string() };
    Ok(compress(content).map_err(failed)?)
}
