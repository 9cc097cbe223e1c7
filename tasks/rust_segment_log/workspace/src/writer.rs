//! Appending to a log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::batch::{self, Record};
use crate::error::LogError;
use crate::index::{Index, Indexer};
use crate::log::segments;
use crate::segment::{HEADER_BYTES, Segment};

/// Limits that a writer keeps.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub segment_bytes: u64,
    pub index_every: u64,
}

/// A record that has no offset yet.
#[derive(Debug, Clone)]
pub struct NewRecord {
    pub time: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
}

/// Appends batches to the newest segment of a log.
pub struct Writer {
    folder: PathBuf,
    options: Options,
    base: u64,
    next: u64,
    /// Position of the next batch.
    end: u64,
    data: File,
    index: File,
    indexer: Indexer,
}

impl Writer {
    /// Opens the log in `folder`, which is created if it is missing, and repairs its newest segment.
    pub fn open(folder: &Path, options: Options) -> Result<Self, LogError> {
        fs::create_dir_all(folder)?;
        match segments(folder)?.pop() {
            Some(segment) => Self::resume(folder, options, &segment),
            None => Self::create(folder, options, 0),
        }
    }

    fn create(folder: &Path, options: Options, base: u64) -> Result<Self, LogError> {
        let path = folder.join(Segment::file_name(base));
        Segment::write_header(&path, base)?;
        let index_path = path.with_extension("idx");
        Index::default().write(&index_path, base)?;
        Ok(Self {
            folder: folder.to_owned(),
            options,
            base,
            next: base,
            end: HEADER_BYTES,
            data: appending(&path)?,
            index: appending(&index_path)?,
            indexer: Indexer::new(options.index_every),
        })
    }

    fn resume(folder: &Path, options: Options, segment: &Segment) -> Result<Self, LogError> {
        let mut indexer = Indexer::new(options.index_every);
        let mut next = segment.base;
        let mut scan = segment.scan()?;
        while let Some(located) = scan.next_batch()? {
            next = located.batch.next_offset();
            indexer.observe(located.batch.max_time());
        }
        let mut end = scan.end();
        if end < HEADER_BYTES {
            Segment::write_header(&segment.path, segment.base)?;
            end = HEADER_BYTES;
        }
        let data = appending(&segment.path)?;
        data.set_len(end)?;

        let index_path = segment.index_path();
        match Index::read(&index_path, segment.base)? {
            Some(index) => {
                if let Some(last) = index.entries.last() {
                    indexer.resume_after(last);
                }
            }
            None => Index::default().write(&index_path, segment.base)?,
        }
        Ok(Self {
            folder: folder.to_owned(),
            options,
            base: segment.base,
            next,
            end,
            data,
            index: appending(&index_path)?,
            indexer,
        })
    }

    /// Appends a batch of at least one record. Returns the offsets of its first and last record.
    pub fn append(&mut self, records: Vec<NewRecord>) -> Result<(u64, u64), LogError> {
        if self.end > HEADER_BYTES && self.end >= self.options.segment_bytes {
            *self = Self::create(&self.folder, self.options, self.next)?;
        }
        let first = self.next;
        let records: Vec<Record> = (first..)
            .zip(records)
            .map(|(offset, NewRecord { time, key, value })| Record { offset, time, key, value })
            .collect();
        let bytes = batch::encode(&records, self.base);
        self.data.write_all(&bytes)?;
        if let Some(entry) = self.indexer.entry(first - self.base, self.end) {
            self.index.write_all(&entry.encode())?;
        }
        self.indexer.observe(records.iter().map(|record| record.time).max());
        self.end += bytes.len() as u64;
        self.next += records.len() as u64;
        Ok((first, self.next - 1))
    }
}

fn appending(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}
