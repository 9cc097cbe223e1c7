//! Sparse index of a segment.

use std::fs;
use std::io;
use std::path::Path;

use crate::segment::HEADER_BYTES;

const MAGIC: &[u8; 4] = b"IDX1";
const INDEX_HEADER_BYTES: usize = 12;
const ENTRY_BYTES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// First offset of the batch minus the segment's base offset.
    pub delta: u32,
    pub position: u32,
    /// Highest time of the records before `position`.
    pub max_time: i64,
}

impl Entry {
    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&self.delta.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.position.to_le_bytes());
        bytes[8..].copy_from_slice(&self.max_time.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let [d0, d1, d2, d3, p0, p1, p2, p3, time @ ..] = *bytes;
        Self {
            delta: u32::from_le_bytes([d0, d1, d2, d3]),
            position: u32::from_le_bytes([p0, p1, p2, p3]),
            max_time: i64::from_le_bytes(time),
        }
    }
}

/// An index file in memory.
#[derive(Debug, Default)]
pub struct Index {
    pub entries: Vec<Entry>,
}

impl Index {
    /// Reads an index. Returns `None` if it is missing or isn't the index of the segment with this base offset.
    pub fn read(path: &Path, base: u64) -> io::Result<Option<Self>> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(entries) = bytes.strip_prefix(&header(base)) else {
            return Ok(None);
        };
        let (entries, _incomplete) = entries.as_chunks::<ENTRY_BYTES>();
        Ok(Some(Self { entries: entries.iter().map(Entry::decode).collect() }))
    }

    pub fn write(&self, path: &Path, base: u64) -> io::Result<()> {
        let mut bytes = header(base).to_vec();
        for entry in &self.entries {
            bytes.extend_from_slice(&entry.encode());
        }
        fs::write(path, bytes)
    }
}

fn header(base: u64) -> [u8; INDEX_HEADER_BYTES] {
    let mut bytes = [0; INDEX_HEADER_BYTES];
    bytes[..4].copy_from_slice(MAGIC);
    bytes[4..].copy_from_slice(&base.to_le_bytes());
    bytes
}

/// Decides which batches of a segment get an entry.
#[derive(Debug, Clone)]
pub struct Indexer {
    every: u64,
    last_position: u64,
    max_time: i64,
}

impl Indexer {
    pub fn new(every: u64) -> Self {
        Self { every, last_position: HEADER_BYTES, max_time: 0 }
    }

    /// Notes an entry that the index has already.
    pub fn resume_after(&mut self, entry: &Entry) {
        self.last_position = u64::from(entry.position);
        self.max_time = entry.max_time;
    }

    /// Notes a batch whose records have at most this time.
    pub fn observe(&mut self, max_time: Option<i64>) {
        self.max_time = self.max_time.max(max_time.unwrap_or_default());
    }

    /// Returns the entry for a batch that comes next, if it gets one.
    pub fn entry(&mut self, delta: u64, position: u64) -> Option<Entry> {
        if position - self.last_position < self.every {
            return None;
        }
        let entry = Entry {
            delta: u32::try_from(delta).ok()?,
            position: u32::try_from(position).ok()?,
            max_time: self.max_time,
        };
        self.last_position = position;
        Some(entry)
    }
}
