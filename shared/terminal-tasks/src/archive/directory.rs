//! Names in an archive's directory as they are written, repeated ones included.

use std::collections::BTreeSet;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// Length of an entry before its name, in bytes.
const FIXED_BYTES: usize = 46;
const ENTRY_MARK: &[u8] = b"PK\x01\x02";

/// Returns the first name that occurs twice in the directory that begins at `start`.
pub(super) fn repeated_name<R: Read + Seek>(reader: &mut R, start: u64) -> Option<String> {
    reader.seek(SeekFrom::Start(start)).ok()?;
    let mut reader = BufReader::new(reader);
    let mut seen = BTreeSet::new();
    loop {
        let mut fixed = [0; FIXED_BYTES];
        reader.read_exact(&mut fixed).ok()?;
        if !fixed.starts_with(ENTRY_MARK) {
            return None;
        }
        // Lengths of name, extra fields and comment.
        let length = |at: usize| Some(usize::from(u16::from_le_bytes(*fixed.get(at..)?.first_chunk()?)));
        let mut rest = vec![0; length(28)? + length(30)? + length(32)?];
        reader.read_exact(&mut rest).ok()?;
        let name = rest.get(..length(28)?)?.to_vec();
        if seen.contains(&name) {
            return Some(String::from_utf8_lossy(&name).into_owned());
        }
        seen.insert(name);
    }
}
