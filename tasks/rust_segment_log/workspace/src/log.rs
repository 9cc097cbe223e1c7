//! A log: all segments of a folder.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::batch::Record;
use crate::error::LogError;
use crate::index::{Index, Indexer};
use crate::segment::{Segment, Tail};

/// Reads a log.
pub struct Log {
    segments: Vec<Segment>,
}

/// Findings about a segment.
pub struct Report {
    pub name: String,
    pub batches: u64,
    pub records: u64,
    pub next: u64,
    pub end: u64,
    pub state: &'static str,
}

impl Log {
    pub fn open(folder: &Path) -> Result<Self, LogError> {
        Ok(Self { segments: segments(folder)? })
    }

    /// Passes all records with an offset of at least `from` to `visit`, in order, until it breaks.
    pub fn read(&self, from: u64, mut visit: impl FnMut(&Record) -> io::Result<ControlFlow<()>>) -> Result<(), LogError> {
        let first = self.segments.partition_point(|segment| segment.base <= from).saturating_sub(1);
        for segment in &self.segments[first..] {
            let mut scan = segment.scan_from(|entry| segment.base + u64::from(entry.delta) <= from)?;
            while let Some(located) = scan.next_batch()? {
                for record in &located.batch.records {
                    if record.offset < from {
                        continue;
                    }
                    if visit(record)?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the first record with a time of at least `time`.
    pub fn find(&self, time: i64) -> Result<Option<Record>, LogError> {
        for segment in &self.segments {
            let mut scan = segment.scan_from(|entry| entry.max_time <= time)?;
            while let Some(located) = scan.next_batch()? {
                if let Some(record) = located.batch.records.iter().find(|record| record.time >= time) {
                    return Ok(Some(record.clone()));
                }
            }
        }
        Ok(None)
    }

    /// Reads all segments, without their indexes.
    pub fn verify(&self) -> Result<Vec<Report>, LogError> {
        self.segments.iter().map(verify_segment).collect()
    }

    /// Writes all indexes anew.
    pub fn reindex(&self, every: u64) -> Result<(), LogError> {
        for segment in &self.segments {
            let mut indexer = Indexer::new(every);
            let mut index = Index::default();
            let mut scan = segment.scan()?;
            while let Some(located) = scan.next_batch()? {
                let delta = located.batch.first_offset() - segment.base;
                index.entries.extend(indexer.entry(delta, located.position));
                indexer.observe(located.batch.max_time());
            }
            index.write(&segment.index_path(), segment.base)?;
        }
        Ok(())
    }
}

fn verify_segment(segment: &Segment) -> Result<Report, LogError> {
    let mut report = Report {
        name: segment.name(),
        batches: 0,
        records: 0,
        next: segment.base,
        end: 0,
        state: "clean",
    };
    let mut scan = match segment.scan() {
        Ok(scan) => scan,
        Err(LogError::Corrupt { .. }) => return Ok(Report { state: "corrupt", ..report }),
        Err(error) => return Err(error),
    };
    loop {
        report.end = scan.end();
        match scan.next_batch() {
            Ok(Some(located)) => {
                report.batches += 1;
                report.records += located.batch.records.len() as u64;
                report.next = located.batch.next_offset();
            }
            Ok(None) => break,
            Err(LogError::Corrupt { .. }) => {
                report.state = "corrupt";
                return Ok(report);
            }
            Err(error) => return Err(error),
        }
    }
    if scan.tail() == Tail::Torn {
        report.state = "torn";
    }
    Ok(report)
}

/// Returns the segments of a folder in the order of their base offsets.
pub fn segments(folder: &Path) -> Result<Vec<Segment>, LogError> {
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for item in fs::read_dir(folder)? {
        let item = item?;
        if let Some(base) = item.file_name().to_str().and_then(base_of) {
            found.push((base, item.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(base, path)| Segment { path, base }).collect())
}

fn base_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".seg")?;
    if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}
