//! Check of an archive's end, before its directory is read into memory.

use std::io::{Read, Seek, SeekFrom};

use super::ARCHIVE_BYTES_MAX;
use crate::refusal::{ArchiveProblem, Refusal};

/// Length of the end record without its comment.
const END_BYTES: u64 = 22;
const END_MARK: &[u8] = b"PK\x05\x06";
const ZIP64_LOCATOR_BYTES: usize = 20;
const ZIP64_LOCATOR_MARK: &[u8] = b"PK\x06\x07";
/// Maximum average size of an entry in the directory, in bytes: name, extra fields and comment included.
const DIRECTORY_ENTRY_BYTES_MAX: u64 = 2048;

/// Checks the size of the archive and the size of its directory.
///
/// A comment or the data may look like a second end record, so each of them must be within the limits.
pub(super) fn check<R: Read + Seek>(reader: &mut R, entries_max: usize) -> Result<(), Refusal> {
    let unreadable =
        |error: std::io::Error| Refusal::whole(ArchiveProblem::Unreadable { cause: error.to_string() });
    let length = reader.seek(SeekFrom::End(0)).map_err(unreadable)?;
    if length > ARCHIVE_BYTES_MAX {
        return Err(Refusal::whole(ArchiveProblem::ArchiveTooLarge { bytes_max: ARCHIVE_BYTES_MAX }));
    }
    let tail_bytes = length.min(END_BYTES + u64::from(u16::MAX));
    let mut tail = Vec::new();
    reader.seek(SeekFrom::Start(length - tail_bytes)).map_err(unreadable)?;
    reader.by_ref().take(tail_bytes).read_to_end(&mut tail).map_err(unreadable)?;
    reader.seek(SeekFrom::Start(0)).map_err(unreadable)?;

    let ends: Vec<usize> = (0..tail.len()).filter(|at| starts_with(&tail, *at, END_MARK)).collect();
    let mut is_zip = false;
    for at in ends {
        let Some([_, _, _, _, _, _, _, _, disk_low, disk_high, low, high, size @ ..]) =
            tail.get(at..at + END_BYTES as usize)
        else {
            continue;
        };
        is_zip = true;
        let locator = at.checked_sub(ZIP64_LOCATOR_BYTES);
        if locator.is_some_and(|locator| starts_with(&tail, locator, ZIP64_LOCATOR_MARK)) {
            return Err(Refusal::whole(ArchiveProblem::UnsupportedFeature { feature: "ZIP64" }));
        }
        let counts = [[*disk_low, *disk_high], [*low, *high]].map(u16::from_le_bytes);
        let entries = counts.into_iter().max().map_or(0, usize::from);
        let directory_bytes = size.first_chunk().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
        if entries > entries_max || directory_bytes > entries_max as u64 * DIRECTORY_ENTRY_BYTES_MAX {
            return Err(Refusal::whole(ArchiveProblem::TooManyEntries { entries_max }));
        }
    }
    if is_zip { Ok(()) } else { Err(Refusal::whole(ArchiveProblem::NotZip)) }
}

fn starts_with(bytes: &[u8], at: usize, mark: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(mark))
}
