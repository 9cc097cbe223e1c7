//! Files as one sequence of bytes: the length of a header, the header as JSON, and the files' bytes.

use serde::{Deserialize, Serialize};

/// Maximum size of a bundle, in bytes.
pub(crate) const BUNDLE_BYTES_MAX: usize = 60 << 20;
/// Maximum length of a path, in bytes.
const PATH_BYTES_MAX: usize = 1_024;

/// A file for a task's folder or a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFile {
    /// Relative path; no `..`, no control characters.
    pub path: String,
    /// True if it may be executed.
    pub is_executable: bool,
    /// Content.
    pub bytes: Vec<u8>,
}

/// Error of files that can't be bundled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// A path is invalid.
    #[error("`{path}` is not a valid path of a file: use a relative path without `..`")]
    Path {
        /// The path.
        path: String,
    },
    /// The files are too large.
    #[error("the files have more than {} bytes together", BUNDLE_BYTES_MAX)]
    TooLarge,
}

/// Entry of the header.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    path: String,
    mode: u32,
    bytes: usize,
}

/// A file as it was bundled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BundledFile {
    pub(crate) path: String,
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

/// Bundles the files of a task, for [`crate::EngineHost::upload`].
///
/// # Errors
/// If a path is invalid, or the files have more than 60 MiB together.
pub fn task_bundle(files: &[TaskFile]) -> Result<Vec<u8>, BundleError> {
    let mut entries = Vec::with_capacity(files.len());
    for file in files {
        let is_part = |part: &str| !matches!(part, "" | "." | "..");
        let is_path = file.path.len() <= PATH_BYTES_MAX
            && !file.path.chars().any(char::is_control)
            && file.path.split('/').all(is_part);
        if !is_path {
            return Err(BundleError::Path { path: file.path.chars().take(200).collect() });
        }
        let mode = if file.is_executable { 0o755 } else { 0o644 };
        entries.push(Entry { path: file.path.clone(), mode, bytes: file.bytes.len() });
    }
    let header = serde_json::to_vec(&entries).map_err(|_| BundleError::TooLarge)?;
    if files.iter().map(|file| file.bytes.len()).sum::<usize>() + header.len() > BUNDLE_BYTES_MAX {
        return Err(BundleError::TooLarge);
    }
    let mut bundle = format!("{}\n", header.len()).into_bytes();
    bundle.extend_from_slice(&header);
    for file in files {
        bundle.extend_from_slice(&file.bytes);
    }
    Ok(bundle)
}

/// Splits a bundle; `None` if it isn't one.
pub(crate) fn unbundle(bundle: &[u8]) -> Option<Vec<BundledFile>> {
    let end = bundle.iter().position(|byte| *byte == b'\n')?;
    let length: usize = std::str::from_utf8(bundle.get(..end)?).ok()?.parse().ok()?;
    let rest = bundle.get(end + 1..)?;
    let entries: Vec<Entry> = serde_json::from_slice(rest.get(..length)?).ok()?;
    let mut rest = rest.get(length..)?;
    let mut files = Vec::new();
    for Entry { path, mode, bytes } in entries {
        let (content, left) = rest.split_at_checked(bytes)?;
        files.push(BundledFile { path, mode, bytes: content.to_vec() });
        rest = left;
    }
    rest.is_empty().then_some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> TaskFile {
        TaskFile {
            path: path.to_owned(),
            is_executable: path.ends_with(".sh"),
            bytes: path.as_bytes().to_vec(),
        }
    }

    #[test]
    fn files_survive_a_bundle() {
        let files = [file("a"), file("b c/ä.sh"), TaskFile { bytes: vec![0, 255, 10], ..file("x") }];
        let bundled = unbundle(&task_bundle(&files).unwrap()).unwrap();
        assert_eq!(bundled.iter().map(|file| file.mode).collect::<Vec<_>>(), [0o644, 0o755, 0o644]);
        for (before, after) in files.iter().zip(bundled) {
            assert_eq!((&before.path, &before.bytes), (&after.path, &after.bytes));
        }
        assert_eq!(unbundle(&task_bundle(&[]).unwrap()), Some(Vec::new()));
    }

    #[test]
    fn paths_stay_in_the_folder() {
        for path in ["", "/a", "a/", "a//b", "..", "../a", "a/../b", "./a", "a\nb", &"a".repeat(1_025)] {
            assert!(matches!(task_bundle(&[file(path)]), Err(BundleError::Path { .. })), "{path}");
        }
    }

    #[test]
    fn broken_bundles_are_recognized() {
        let whole = task_bundle(&[file("a"), file("b")]).unwrap();
        for length in 0..whole.len() {
            assert_eq!(unbundle(&whole[..length]), None, "{length}");
        }
        for broken in
            ["9\n[]", "x\n", "2\n[]x", "-1\n", "40\n[{\"path\":\"a\",\"mode\":1,\"bytes\":99999999}]"]
        {
            assert_eq!(unbundle(broken.as_bytes()), None, "{broken}");
        }
    }
}
