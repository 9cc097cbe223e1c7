//! Names in an archive's directory as they are written, repeated ones included.

use std::collections::BTreeSet;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// Length of an entry before its name, in bytes.
const FIXED_BYTES: usize = 46;
const ENTRY_MARK: &[u8] = b"PK\x01\x02";

/// Returns the first name that occurs twice among the first `entries_max` entries of the directory at `start`.
pub(super) fn repeated_name<R: Read + Seek>(
    reader: &mut R,
    start: u64,
    entries_max: usize,
) -> Option<String> {
    reader.seek(SeekFrom::Start(start)).ok()?;
    let mut reader = BufReader::new(reader);
    let mut seen = BTreeSet::new();
    for _ in 0..entries_max {
        let mut fixed = [0; FIXED_BYTES];
        reader.read_exact(&mut fixed).ok()?;
        if !fixed.starts_with(ENTRY_MARK) {
            return None;
        }
        let length = |at: usize| Some(u16::from_le_bytes(*fixed.get(at..)?.first_chunk()?));
        let (name_bytes, extra_bytes, comment_bytes) = (length(28)?, length(30)?, length(32)?);
        let mut name = vec![0; usize::from(name_bytes)];
        reader.read_exact(&mut name).ok()?;
        if !seen.insert(name.clone()) {
            return Some(String::from_utf8_lossy(&name).into_owned());
        }
        reader.seek_relative(i64::from(extra_bytes) + i64::from(comment_bytes)).ok()?;
    }
    None
}
