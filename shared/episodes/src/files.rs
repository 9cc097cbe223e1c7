//! Files of a task with their contents.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use bench_environments::{BundleError, TaskFile, task_bundle};
use bench_terminal_tasks::{
    AdmissionLimits, AdmittedTask, Archive, ArchiveProblem, InputFiles, Mode, Refusal, TreeLimits,
    admit_archive,
};

/// A task that was admitted again, with the contents of its files.
#[derive(Debug, Clone)]
pub struct TaskFiles {
    /// The task, its files' digests and its content hash.
    pub admitted: AdmittedTask,
    contents: BTreeMap<String, Vec<u8>>,
}

/// Error of an archive that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TaskFilesError {
    /// It isn't admitted.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its files can't be sent to a sandbox.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

impl TaskFiles {
    /// Admits the task in a ZIP archive, and reads its files.
    ///
    /// # Errors
    /// If the task is refused.
    pub fn read(archive: &[u8], trees: TreeLimits, limits: &AdmissionLimits) -> Result<Self, TaskFilesError> {
        let admitted = admit_archive(Cursor::new(archive), trees, limits)?;
        let mut contents = BTreeMap::new();
        let mut archive = Archive::open(Cursor::new(archive), trees.entries_max)?;
        archive.read(&mut |file, content| {
            let Some(path) = file.path.relative_to(&admitted.folder) else { return Ok(()) };
            if let Some(known) = admitted.tree.get(path) {
                let mut bytes = Vec::new();
                content.take(known.bytes).read_to_end(&mut bytes).map_err(|error| {
                    Refusal::file(path, ArchiveProblem::Unreadable { cause: error.to_string() })
                })?;
                contents.insert(path.to_owned(), bytes);
            }
            Ok(())
        })?;
        Ok(Self { admitted, contents })
    }

    /// Returns the task's files as one sequence of bytes, for upload to a sandbox.
    ///
    /// # Errors
    /// If they are too large together.
    pub fn bundle(&self) -> Result<Vec<u8>, BundleError> {
        let files = self.admitted.tree.files().map(|(path, _)| (path.as_str().to_owned(), path.as_str()));
        task_bundle(&files.filter_map(|(name, path)| self.file(name, path)).collect::<Vec<_>>())
    }

    /// Returns files for a folder of a container.
    pub(crate) fn inputs(&self, files: &InputFiles) -> Vec<TaskFile> {
        files.iter().filter_map(|(name, path)| self.file(name.clone(), path.as_str())).collect()
    }

    /// Returns the files below a folder, without some of them, by their paths in it.
    pub(crate) fn below(&self, folder: &str, without: &[&str]) -> Vec<TaskFile> {
        let files = self.admitted.tree.below(folder).filter(|(name, _, _)| !without.contains(name));
        files.filter_map(|(name, path, _)| self.file(name.to_owned(), path.as_str())).collect()
    }

    fn file(&self, name: String, path: &str) -> Option<TaskFile> {
        let known = self.admitted.tree.get(path)?;
        let bytes = self.contents.get(path)?.clone();
        Some(TaskFile { path: name, is_executable: known.mode == Mode::Executable, bytes })
    }
}
