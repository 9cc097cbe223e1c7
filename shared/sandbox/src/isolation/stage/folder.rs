//! Bytes of a folder.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files and folders counted in one look; a sandbox with more is over its limit, whatever their size.
const FILES_MAX: usize = 1 << 20;
/// Bytes of one file, at least, for the count: its name takes room too.
const FILE_BYTES_MIN: u64 = 4 << 10;

/// Bytes of everything below a folder, links not followed; as if over every limit when it cannot be counted.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let mut sum = 0_u64;
    let mut count = 0;
    let mut left: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // Closed to us by its owner: whatever is in it cannot be counted.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return u64::MAX,
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            count += 1;
            if count > FILES_MAX {
                return u64::MAX;
            }
            let Ok(about) = entry.metadata() else { continue };
            sum = sum.saturating_add((about.blocks() * 512).max(FILE_BYTES_MIN));
            if about.is_dir() {
                left.push(entry.path());
            }
        }
    }
    sum
}
