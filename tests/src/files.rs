//! Searches a stack's data directory.

use std::fs;
use std::path::Path;

/// Returns the files below a folder whose bytes contain the text. Ignores files that are created or deleted
/// meanwhile.
pub fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = fs::read(&path)
            && memchr::memmem::find(&bytes, text.as_bytes()).is_some()
        {
            found.push(path.display().to_string());
        }
    }
    found
}
