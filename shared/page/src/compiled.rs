//! The page's files, compiled in.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::file::File;

/// Names and contents of the files of `frontend-static`.
pub(crate) static FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Returns a file by its name.
pub(crate) fn file(name: &str) -> Option<File> {
    // Compressing all files takes a few milliseconds, at the first request.
    static BY_NAME: LazyLock<BTreeMap<&str, File>> =
        LazyLock::new(|| FILES.iter().map(|(name, bytes)| (*name, File::compressed(name, bytes))).collect());
    BY_NAME.get(name).cloned()
}
