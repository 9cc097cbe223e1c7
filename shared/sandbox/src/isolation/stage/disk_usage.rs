//! Measures the size of a folder.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of files and folders counted; a sandbox with more is over its limit, whatever their size.
const FILES_MAX: usize = 1 << 20;
/// Minimum size counted for a file, in bytes, since its name takes space too.
const FILE_BYTES_MIN: u64 = 4 << 10;

/// Returns the size of everything below a folder, in bytes, without following links. Returns `u64::MAX` if it can't be
/// measured.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let mut sum = 0_u64;
    let mut count = 0;
    let mut left: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // The owner closed the folder to us, so its content can't be counted.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return u64::MAX,
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            count += 1;
            if count > FILES_MAX {
                return u64::MAX;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            sum = sum.saturating_add((metadata.blocks() * 512).max(FILE_BYTES_MIN));
            if metadata.is_dir() {
                left.push(entry.path());
            }
        }
    }
    sum
}
