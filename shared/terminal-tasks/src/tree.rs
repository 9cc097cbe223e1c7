//! Files of a task: paths, modes, digests, and the texts that admission reads.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::path::{TaskPath, fold};
use crate::refusal::{ArchiveProblem, ContentProblem, FILE_TO_IMAGE, FILES_TO_IMAGE, FormatProblem, Refusal};

/// Limits on the files of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Maximum number of files and folders.
    pub entries_max: usize,
    /// Maximum size of a file, in bytes.
    pub file_bytes_max: u64,
    /// Maximum size of all files, in bytes.
    pub task_bytes_max: u64,
}

impl Default for TreeLimits {
    /// 10,000 entries, 256 MiB for a file, 512 MiB for all.
    fn default() -> Self {
        Self { entries_max: 10_000, file_bytes_max: 256 << 20, task_bytes_max: 512 << 20 }
    }
}

/// Maximum size of a text that is kept in memory, in bytes.
const KEPT_BYTES_MAX: u64 = 1 << 20;
/// Maximum size of all texts that are kept in memory, in bytes.
const KEPT_TOTAL_BYTES_MAX: u64 = 16 << 20;
/// First line of the text whose digest is a task's content hash.
const HASH_HEADER: &str = "bench-task-v1\n";

/// Permissions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// 0644.
    Plain,
    /// 0755.
    Executable,
}

impl Mode {
    /// Returns the mode of a file: executable if any execute bit is set or its name ends with `.sh`, since archives
    /// often lose the bit.
    pub fn new(path: &TaskPath, unix_mode: Option<u32>) -> Self {
        let is_executable = unix_mode.is_some_and(|mode| mode & 0o111 != 0) || path.name().ends_with(".sh");
        if is_executable { Self::Executable } else { Self::Plain }
    }

    /// Returns the permission bits.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Plain => 0o644,
            Self::Executable => 0o755,
        }
    }
}

/// Digest of a task's files: the SHA-256 of the line `bench-task-v1` and one line `MODE SHA256 PATH` for each file, in
/// byte order of the paths.
///
/// `MODE` is `644` or `755`, `SHA256` the file's digest as hexadecimal digits. Empty folders, times and owners don't
/// count, so every archive of the same files has the same hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Returns the bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&hex::encode(self.0))
    }
}

/// File of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Permissions.
    pub mode: Mode,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the content.
    pub sha256: [u8; 32],
    /// Its first line ends with CR and LF, as on Windows.
    pub has_crlf: bool,
    text: Option<Arc<[u8]>>,
}

/// Files of a task by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<TaskPath, File>,
}

impl Tree {
    /// Returns the file at a path.
    pub fn get(&self, path: &str) -> Option<&File> {
        // Every key is a checked path, and checked paths are ordered as their texts.
        TaskPath::new(path).ok().and_then(|path| self.files.get(&path))
    }

    /// Returns true if there is a file at the path.
    pub fn has(&self, path: &str) -> bool {
        self.get(path).is_some()
    }

    /// Iterates over all files in byte order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&TaskPath, &File)> {
        self.files.iter()
    }

    /// Iterates over the files below a folder, with their paths relative to it. The empty folder is the root.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a TaskPath, &'a File)> {
        self.files.iter().filter_map(move |(path, file)| Some((path.relative_to(folder)?, path, file)))
    }

    /// Returns the content of a configuration file, or `None` if there is no such file.
    ///
    /// # Errors
    /// If the file is too large to be read as configuration.
    pub fn config(&self, path: &str) -> Result<Option<&[u8]>, Refusal> {
        let Some(file) = self.get(path) else { return Ok(None) };
        let too_large =
            || Refusal::file(path, FormatProblem::TooLarge { bytes_max: KEPT_BYTES_MAX as usize });
        file.text.as_deref().map(Some).ok_or_else(too_large)
    }

    /// Returns the digest of all files.
    pub fn content_hash(&self) -> ContentHash {
        let mut hasher = Sha256::new();
        hasher.update(HASH_HEADER);
        for (path, file) in &self.files {
            hasher.update(format!("{:o} {} {path}\n", file.mode.bits(), hex::encode(file.sha256)));
        }
        ContentHash(hasher.finalize().into())
    }

    /// Returns the total size in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }

    /// Removes the prefix `folder` of all paths.
    ///
    /// # Errors
    /// If a file is outside the folder.
    pub(crate) fn into_folder(self, folder: &str) -> Result<Self, Refusal> {
        let files = self.files.into_iter().map(|(path, file)| {
            let outside =
                || Refusal::file(path.as_str(), ContentProblem::OutsideTask { folder: folder.to_owned() });
            let inner = path.relative_to(folder).ok_or_else(outside)?;
            let inner = TaskPath::new(inner).map_err(|problem| Refusal::file(path.as_str(), problem))?;
            Ok((inner, file))
        });
        Ok(Self { files: files.collect::<Result<_, Refusal>>()? })
    }
}

