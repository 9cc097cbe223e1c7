//! Paths of files inside a task.

use std::fmt;

use unicode_normalization::UnicodeNormalization;

use crate::refusal::ArchiveProblem;

/// Maximum length of a path, in bytes.
pub const PATH_BYTES_MAX: usize = 1024;
/// Maximum number of components of a path.
pub const PATH_DEPTH_MAX: usize = 32;
/// Maximum length of a component, in bytes: what usual file systems allow.
const COMPONENT_BYTES_MAX: usize = 255;

/// Path of a file relative to the task's folder: `/` between components, none of them `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskPath(String);

impl TaskPath {
    /// Checks a path.
    ///
    /// # Errors
    /// If the path is absolute, leaves its folder, is too long, or contains a character that a file system or another
    /// program could misread: backslashes, drive prefixes and control characters.
    pub fn new(path: &str) -> Result<Self, ArchiveProblem> {
        let unsafe_path = |reason| Err(ArchiveProblem::UnsafePath { reason });
        let mut components = path.split('/');
        if path.is_empty() {
            return unsafe_path("is empty");
        }
        if path.len() > PATH_BYTES_MAX
            || components.clone().count() > PATH_DEPTH_MAX
            || components.clone().any(|component| component.len() > COMPONENT_BYTES_MAX)
        {
            return Err(ArchiveProblem::PathTooLong {
                path_bytes_max: PATH_BYTES_MAX,
                depth_max: PATH_DEPTH_MAX,
            });
        }
        if path.starts_with('/') {
            return unsafe_path("is absolute");
        }
        if path.contains('\\') {
            return unsafe_path("contains a backslash");
        }
        if matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic()) {
            return unsafe_path("begins with a drive");
        }
        if path.chars().any(char::is_control) {
            return unsafe_path("contains a control character");
        }
        if components.any(|component| matches!(component, "" | "." | "..")) {
            return unsafe_path("has an empty component, `.` or `..`");
        }
        Ok(Self(path.to_owned()))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last component.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Returns the path relative to a folder, or `None` if it is elsewhere. The empty folder is the root.
    pub fn relative_to(&self, folder: &str) -> Option<&str> {
        if folder.is_empty() {
            return Some(&self.0);
        }
        self.0.strip_prefix(folder)?.strip_prefix('/')
    }

    /// Returns true for files that archive and desktop programs add and that aren't part of a task.
    pub(crate) fn is_junk(&self) -> bool {
        self.0.split('/').any(|component| component == "__MACOSX") || self.name() == ".DS_Store"
    }
}

impl fmt::Display for TaskPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Returns the form of a name in which names that a file system may treat as equal are equal.
pub(crate) fn fold(name: &str) -> String {
    name.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_paths_are_refused() {
        for path in [
            "",
            "/etc/passwd",
            "..",
            "../x",
            "a/../../x",
            "a/..",
            "./a",
            "a/./b",
            "a//b",
            "a/",
            "a\\b",
            "C:/x",
            "c:x",
            "a\0b",
            "a\nb",
            "a\u{7f}",
        ] {
            assert_eq!(TaskPath::new(path).unwrap_err().code(), "unsafe_path", "{path:?}");
        }
        for path in ["x".repeat(256), "a/".repeat(32) + "a", format!("{}x", "ab/".repeat(400))] {
            assert_eq!(TaskPath::new(&path).unwrap_err().code(), "path_too_long");
        }
        for path in ["task.toml", "a/b c/…", "...", "a/..b", "ab:c", "-rf"] {
            assert_eq!(TaskPath::new(path).unwrap().as_str(), path);
        }
    }

    #[test]
    fn names_are_folded_as_file_systems_do() {
        assert_eq!(fold("Ärger"), fold("a\u{308}RGER"));
        assert_eq!(fold("ﬁle"), fold("FILE"));
        assert_ne!(fold("a"), fold("b"));
    }

    #[test]
    fn no_path_leaves_its_folder() {
        proptest::proptest!(|(path in r"[a./\\:C\n]{0,12}")| {
            if let Ok(path) = TaskPath::new(&path) {
                let joined = std::path::Path::new("/root").join(path.as_str());
                let normal = |part| matches!(part, std::path::Component::Normal(_));
                proptest::prop_assert!(joined.components().skip(1).all(normal) && joined.starts_with("/root"));
            }
        });
    }
}
