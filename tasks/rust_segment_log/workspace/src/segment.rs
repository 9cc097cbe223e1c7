//! Reading of one segment.

use std::fs;
use std::path::{Path, PathBuf};

use crate::batch::{self, Batch, CRC_BYTES};
use crate::crc::crc32;
use crate::error::LogError;
use crate::index::{Entry, Index};
use crate::source::Source;
use crate::varint::{self, MAX_BYTES, VarintError};

/// Size of a segment's header.
pub const HEADER_BYTES: u64 = 16;
const MAGIC: &[u8; 4] = b"SEG1";

/// A segment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub path: PathBuf,
    pub base: u64,
}

impl Segment {
    pub fn file_name(base: u64) -> String {
        format!("{base:020}.seg")
    }

    pub fn name(&self) -> String {
        Self::file_name(self.base)
    }

    pub fn index_path(&self) -> PathBuf {
        self.path.with_extension("idx")
    }

    /// Opens the segment at its first batch.
    pub fn scan(&self) -> Result<Scan, LogError> {
        Scan::open(self)
    }

    /// Opens the segment at the last index entry that `is_before` accepts, or at the first batch.
    pub fn scan_from(&self, is_before: impl Fn(&Entry) -> bool) -> Result<Scan, LogError> {
        let mut scan = self.scan()?;
        if let Some(index) = Index::read(&self.index_path(), self.base)? {
            let count = index.entries.partition_point(is_before);
            if let Some(entry) = count.checked_sub(1).map(|last| index.entries[last]) {
                scan.source.seek(u64::from(entry.position))?;
            }
        }
        Ok(scan)
    }

    pub fn write_header(path: &Path, base: u64) -> Result<(), LogError> {
        fs::write(path, header(base))?;
        Ok(())
    }
}

fn header(base: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&base.to_le_bytes());
    bytes.extend_from_slice(&crc32(&bytes).to_le_bytes());
    bytes
}

/// State of a segment after its last valid batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    Clean,
    Torn,
}

/// Reads the batches of a segment one after another.
pub struct Scan {
    source: Source,
    file_size: u64,
    segment: Segment,
    tail: Option<Tail>,
}

/// A batch with its place in the segment.
pub struct Located {
    pub position: u64,
    pub batch: Batch,
}

impl Scan {
    fn open(segment: &Segment) -> Result<Self, LogError> {
        let file_size = fs::metadata(&segment.path)?.len();
        let mut scan = Self {
            source: Source::open(&segment.path)?,
            file_size,
            segment: segment.clone(),
            tail: None,
        };
        if file_size < HEADER_BYTES {
            scan.tail = Some(Tail::Torn);
            return Ok(scan);
        }
        let expected = header(segment.base);
        if !scan.source.peek(expected.len())?.starts_with(&expected) {
            return Err(scan.corrupt(0));
        }
        scan.source.consume(expected.len());
        Ok(scan)
    }

    /// Returns the position after the last valid batch that was read.
    pub fn end(&self) -> u64 {
        self.source.position()
    }

    /// Returns the state of the segment's end. Callers have read all batches.
    pub fn tail(&self) -> Tail {
        self.tail.unwrap_or(Tail::Clean)
    }

    /// Returns the next valid batch that has records for readers.
    pub fn next_batch(&mut self) -> Result<Option<Located>, LogError> {
        loop {
            match self.next_of_any_kind()? {
                Some(located) if located.batch.is_control => {}
                found => return Ok(found),
            }
        }
    }

    fn next_of_any_kind(&mut self) -> Result<Option<Located>, LogError> {
        if self.tail.is_some() {
            return Ok(None);
        }
        let position = self.source.position();
        let available = self.source.peek(MAX_BYTES)?;
        let (length, prefix) = match varint::read_u64(available) {
            Ok(found) => found,
            Err(VarintError::Truncated) if available.is_empty() => {
                self.tail = Some(Tail::Clean);
                return Ok(None);
            }
            Err(VarintError::Truncated) => return Ok(self.torn()),
            Err(VarintError::Malformed) => return Err(self.corrupt(position)),
        };
        let left = self.file_size.saturating_sub(position + prefix as u64);
        if length > left {
            return Ok(self.torn());
        }
        if length < CRC_BYTES as u64 {
            return Err(self.corrupt(position));
        }
        let size = prefix + length as usize;
        let bytes = &self.source.peek(size)?[..size];
        let (crc, body) = bytes[prefix..].split_at(CRC_BYTES);
        if crc != crc32(body).to_le_bytes() {
            return Err(self.corrupt(position));
        }
        let Ok(batch) = batch::decode(body, self.segment.base) else {
            return Err(self.corrupt(position));
        };
        self.source.consume(size);
        Ok(Some(Located { position, batch }))
    }

    fn torn<T>(&mut self) -> Option<T> {
        self.tail = Some(Tail::Torn);
        None
    }

    fn corrupt(&self, position: u64) -> LogError {
        LogError::Corrupt { segment: self.segment.name(), position }
    }
}
