//! Items on their way into the one object of a dataset, and how far they are.

use std::collections::HashMap;

use bench_blobs::{BlobError, Blobs, OBJECT_BYTES_MAX, Upload, UploadState, compress};
use bench_items::{IndexEntry, Item};
use serde::{Deserialize, Serialize};
use sha2::digest::common::hazmat::{SerializableState, SerializedState};
use sha2::{Digest, Sha256};

use crate::error::DatasetError;

/// Upper bound of items in a dataset: their index is held in memory.
const ITEMS_MAX: usize = 1_000_000;
/// Upper bound of the index, about, so that it can be read again.
const INDEX_BYTES_MAX: usize = OBJECT_BYTES_MAX / 2;
/// Bytes of an entry of the index besides its names, about.
const INDEX_ENTRY_BYTES: usize = 64;
/// Longer items are compressed on a thread of their own: others wait for this one.
const AT_ONCE_BYTES_MAX: usize = 1024 * 1024;
const CONTENT_TYPE: &str = "application/zstd";

/// Writes items one after the other.
pub(crate) struct Writer {
    upload: Upload,
    offset: u64,
    digest: Sha256,
    entries: Vec<IndexEntry>,
    /// Ids and the row that had them first; `None` for one that another process has written.
    seen: HashMap<String, Option<u64>>,
    /// Length of the index, about.
    index_bytes: usize,
}

/// How far a writer is, for another process that may have to go on with it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WriterState {
    upload: UploadState,
    /// Of the hash over all items so far, in hex.
    digest: String,
    entries: Vec<IndexEntry>,
    offset: u64,
}

/// What was written.
pub(crate) struct Written {
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

    /// Goes on where [`Writer::state`] was taken; `None` when that is no state.
    pub(crate) fn resumed(blobs: &Blobs, key: &str, state: WriterState) -> Option<Self> {
        let WriterState { upload, digest, entries, offset } = state;
        let digest = SerializedState::<Sha256>::try_from(hex::decode(digest).ok()?.as_slice()).ok()?;
        Some(Self {
            upload: blobs.resume_upload(key, CONTENT_TYPE, upload).ok()?,
            offset,
            digest: Sha256::deserialize(&digest).ok()?,
            seen: entries.iter().map(|entry| (entry.id.clone(), None)).collect(),
            index_bytes: entries
                .iter()
                .map(|entry| weight(&entry.id, entry.source_id.as_deref(), entry.group.as_deref()))
                .sum(),
            entries,
        })
    }

    /// How far it is.
    pub(crate) fn state(&self) -> WriterState {
        WriterState {
            upload: self.upload.state(),
            digest: hex::encode(self.digest.serialize()),
            entries: self.entries.clone(),
            offset: self.offset,
        }
    }

    /// Items so far.
    pub(crate) fn items(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Writes an item, with the dataset's own id of it.
    pub(crate) async fn add(
        &mut self,
        item: Item,
        source_id: Option<String>,
        file: &str,
        row: u64,
    ) -> Result<(), DatasetError> {
        self.index_bytes += weight(&item.id, source_id.as_deref(), item.group.as_deref());
        if self.entries.len() >= ITEMS_MAX || self.index_bytes > INDEX_BYTES_MAX {
            let problem = format!("there are more than {ITEMS_MAX} items, or their ids are too long");
            return Err(DatasetError::content(file, row, None, problem));
        }
        if let Some(first) = self.seen.insert(item.id.clone(), Some(row)) {
            let first = first.map_or_else(|| "an earlier row".to_owned(), |first| format!("row {first}"));
            let problem = format!("its item id `{}` is that of {first} already", item.id);
            return Err(DatasetError::content(file, row, None, problem));
        }
        let content = json(file, &item)?;
        let Item { id, group, tags, row: columns } = item;
        // A row may be as large as all else together: it is not needed any more.
        drop(columns);
        if content.len() > OBJECT_BYTES_MAX {
            let problem = format!(
                "item `{id}` has {} bytes, more than the {OBJECT_BYTES_MAX} of an object",
                content.len()
            );
            return Err(DatasetError::content(file, row, None, problem));
        }
        let frame = if content.len() <= AT_ONCE_BYTES_MAX {
            self.digest_of(&content);
            pack(file, &content)?
        } else {
            let mut digest = std::mem::take(&mut self.digest);
            let name = file.to_owned();
            let packed = tokio::task::spawn_blocking(move || {
                digest.update(&content);
                digest.update(b"\n");
                pack(&name, &content).map(|frame| (digest, frame))
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

    fn digest_of(&mut self, content: &[u8]) {
        self.digest.update(content);
        self.digest.update(b"\n");
    }

    /// Makes the object visible.
    pub(crate) async fn finish(self) -> Result<Written, DatasetError> {
        let Self { upload, digest, entries, .. } = self;
        let bytes = upload.finish().await?;
        Ok(Written { digest, entries, bytes })
    }

    /// Gives up, and removes what was sent.
    pub(crate) async fn abort(self) {
        // The error that led here is the one to tell; what was uploaded is not visible anyway.
        if let Err(abort) = self.upload.abort().await {
            tracing::warn!(error = %abort, "An unfinished upload could not be removed");
        }
    }
}

/// Bytes of an entry in the index, about.
fn weight(id: &str, source_id: Option<&str>, group: Option<&str>) -> usize {
    INDEX_ENTRY_BYTES + id.len() + source_id.map_or(0, str::len) + group.map_or(0, str::len)
}

pub(crate) fn json<T: Serialize>(key: &str, value: &T) -> Result<Vec<u8>, DatasetError> {
    let failed =
        |error: serde_json::Error| BlobError::Request { key: key.to_owned(), problem: error.to_string() };
    Ok(serde_json::to_vec(value).map_err(failed)?)
}

pub(crate) fn pack(key: &str, content: &[u8]) -> Result<Vec<u8>, DatasetError> {
    let failed =
        |error: std::io::Error| BlobError::Request { key: key.to_owned(), problem: error.to_string() };
    Ok(compress(content).map_err(failed)?)
}
