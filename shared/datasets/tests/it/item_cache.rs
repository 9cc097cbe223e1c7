//! Items that are read together with their neighbors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bench_blobs::{Blobs, compress};
use bench_datasets::{DatasetError, ItemCache, load_item};
use bench_embedded::{Durability, Embedded, EmbeddedOptions, Recorder};
use bench_items::Item;
use serde_json::{Value, json};
use tempfile::TempDir;

const KEY: &str = "datasets/quiz/data.zst";
const PLENTY: usize = 16 * 1024 * 1024;

/// A stored file of frames, and the number of reads of it.
struct Stored {
    blobs: Blobs,
    frames: Vec<(u64, u64)>,
    bytes: u64,
    reads: Arc<AtomicUsize>,
    _embedded: Embedded,
    _folder: TempDir,
}

impl Stored {
    /// Stores items with texts of these lengths, which don't become shorter by compression.
    async fn new(lengths: &[usize]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let reads = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&reads);
        let recorder = Recorder::new(move |call| {
            if call.action == "GetObject" {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let options = EmbeddedOptions::new(folder.path().join("data")).durability(Durability::Normal);
        let embedded = Embedded::open(options.recorder(recorder)).unwrap();
        let blobs = Blobs::new(&embedded.sdk_config(), "bench");
        blobs.ensure_bucket().await.unwrap();
        let (mut file, mut frames) = (Vec::new(), Vec::new());
        let mut random = random_bytes(7);
        for (number, length) in lengths.iter().enumerate() {
            let text: String = (0..*length).map(|_| char::from(b'!' + random() % 90)).collect();
            let row = json!({ "text": text });
            let item = Item::new(number.to_string(), None, row.as_object().unwrap().clone());
            let frame = compress(&serde_json::to_vec(&item).unwrap()).unwrap();
            frames.push((file.len() as u64, frame.len() as u64));
            file.extend(frame);
        }
        let bytes = file.len() as u64;
        blobs.put(KEY, file.into(), "application/zstd").await.unwrap();
        Self { blobs, frames, bytes, reads, _embedded: embedded, _folder: folder }
    }

    fn take_reads(&self) -> usize {
        self.reads.swap(0, Ordering::Relaxed)
    }
}

/// Returns a generator of bytes (xorshift), the same in every run of the test.
fn random_bytes(seed: u64) -> impl FnMut() -> u8 {
    let mut state = seed;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    }
}

#[tokio::test]
async fn neighbors_share_reads_and_are_what_they_are_alone() {
    // About half a megabyte, so that frames cross the ends of blocks; two items are too long for a block.
    let mut lengths: Vec<usize> = (0..300).map(|number| 1_000 + number * 5).collect();
    lengths[100] = 60_000;
    lengths[299] = 200_000;
    let stored = Stored::new(&lengths).await;
    let cache = ItemCache::new(PLENTY);
    let mut found = Vec::new();
    for (offset, length) in &stored.frames {
        found.push(cache.load(&stored.blobs, KEY, *offset, *length).await.unwrap());
    }
    let blocks = stored.bytes.div_ceil(128 * 1024) as usize;
    let reads = stored.take_reads();
    assert!((4..=blocks + 2).contains(&reads), "{reads} reads of {blocks} blocks and two long items");
    for (item, (offset, length)) in found.iter().zip(&stored.frames) {
        assert_eq!(*item, load_item(&stored.blobs, KEY, *offset, *length).await.unwrap());
    }
    assert_eq!(found[7].row.get("text").and_then(Value::as_str).map(str::len), Some(lengths[7]));
}

#[tokio::test]
async fn samples_at_the_same_time_wait_for_one_read() {
    let stored = Stored::new(&[500; 40]).await;
    let cache = ItemCache::new(PLENTY);
    let loads = stored.frames.iter().map(|(offset, length)| cache.load(&stored.blobs, KEY, *offset, *length));
    for (number, item) in futures_util::future::join_all(loads).await.into_iter().enumerate() {
        assert_eq!(item.unwrap().id, number.to_string());
    }
    assert_eq!(stored.take_reads(), 1);
}

/// Would hang if an item could ask for more room than there is.
#[tokio::test]
async fn items_above_the_room_for_large_ones_are_loaded() {
    let lengths = [9_000_000, 200_000, 9_000_000, 22_000_000];
    let stored = Stored::new(&lengths).await;
    let (_, longest) = stored.frames[3];
    assert!(longest > 16 << 20, "{longest}");
    let cache = ItemCache::new(PLENTY);
    let loads = stored.frames.iter().map(|(offset, length)| cache.load(&stored.blobs, KEY, *offset, *length));
    for (item, expected) in futures_util::future::join_all(loads).await.into_iter().zip(lengths) {
        let item = item.unwrap();
        assert_eq!(item.row.get("text").and_then(Value::as_str).map(str::len), Some(expected));
    }
    assert_eq!(stored.take_reads(), lengths.len());
}

#[tokio::test]
async fn a_full_cache_reads_again() {
    let stored = Stored::new(&[1_000; 300]).await;
    let cache = ItemCache::new(140 * 1024);
    let ends = [stored.frames[0], stored.frames[299]];
    for (offset, length) in ends.into_iter().chain(ends) {
        cache.load(&stored.blobs, KEY, offset, length).await.unwrap();
    }
    assert_eq!(stored.take_reads(), 4, "there is room for one block");
}

#[tokio::test]
async fn an_invalid_frame_is_an_error() {
    let stored = Stored::new(&[500; 3]).await;
    let cache = ItemCache::new(PLENTY);
    let (offset, length) = stored.frames[1];
    let end = stored.bytes;
    for (offset, length) in [
        (offset + 1, length),
        (offset, length - 1),
        (0, 1 << 40),
        (0, 0),
        (end - 1, 9),
        (end, 9),
        (end * 9, 9),
    ] {
        let error = cache.load(&stored.blobs, KEY, offset, length).await.unwrap_err();
        assert!(matches!(error, DatasetError::Blob(_)), "{offset} {length}: {error}");
    }
    let error = cache.load(&stored.blobs, "datasets/gone", 0, 9).await.unwrap_err();
    assert!(matches!(error, DatasetError::Blob(_)), "{error}");
    // Nothing of a failed read is kept.
    stored
        .blobs
        .put("datasets/gone", stored.blobs.get(KEY).await.unwrap().unwrap(), "application/zstd")
        .await
        .unwrap();
    let (offset, length) = stored.frames[1];
    assert_eq!(cache.load(&stored.blobs, "datasets/gone", offset, length).await.unwrap().id, "1");
}
