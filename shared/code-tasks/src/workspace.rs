//! Files that a model changes.

use std::collections::BTreeMap;

/// A file of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFile {
    /// Content.
    pub bytes: Vec<u8>,
    /// True if it may be executed.
    pub is_executable: bool,
}

/// Files by their paths, which have `/` between their parts and lead to no place outside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    files: BTreeMap<String, WorkspaceFile>,
}

impl Workspace {
    /// Creates a workspace. Paths must be valid [`TaskPath`](bench_terminal_tasks::TaskPath)s.
    pub const fn new(files: BTreeMap<String, WorkspaceFile>) -> Self {
        Self { files }
    }

    /// Returns the files in the order of their paths.
    pub const fn files(&self) -> &BTreeMap<String, WorkspaceFile> {
        &self.files
    }

    /// Returns a file.
    pub fn get(&self, path: &str) -> Option<&WorkspaceFile> {
        self.files.get(path)
    }

    /// Returns true if files are below a path, which is a folder then.
    pub fn has_folder(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.files.range(below.clone()..).next().is_some_and(|(name, _)| name.starts_with(&below))
    }

    /// Returns true if a part of a path is a file, so that no file can be below it.
    pub fn leads_through_file(&self, path: &str) -> bool {
        path.match_indices('/').any(|(at, _)| self.files.contains_key(&path[..at]))
    }

    /// Writes the text of a file. A new file can't be executed.
    pub(crate) fn write(&mut self, path: &str, text: String) {
        let is_executable = self.files.get(path).is_some_and(|file| file.is_executable);
        self.files.insert(path.to_owned(), WorkspaceFile { bytes: text.into_bytes(), is_executable });
    }

    pub(crate) fn remove(&mut self, path: &str) -> Option<WorkspaceFile> {
        self.files.remove(path)
    }

    /// Puts a file in place of everything that is in its way.
    pub(crate) fn insert(&mut self, path: &str, file: WorkspaceFile) {
        self.files.insert(path.to_owned(), file);
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Workspace {
    fn from(files: [(&str, &str); N]) -> Self {
        let file = |text: &str| WorkspaceFile { bytes: text.as_bytes().to_vec(), is_executable: false };
        Self::new(files.into_iter().map(|(path, text)| (path.to_owned(), file(text))).collect())
    }
}