/// Adds files to a tree within limits.
#[derive(Debug, Default)]
pub struct TreeBuilder {
    limits: TreeLimits,
    tree: Tree,
    names: Names,
    total_bytes: u64,
    kept_bytes: u64,
}

impl TreeBuilder {
    /// Creates a builder of an empty tree.
    pub fn new(limits: TreeLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds a file. Its content is read to the end, and at most one byte above the limits.
    ///
    /// Files that archive and desktop programs add, such as `.DS_Store`, are left out without being read.
    ///
    /// # Errors
    /// If a limit is exceeded, the path collides with another one, or the reader fails.
    pub fn add(
        &mut self,
        path: &TaskPath,
        unix_mode: Option<u32>,
        content: &mut dyn Read,
    ) -> Result<(), Refusal> {
        if path.is_junk() {
            return Ok(());
        }
        let at = |problem| Refusal::file(path.as_str(), problem);
        self.names.add(path, true, self.limits.entries_max).map_err(at)?;
        let left = self.limits.task_bytes_max - self.total_bytes;
        let limit = self.limits.file_bytes_max.min(left);
        let (mut hasher, mut bytes, mut text) = (Sha256::new(), 0u64, Some(Vec::new()));
        let (is_kept, mut has_crlf) = (is_kept(path), false);
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = match content.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(at(ArchiveProblem::Unreadable { cause: error.to_string() })),
            };
            let read = buffer.get(..count).unwrap_or_default();
            if read.is_empty() {
                break;
            }
            if bytes == 0 {
                has_crlf = read
                    .split(|byte| *byte == b'\n')
                    .next()
                    .is_some_and(|line| line.len() < read.len() && line.ends_with(b"\r"));
            }
            bytes += read.len() as u64;
            if bytes > limit {
                return Err(at(if limit < self.limits.file_bytes_max {
                    ArchiveProblem::TaskTooLarge {
                        bytes_max: self.limits.task_bytes_max,
                        advice: FILES_TO_IMAGE,
                    }
                } else {
                    ArchiveProblem::FileTooLarge {
                        bytes_max: self.limits.file_bytes_max,
                        advice: FILE_TO_IMAGE,
                    }
                }));
            }
            hasher.update(read);
            if !is_kept || bytes > KEPT_BYTES_MAX || self.kept_bytes + bytes > KEPT_TOTAL_BYTES_MAX {
                text = None;
            }
            if let Some(text) = &mut text {
                text.extend_from_slice(read);
            }
        }
        self.total_bytes += bytes;
        let text: Option<Arc<[u8]>> = text.filter(|_| is_kept).map(Into::into);
        self.kept_bytes += text.as_ref().map_or(0, |text| text.len() as u64);
        let (mode, sha256) = (Mode::new(path, unix_mode), hasher.finalize().into());
        let file = File { mode, bytes, sha256, has_crlf, text };
        self.tree.files.insert(path.clone(), file);
        Ok(())
    }

    /// Returns the tree.
    pub fn finish(self) -> Tree {
        self.tree
    }
}

/// Returns true for files whose content admission reads.
fn is_kept(path: &TaskPath) -> bool {
    let name = path.name();
    matches!(name, "task.toml" | "instruction.md" | ".harborignore" | "Dockerfile")
        || name.ends_with(".yaml")
        || name.ends_with(".yml")
}

/// Names that were added, to find those that can't be in the same folder.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Path and kind (true for files) by folded path, for every file and every folder above it.
    by_fold: BTreeMap<String, (String, bool)>,
}

impl Names {
    /// Adds a file or a folder, and the folders above it.
    pub(crate) fn add(
        &mut self,
        path: &TaskPath,
        is_file: bool,
        entries_max: usize,
    ) -> Result<(), ArchiveProblem> {
        let text = path.as_str();
        let ends = text.match_indices('/').map(|(at, _)| at).chain([text.len()]);
        for end in ends {
            let prefix = text.get(..end).unwrap_or(text);
            let is_file = is_file && end == text.len();
            let Some((other, other_is_file)) = self.by_fold.get(&fold(prefix)) else {
                if self.by_fold.len() >= entries_max {
                    return Err(ArchiveProblem::TooManyEntries { entries_max });
                }
                self.by_fold.insert(fold(prefix), (prefix.to_owned(), is_file));
                continue;
            };
            if other != prefix {
                return Err(ArchiveProblem::PathCollision { other: other.clone() });
            }
            match (is_file, *other_is_file) {
                (true, true) => return Err(ArchiveProblem::DuplicatePath),
                (false, false) => {}
                _ => return Err(ArchiveProblem::FileIsFolder),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
