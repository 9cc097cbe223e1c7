//! Files in columns of items, which are stored as objects of their own in their dataset's folder.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bench_blobs::{BlobError, Blobs};
use bench_domain::run::DatasetUse;
use bench_items::{Item, ItemFile, Layout};
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::DatasetError;
use crate::keys;

const CONTENT_TYPE: &str = "application/octet-stream";

/// Stores the files of an item and replaces them by their digests. One file is in memory at a time.
pub(crate) async fn store_files(
    blobs: &Blobs,
    layout: &dyn Layout,
    data_key: &str,
    item: &mut Item,
) -> Result<(), DatasetError> {
    for column in layout.file_columns() {
        let Some(value) = item.row.get_mut(*column) else { continue };
        let Value::String(text) = value.take() else { continue };
        let Some((content, file)) = decode(text).await? else { continue };
        let key = keys::item_file(data_key, &file.sha256);
        let is_stored = blobs.head(&key).await?.is_some_and(|found| found.length == file.bytes);
        if !is_stored {
            blobs.put(&key, content, CONTENT_TYPE).await?;
        }
        *value = serde_json::json!(file);
    }
    Ok(())
}

/// Decodes a file on another thread; `None` if the text is no Base64.
async fn decode(text: String) -> Result<Option<(Bytes, ItemFile)>, DatasetError> {
    let decoded = tokio::task::spawn_blocking(move || {
        let content = BASE64_STANDARD.decode(text).ok()?;
        let file = ItemFile { sha256: hex::encode(Sha256::digest(&content)), bytes: content.len() as u64 };
        Some((Bytes::from(content), file))
    });
    decoded.await.map_err(|error| DatasetError::Interrupted(error.to_string()))
}

/// Loads a file of an item; `None` if it is gone.
///
/// # Errors
/// If the blob store fails.
pub async fn load_item_file(
    blobs: &Blobs,
    used: &DatasetUse,
    file: &ItemFile,
) -> Result<Option<Bytes>, BlobError> {
    blobs.get(&keys::item_file(&used.data_key, &file.sha256)).await
}
