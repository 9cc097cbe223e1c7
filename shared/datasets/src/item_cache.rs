//! Items read together with their neighbors.
//!
//! Samples are worked on roughly in the order of their items, so one ranged read serves many of them. Datasets never
//! change under their key.

use bench_blobs::Blobs;
use bench_items::Item;
use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::bounded_cache::BoundedCache;
use crate::error::DatasetError;
use crate::index::{load_item, unpack_item};

/// Length of a block in bytes: some hundred items of usual size, and a read that takes a few milliseconds on AWS.
const BLOCK_BYTES: u64 = 128 * 1024;
/// Maximum length of an item's frame that is read as a part of blocks. Longer ones are read alone.
const FRAME_BYTES_MAX: u64 = BLOCK_BYTES / 4;
/// Maximum total length, in KiB, of longer frames that are read and unpacked at once. Unpacking takes several times as much
/// memory, and a function has little.
const LARGE_KIB_AT_ONCE: u32 = 16 * 1024;

/// Loads items, and keeps the blocks of the datasets' files that they are in.
#[derive(Debug)]
pub struct ItemCache {
    blocks: BoundedCache<(String, u64), Bytes>,
    /// KiB of longer frames that may still be read.
    large: Semaphore,
}

impl ItemCache {
    /// Creates a cache that holds about `limit_bytes` in total.
    pub fn new(limit_bytes: usize) -> Self {
        Self { blocks: BoundedCache::new(limit_bytes), large: Semaphore::new(LARGE_KIB_AT_ONCE as usize) }
    }

    /// Returns true if an item with a frame of this length is read by itself and isn't cached.
    pub fn is_large(length: u64) -> bool {
        length > FRAME_BYTES_MAX
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
        if length == 0 || Self::is_large(length) {
            let kib = u32::try_from(length.div_ceil(1024)).unwrap_or(u32::MAX).min(LARGE_KIB_AT_ONCE);
            // The semaphore is never closed, so this doesn't fail.
            let _room = self.large.acquire_many(kib).await.ok();
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
        let bytes = self.blocks.get_or_load(&key, load, |bytes| data_key.len() + bytes.len()).await?;
        let at =
            |place: u64| usize::try_from(place.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes.slice(at(offset)..at(end)))
    }
}
