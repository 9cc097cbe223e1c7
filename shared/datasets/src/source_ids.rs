//! The dataset's own ids of items.

use bench_blobs::{BlobError, Blobs, OBJECT_BYTES_MAX, decompress};
use bench_items::{IndexEntry, Item, Layout, Row, source_id};

use crate::error::DatasetError;
use crate::index::Index;
use crate::keys;
use crate::library::Library;

/// Maximum bytes of items that are read at once, unless a single item is larger.
const READ_BYTES_MAX: u64 = 8 * 1024 * 1024;
impl Library {
    /// Loads the index of a folder. If the index was written before the dataset's own ids were stored, the ids are read
    /// from the stored items, without a download, and the index is stored again.
    pub(crate) async fn index(
        &self,
        layout: &dyn Layout,
        folder: &str,
    ) -> Result<Option<Index>, DatasetError> {
        let Some(mut index) = Index::load(&self.blobs, folder).await? else { return Ok(None) };
        if index.has_source_ids {
            return Ok(Some(index));
        }
        if !layout.id_columns().is_empty() {
            match add_source_ids(&self.blobs, layout, &mut index).await {
                Ok(()) => {}
                Err(DatasetError::Blob(BlobError::Damaged { key, problem })) => {
                    tracing::warn!(key, problem, "The items of a dataset can't be read and are rebuilt");
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
            tracing::info!(
                dataset.id = index.id,
                dataset.revision = index.revision,
                "Read the ids of a dataset"
            );
        }
        index.has_source_ids = true;
        self.blobs.put_json(&keys::index(folder), &index).await?;
        Ok(Some(index))
    }
}

/// Reads the items, several per request, and adds their ids to the index.
async fn add_source_ids(blobs: &Blobs, layout: &dyn Layout, index: &mut Index) -> Result<(), DatasetError> {
    let key = index.data_key.clone();
    let mut left = index.items.as_mut_slice();
    while let Some(first) = left.first() {
        let offset = first.offset;
        let (count, bytes) = next_block(left);
        let (block, rest) = std::mem::take(&mut left).split_at_mut(count);
        let content = blobs.get_range(&key, offset, bytes).await?;
        let lengths: Vec<u64> = block.iter().map(|entry| entry.length).collect();
        let name = key.clone();
        // Some items have many megabytes, so decoding must not block the executor.
        let read = tokio::task::spawn_blocking(move || items(&name, &content, &lengths));
        let read = read.await.map_err(|error| DatasetError::Interrupted(error.to_string()))?;
        for (entry, row) in block.iter_mut().zip(read?) {
            entry.source_id = source_id(layout, &row);
        }
        left = rest;
    }
    Ok(())
}

/// Returns the number and total bytes of leading entries that are adjacent and fit into one read.
fn next_block(entries: &[IndexEntry]) -> (usize, u64) {
    let (mut count, mut bytes) = (0, 0_u64);
    let start = entries.first().map_or(0, |first| first.offset);
    for entry in entries {
        let is_next = start.checked_add(bytes) == Some(entry.offset);
        if count > 0 && (!is_next || bytes.saturating_add(entry.length) > READ_BYTES_MAX) {
            break;
        }
        bytes = bytes.saturating_add(entry.length);
        count += 1;
    }
    (count, bytes)
}

/// Decodes the columns of items whose frames are adjacent.
fn items(key: &str, content: &[u8], lengths: &[u64]) -> Result<Vec<Row>, DatasetError> {
    let damaged = |problem: String| BlobError::Damaged { key: key.to_owned(), problem };
    let mut rest = content;
    let mut rows = Vec::with_capacity(lengths.len());
    for length in lengths {
        let frame = usize::try_from(*length).ok().and_then(|length| rest.split_at_checked(length));
        let (frame, after) = frame.ok_or_else(|| damaged("it is shorter than its index says".to_owned()))?;
        let content = decompress(frame, OBJECT_BYTES_MAX).map_err(|error| damaged(error.to_string()))?;
        let item: Item = serde_json::from_slice(&content).map_err(|error| damaged(error.to_string()))?;
        rows.push(item.row);
        rest = after;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_in_blocks_without_gaps() {
        let entry = |offset, length| IndexEntry {
            id: String::new(),
            source_id: None,
            group: None,
            tags: Default::default(),
            offset,
            length,
        };
        let half = READ_BYTES_MAX / 2;
        assert_eq!(next_block(&[entry(0, 10), entry(10, 5), entry(16, 5)]), (2, 15));
        assert_eq!(
            next_block(&[entry(7, half), entry(7 + half, half), entry(7 + 2 * half, 1)]),
            (2, 2 * half)
        );
        assert_eq!(next_block(&[entry(0, 3 * half), entry(3 * half, 1)]), (1, 3 * half));
        assert_eq!(next_block(&[entry(u64::MAX, 5), entry(4, 1)]), (1, 5));
    }
}
