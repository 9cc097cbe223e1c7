//! Files of a task, as a dataset or an archive has them.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bench_terminal_tasks::{Archive, ArchiveProblem, Mode, Refusal, TaskPath};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::WorkspaceFile;

/// Maximum number of files of a task.
const FILES_MAX: usize = 1_000;
/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 2 << 20;
/// Maximum size of all files, in bytes.
pub const TASK_BYTES_MAX: u64 = 8 << 20;
/// First line of the text whose digest is a task's digest.
const DIGEST_HEADER: &str = "bench-code-task-v1\n";

/// File in JSON: its text, or Base64 if it isn't UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// True if the file may be executed.
    #[serde(default, rename = "x", skip_serializing_if = "std::ops::Not::not")]
    is_executable: bool,
}

impl From<&WorkspaceFile> for PackedFile {
    fn from(file: &WorkspaceFile) -> Self {
        let (text, base64) = match std::str::from_utf8(&file.bytes) {
            Ok(text) => (Some(text.to_owned()), None),
            Err(_) => (None, Some(STANDARD.encode(&file.bytes))),
        };
        Self { text, base64, is_executable: file.is_executable }
    }
}

impl PackedFile {
    fn unpack(self, path: &str) -> Result<WorkspaceFile, Refusal> {
        let damaged = |cause: &str| Refusal::file(path, ArchiveProblem::Damaged { cause: cause.to_owned() });
        let bytes = match (self.text, self.base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(base64)) => {
                STANDARD.decode(base64).map_err(|_| damaged("its content is no Base64"))?
            }
            _ => return Err(damaged("it must have either `text` or `base64`")),
        };
        Ok(WorkspaceFile { bytes, is_executable: self.is_executable })
    }
}

/// Files of a task by their paths, within limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFiles {
    files: BTreeMap<TaskPath, WorkspaceFile>,
    bytes: u64,
}

impl TaskFiles {
    /// Reads a ZIP archive.
    ///
    /// # Errors
    /// If it isn't a plain ZIP archive, has an unsafe name, or exceeds a limit.
    pub fn from_archive(reader: impl Read + Seek) -> Result<Self, Refusal> {
        let mut archive = Archive::open(reader, FILES_MAX)?;
        let mut files = Self::default();
        archive.read(&mut |file, content| {
            let mut bytes = Vec::new();
            let unreadable = |error: std::io::Error| {
                let problem = ArchiveProblem::Unreadable { cause: error.to_string() };
                Refusal::file(file.path.as_str(), problem)
            };
            content.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
            files.add(&file.path, file.unix_mode, bytes)
        })?;
        Ok(files)
    }

    /// Reads the files in a row of a dataset, as [`TaskFiles::pack`] writes them.
    ///
    /// # Errors
    /// If a path is unsafe, a content can't be decoded, or a limit is exceeded.
    pub fn unpack(packed: BTreeMap<String, PackedFile>) -> Result<Self, Refusal> {
        let mut files = Self::default();
        for (path, file) in packed {
            let checked = TaskPath::new(&path).map_err(|problem| Refusal::file(path.as_str(), problem))?;
            let WorkspaceFile { bytes, is_executable } = file.unpack(&path)?;
            files.add(&checked, is_executable.then_some(0o755), bytes)?;
        }
        Ok(files)
    }

    /// Returns the files for a row of a dataset.
    pub fn pack(&self) -> BTreeMap<String, PackedFile> {
        self.files.iter().map(|(path, file)| (path.as_str().to_owned(), file.into())).collect()
    }

    /// Adds a file.
    ///
    /// # Errors
    /// If a limit is exceeded, or another file has the path.
    pub fn add(&mut self, path: &TaskPath, unix_mode: Option<u32>, bytes: Vec<u8>) -> Result<(), Refusal> {
        let refused = |problem| Err(Refusal::file(path.as_str(), problem));
        let length = bytes.len() as u64;
        if length > FILE_BYTES_MAX {
            let advice = "make it smaller, or let the build or the tests generate it";
            return refused(ArchiveProblem::FileTooLarge { bytes_max: FILE_BYTES_MAX, advice });
        }
        if self.bytes + length > TASK_BYTES_MAX {
            let advice = "leave out build output, caches and large files";
            return refused(ArchiveProblem::TaskTooLarge { bytes_max: TASK_BYTES_MAX, advice });
        }
        if self.files.len() >= FILES_MAX {
            return refused(ArchiveProblem::TooManyEntries { entries_max: FILES_MAX });
        }
        let is_executable = Mode::new(path, unix_mode) == Mode::Executable;
        if self.files.insert(path.clone(), WorkspaceFile { bytes, is_executable }).is_some() {
            return refused(ArchiveProblem::DuplicatePath);
        }
        self.bytes += length;
        Ok(())
    }

    /// Returns a file.
    pub fn get(&self, path: &str) -> Option<&WorkspaceFile> {
        TaskPath::new(path).ok().and_then(|path| self.files.get(&path))
    }

    /// Iterates over the files in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &WorkspaceFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Returns the files below a folder, by their paths relative to it.
    pub fn below(&self, folder: &str) -> BTreeMap<String, WorkspaceFile> {
        let inside = |(path, file): (&TaskPath, &WorkspaceFile)| {
            Some((path.relative_to(folder)?.to_owned(), file.clone()))
        };
        self.files.iter().filter_map(inside).collect()
    }

    /// Returns the digest of the files that decide about a verdict: all but those that `is_left_out` names. It is the
    /// SHA-256 of the line `bench-code-task-v1` and one line `MODE SHA256 PATH` for each file, as lowercase hex.
    pub fn digest(&self, is_left_out: impl Fn(&str) -> bool) -> String {
        let mut hasher = Sha256::new();
        hasher.update(DIGEST_HEADER);
        for (path, file) in self.files().filter(|(path, _)| !is_left_out(path)) {
            let mode = if file.is_executable { "755" } else { "644" };
            hasher.update(format!("{mode} {} {path}\n", hex::encode(Sha256::digest(&file.bytes))));
        }
        hex::encode(hasher.finalize())
    }

    /// Removes the folders above the only task of an archive.
    ///
    /// # Errors
    /// If no folder, or more than one, has a file of this name.
    pub fn rooted_at(self, name: &str) -> Result<Self, Refusal> {
        let folder_of =
            |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
        let depth = |folder: &str| folder.split('/').filter(|part| !part.is_empty()).count();
        let mut found: Vec<String> = self
            .files
            .keys()
            .filter(|path| path.name() == name)
            .map(|path| folder_of(path.as_str()))
            .collect();
        let Some(lowest) = found.iter().map(|folder| depth(folder)).min() else {
            let advice = "a task has it beside its instructions, `workspace` and `tests`";
            return Err(Refusal::file(name, bench_terminal_tasks::ContentProblem::MissingFile { advice }));
        };
        found.retain(|folder| depth(folder) == lowest);
        if let [first, second, ..] = found.as_slice() {
            let (first, second) = (first.clone(), second.clone());
            return Err(Refusal::whole(bench_terminal_tasks::ContentProblem::SeveralTasks { first, second }));
        }
        let folder = found.pop().unwrap_or_default();
        let mut files = Self::default();
        for (path, file) in self.files {
            let Some(inner) = path.relative_to(&folder) else { continue };
            let inner = TaskPath::new(inner).map_err(|problem| Refusal::file(path.as_str(), problem))?;
            files.add(&inner, file.is_executable.then_some(0o755), file.bytes)?;
        }
        Ok(files)
    }
}
