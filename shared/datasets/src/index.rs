//! What is in a normalised dataset, and how its parts are loaded.

use std::collections::BTreeMap;

use bench_blobs::{BlobError, Blobs, OBJECT_BYTES_MAX, decompress};
use bench_domain::StoredFile;
use bench_domain::run::DatasetUse;
use bench_items::{IndexEntry, Item};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::DatasetError;

/// Part of the note of a dataset whose few-shot examples or documents are those of the demo rows.
pub(crate) const DEMO_SUPPORT_NOTE: &str = ": demo, since the file brings none";

/// Form of the index that is written; another one is not read.
pub(crate) const FORMAT: u32 = 1;

/// Everything that is known of a normalised dataset but its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Form of this object.
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
    /// SHA-256 of the content, lowercase hex: of each item its JSON and a newline, in order, then of
    /// each support value its name, a tab, its JSON and a newline, by name; then, where there are documents, the
    /// word `documents`, a tab, the archive's digest and a newline; then of each file that jobs need the word
    /// `attachment`, a tab, its name, a tab, its digest and a newline, by name.
    pub digest: String,
    /// The object that holds the items' frames.
    pub data_key: String,
    /// Its length.
    pub data_bytes: u64,
    /// The items, in dataset order.
    pub items: Vec<IndexEntry>,
    /// Whether the items have the dataset's own ids, where it gives any. An older program did not keep them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_source_ids: bool,
    /// The support values, by name.
    pub support: BTreeMap<String, SupportEntry>,
    /// SHA-256 of the archive whose documents are support values too; `None` when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<String>,
    /// Files beside the items that jobs need, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attachments: BTreeMap<String, StoredFile>,
    /// Rows that the layout left out.
    pub rows_left_out: u64,
    /// The files it was made of.
    pub files: Vec<FileFact>,
    /// The licence as the authors name it.
    pub licence: String,
    /// What must be said wherever results of it are shown.
    #[serde(default)]
    pub note: Option<String>,
    /// Whether real items got the support values of the demo rows.
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

/// One file that a dataset was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFact {
    /// Path within the dataset, or the local file's name.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, lowercase hex.
    pub sha256: String,
}

impl Index {
    /// What a run notes of the dataset.
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
            // Indexes of older versions say it in their note alone.
            demo_support: self.demo_support
                || self.note.as_deref().is_some_and(|note| note.contains(DEMO_SUPPORT_NOTE)),
        }
    }

    /// The index in a folder as it is stored. Where the items' own ids matter, [`Library::index`] is to be called.
    ///
    /// [`Library::index`]: crate::Library::index
    pub(crate) async fn load(blobs: &Blobs, folder: &str) -> Result<Option<Self>, DatasetError> {
        let index: Option<Self> = match blobs.get_json(&crate::keys::index(folder)).await {
            // What an other version of the program wrote is made anew.
            Err(BlobError::Damaged { key, problem }) => {
                tracing::warn!(key, problem, "An index cannot be read and is made anew");
                None
            }
            other => other?,
        };
        Ok(index.filter(|index| index.format == FORMAT))
    }
}

/// One item, by where its frame is.
///
/// # Errors
/// When the store fails, or when the frame holds no item ([`BlobError::Damaged`]).
pub async fn load_item(
    blobs: &Blobs,
    data_key: &str,
    offset: u64,
    length: u64,
) -> Result<Item, DatasetError> {
    let damaged = |problem: String| BlobError::Damaged { key: data_key.to_owned(), problem };
    let frame = blobs.get_range(data_key, offset, length).await?;
    let content = decompress(&frame, OBJECT_BYTES_MAX).map_err(|error| damaged(error.to_string()))?;
    Ok(serde_json::from_slice(&content).map_err(|error| damaged(error.to_string()))?)
}

/// What prompts need besides the item, by name; `None` when the dataset has no such value.
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
