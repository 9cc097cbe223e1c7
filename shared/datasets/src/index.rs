//! The index of a normalized dataset, and functions that load its parts.

use std::collections::BTreeMap;

use bench_blobs::{BlobError, Blobs, OBJECT_BYTES_MAX, decompress};
use bench_domain::StoredFile;
use bench_domain::run::DatasetUse;
use bench_items::{IndexEntry, Item};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::DatasetError;

/// Part of the note of a dataset that uses the few-shot examples or documents of the demo rows. Don't change the text:
/// indexes of older versions are recognized by it.
pub(crate) const DEMO_SUPPORT_NOTE: &str = ": demo, since the file brings none";

/// Version of the index format; indexes of other versions are ignored.
pub(crate) const FORMAT: u32 = 1;

/// Metadata of a normalized dataset: everything except its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Version of the format of this object.
    pub format: u32,
    /// The benchmark's name.
    pub benchmark: String,
    /// Version of the layout that made it.
    pub layout_version: u32,
    /// Variant of the layout that made it.
    #[serde(default)]
    pub variant: String,
    /// Id at the hub, the local file's name, or `demo`.
    pub id: String,
    /// `hub`, `local` or `demo`.
    pub source: String,
    /// Commit at the hub, or digest of the local files or of the demo rows.
    pub revision: String,
    /// SHA-256 of the content, lowercase hex. The hash covers, in this order: for each item its JSON and a newline; for
    /// each support value, by name, its name, a tab, its JSON and a newline; if there are documents, the word
    /// `documents`, a tab, the archive's digest and a newline; for each file that jobs need, by name, the word
    /// `attachment`, a tab, its name, a tab, its digest and a newline.
    pub digest: String,
    /// Key of the object that holds the items' frames.
    pub data_key: String,
    /// Length of that object in bytes.
    pub data_bytes: u64,
    /// The items, in dataset order.
    pub items: Vec<IndexEntry>,
    /// True if the items have the dataset's own ids, where it has any. Older versions of the program didn't store them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_source_ids: bool,
    /// The support values, by name.
    pub support: BTreeMap<String, SupportEntry>,
    /// SHA-256 of the archive whose documents are support values too; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<String>,
    /// Files that jobs need in addition to the items, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attachments: BTreeMap<String, StoredFile>,
    /// Number of rows that the layout skipped.
    pub rows_left_out: u64,
    /// Files that the dataset was made from.
    pub files: Vec<FileInfo>,
    /// Name of the license, as the authors write it.
    pub licence: String,
    /// Notice to show wherever results of this dataset are shown.
    #[serde(default)]
    pub note: Option<String>,
    /// True if items of the real dataset use the support values of the demo rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo_support: bool,
}

/// One support value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupportEntry {
    /// SHA-256 of its JSON, lowercase hex.
    pub sha256: String,
    /// Length of its JSON in bytes.
    pub bytes: u64,
}

/// A file that a dataset was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    /// Path within the dataset, or the local file's name.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, lowercase hex.
    pub sha256: String,
}

impl Index {
    /// Returns what a run records about the dataset.
    pub fn dataset_use(&self) -> DatasetUse {
        DatasetUse {
            id: self.id.clone(),
            revision: self.revision.clone(),
            source: self.source.clone(),
            digest: self.digest.clone(),
            data_key: self.data_key.clone(),
            documents: self.documents.clone(),
            attachments: self.attachments.clone(),
            note: self.note.clone(),
            // Indexes of older versions say this in their note only.
            demo_support: self.demo_support
                || self.note.as_deref().is_some_and(|note| note.contains(DEMO_SUPPORT_NOTE)),
        }
    }

    /// Loads the index of a folder as stored. Where the dataset's own ids matter, call [`Library::index`] instead.
    ///
    /// [`Library::index`]: crate::Library::index
    pub(crate) async fn load(blobs: &Blobs, folder: &str) -> Result<Option<Self>, DatasetError> {
        let index: Option<Self> = match blobs.get_json(&crate::keys::index(folder)).await {
            // An index that another version of the program wrote is rebuilt.
            Err(BlobError::Damaged { key, problem }) => {
                tracing::warn!(key, problem, "An index can't be read and is rebuilt");
                None
            }
            other => other?,
        };
        Ok(index.filter(|index| index.format == FORMAT))
    }
}

/// Loads the item whose frame is at `offset`.
///
/// # Errors
/// Returns an error if the store fails, or if the frame isn't an item ([`BlobError::Damaged`]).
pub async fn load_item(
    blobs: &Blobs,
    data_key: &str,
    offset: u64,
    length: u64,
) -> Result<Item, DatasetError> {
    let frame = blobs.get_range(data_key, offset, length).await?;
    unpack_item(data_key, &frame)
}

/// Decompresses an item's frame.
pub(crate) fn unpack_item(data_key: &str, frame: &[u8]) -> Result<Item, DatasetError> {
    let damaged = |problem: String| BlobError::Damaged { key: data_key.to_owned(), problem };
    let content = decompress(frame, OBJECT_BYTES_MAX).map_err(|error| damaged(error.to_string()))?;
    Ok(serde_json::from_slice(&content).map_err(|error| damaged(error.to_string()))?)
}

/// Loads a support value, which prompts need in addition to the item; `None` if the dataset has none of that name.
pub async fn load_support(
    blobs: &Blobs,
    used: &DatasetUse,
    name: &str,
) -> Result<Option<Value>, DatasetError> {
    if let Some(archive) = &used.documents {
        let document = blobs.get_json(&crate::keys::document(archive, name)).await?;
        if document.is_some() {
            return Ok(document);
        }
    }
    Ok(blobs.get_json(&crate::keys::support(&used.data_key, name)).await?)
}
