//! Items read together with their neighbors.
//!
//! Samples are worked on roughly in the order of their items, so one ranged read serves many of them. Datasets never
//! change under their key.

use bench_blobs::Blobs;
use bench_items::Item;
use bytes::Bytes;

use crate::bounded_cache::BoundedCache;
use crate::error::DatasetError;
use crate::index::{load_item, unpack_item};

/// Length of a block in bytes: some hundred items of usual size, and a read that takes a few milliseconds on AWS.
const BLOCK_BYTES: u64 = 128 * 1024;
/// Maximum length of an item's frame that is read as a part of blocks. Longer ones are read alone.
const FRAME_BYTES_MAX: u64 = BLOCK_BYTES / 4;

/// Loads items, and keeps the blocks of the datasets' files that they are in.
#[derive(Debug)]
pub struct ItemCache(BoundedCache<(String, u64), Bytes>);

impl ItemCache {
    /// Creates a cache that holds about `limit_bytes` in total.
    pub fn new(limit_bytes: usize) -> Self {
        Self(BoundedCache::new(limit_bytes))
    }

    /// Loads the item whose frame is at `offset`, as [`load_item`] does.
    ///
    /// # Errors
    /// Returns an error if the store fails, or if the frame isn't an item.
    pub async fn load(
        &self,
        blobs: &Blobs,
        data_key: &str,
        offset: u64,
        length: u64,
    ) -> Result<Item, DatasetError> {
        if length == 0 || length > FRAME_BYTES_MAX {
            return load_item(blobs, data_key, offset, length).await;
        }
        let end = offset.saturating_add(length);
        let (first, last) = (offset / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
        let mut frame = self.part(blobs, data_key, first, offset, end).await?;
        if last != first {
            let rest = self.part(blobs, data_key, last, offset, end).await?;
            frame = [frame, rest].concat().into();
        }
        if frame.len() as u64 != length {
            // The file is shorter than its index says, which this call reports.
            return load_item(blobs, data_key, offset, length).await;
        }
        unpack_item(data_key, &frame)
    }

    /// Returns the part of the frame from `offset` to `end` that is in this block.
    async fn part(
        &self,
        blobs: &Blobs,
        data_key: &str,
        block: u64,
        offset: u64,
        end: u64,
    ) -> Result<Bytes, DatasetError> {
        let start = block * BLOCK_BYTES;
        let key = (data_key.to_owned(), block);
        // In a box, since the futures of all callers contain this one.
        let load = Box::pin(blobs.get_block(data_key, start, BLOCK_BYTES));
        let bytes = self.0.get_or_load(&key, load, |bytes| data_key.len() + bytes.len()).await?;
        let at =
            |place: u64| usize::try_from(place.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes.slice(at(offset)..at(end)))
    }
}
