//! Reader for uploaded ZIP archives.
//!
//! Archives come from outside: every name is checked before any content is read, and sizes are counted while
//! inflating, since headers may lie. The caller gets one file after the other and decides what to keep.

use std::io::{self, Read, Seek};

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::path::{PATH_BYTES_MAX, TaskPath};
use crate::refusal::{ArchiveProblem, Refusal};
use crate::tree::{Names, Tree, TreeBuilder, TreeLimits};

mod directory;
mod end;

/// Maximum size of an archive, in bytes: 100 MiB.
pub const ARCHIVE_BYTES_MAX: u64 = 100 << 20;
/// Maximum ratio of a file's size to its compressed size. Deflate can't exceed 1032; texts rarely exceed 100.
const RATIO_MAX: u64 = 500;
/// The ratio of files up to this size isn't checked.
const RATIO_FREE_BYTES: u64 = 1 << 20;
/// Bits of a Unix mode that contain the type of a file.
const UNIX_TYPE: u32 = 0o170_000;
const UNIX_REGULAR: u32 = 0o100_000;
const UNIX_FOLDER: u32 = 0o040_000;
const UNIX_LINK: u32 = 0o120_000;

/// File of an archive whose name and type were checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveFile {
    /// Path in the archive.
    pub path: TaskPath,
    /// Unix mode, if the archive has one.
    pub unix_mode: Option<u32>,
    index: usize,
    compressed_bytes: u64,
}

/// ZIP archive whose names and types of entries were checked.
pub struct Archive<R> {
    zip: ZipArchive<R>,
    files: Vec<ArchiveFile>,
}

impl<R: Read + Seek> Archive<R> {
    /// Reads the directory of an archive, and checks the name and the type of each entry.
    ///
    /// # Errors
    /// If the bytes aren't a plain ZIP archive, or an entry is encrypted, not a regular file or folder, or has an
    /// unsafe or colliding name. The sizes of the files are checked by [`Archive::read`].
    pub fn open(mut reader: R, entries_max: usize) -> Result<Self, Refusal> {
        end::check(&mut reader, entries_max)?;
        let mut zip = ZipArchive::new(reader).map_err(|error| Refusal::whole(explain(&error)))?;
        let (mut names, mut files) = (Names::default(), Vec::new());
        for index in 0..zip.len() {
            if let Some(file) = check_entry(&mut zip, index, &mut names, entries_max)? {
                files.push(file);
            }
        }
        if zip.has_duplicate_names() {
            // Only the last entry of a name is in the parsed directory.
            let start = zip.central_directory_start();
            return Err(match directory::repeated_name(&mut zip.into_inner(), start, entries_max) {
                Some(name) => Refusal::file(name, ArchiveProblem::DuplicatePath),
                None => Refusal::whole(ArchiveProblem::DuplicatePath),
            });
        }
        Ok(Self { zip, files })
    }

    /// Returns the files in the order of the archive, without those that desktop programs add.
    pub fn files(&self) -> &[ArchiveFile] {
        &self.files
    }

    /// Passes each file with its decompressed content to `sink`.
    ///
    /// The content ends in an error of kind `InvalidData` if it grows too much; `sink` limits its size.
    ///
    /// # Errors
    /// If an entry can't be decompressed, grows too much, or the sink fails.
    pub fn read(
        &mut self,
        sink: &mut dyn FnMut(&ArchiveFile, &mut dyn Read) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        for file in &self.files {
            let at = |problem| Refusal::file(file.path.as_str(), problem);
            let entry = self.zip.by_index(file.index).map_err(|error| at(explain(&error)))?;
            let bytes_max = file.compressed_bytes.saturating_mul(RATIO_MAX).max(RATIO_FREE_BYTES);
            let mut content = Bounded { inner: entry, left: bytes_max, failure: None };
            let result = sink(file, &mut content);
            // The reason for which the content ended is more precise than the sink's.
            if let Some(failure) = content.failure {
                return Err(at(failure));
            }
            result?;
        }
        Ok(())
    }
}

/// Reads all files of an archive into a tree.
///
/// # Errors
/// As [`Archive::open`] and [`Archive::read`], and if a size exceeds the limits.
pub fn read_tree(reader: impl Read + Seek, limits: TreeLimits) -> Result<Tree, Refusal> {
    let mut archive = Archive::open(reader, limits.entries_max)?;
    let mut builder = TreeBuilder::new(limits);
    archive.read(&mut |file, content| builder.add(&file.path, file.unix_mode, content))?;
    Ok(builder.finish())
}

/// Checks an entry. Returns `None` for folders and files that desktop programs add.
fn check_entry<R: Read + Seek>(
    zip: &mut ZipArchive<R>,
    index: usize,
    names: &mut Names,
    entries_max: usize,
) -> Result<Option<ArchiveFile>, Refusal> {
    let entry = zip.by_index_raw(index).map_err(|error| Refusal::whole(explain(&error)))?;
    let raw = entry.name_raw();
    if raw.len() > PATH_BYTES_MAX + 1 {
        let shown = String::from_utf8_lossy(raw.get(..80).unwrap_or(raw)).into_owned();
        let depth_max = crate::path::PATH_DEPTH_MAX;
        return Err(Refusal::file(
            shown,
            ArchiveProblem::PathTooLong { path_bytes_max: PATH_BYTES_MAX, depth_max },
        ));
    }
    let Ok(name) = std::str::from_utf8(raw) else {
        return Err(Refusal::file(String::from_utf8_lossy(raw), ArchiveProblem::NameNotUtf8));
    };
    let at = |problem| Refusal::file(name, problem);
    let is_folder = name.ends_with('/');
    let path = TaskPath::new(name.strip_suffix('/').unwrap_or(name)).map_err(at)?;
    if entry.encrypted() {
        return Err(at(ArchiveProblem::Encrypted));
    }
    let file_type = entry.unix_mode().map_or(0, |mode| mode & UNIX_TYPE);
    match (file_type, is_folder) {
        (0 | UNIX_REGULAR, false) | (0 | UNIX_FOLDER, true) => {}
        (UNIX_LINK, _) => return Err(at(ArchiveProblem::NotARegularFile { kind: "symbolic link" })),
        (UNIX_FOLDER, false) | (UNIX_REGULAR, true) => {
            return Err(at(ArchiveProblem::NotARegularFile {
                kind: "folder with the name of a file, or the reverse",
            }));
        }
        _ => return Err(at(ArchiveProblem::NotARegularFile { kind: "device or another special file" })),
    }
    if !matches!(entry.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
        let method = format!("{:?}", entry.compression());
        return Err(at(ArchiveProblem::UnsupportedCompression { method }));
    }
    if path.is_junk() {
        return Ok(None);
    }
    names.add(&path, !is_folder, entries_max).map_err(at)?;
    let (unix_mode, compressed_bytes) = (entry.unix_mode(), entry.compressed_size());
    Ok((!is_folder).then_some(ArchiveFile { path, unix_mode, index, compressed_bytes }))
}

/// Returns the problem that an error of the ZIP reader stands for.
fn explain(error: &ZipError) -> ArchiveProblem {
    match error {
        ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            ArchiveProblem::Unreadable { cause: error.to_string() }
        }
        ZipError::UnsupportedArchive(feature) => ArchiveProblem::UnsupportedFeature { feature },
        other => ArchiveProblem::Damaged { cause: other.to_string() },
    }
}

/// Content of an entry, up to a number of bytes. Remembers why it ended.
struct Bounded<R> {
    inner: R,
    left: u64,
    failure: Option<ArchiveProblem>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.inner.read(buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                self.failure = Some(ArchiveProblem::Damaged { cause: error.to_string() });
                return Err(error);
            }
        };
        let Some(left) = self.left.checked_sub(count as u64) else {
            self.failure = Some(ArchiveProblem::RatioTooHigh { ratio_max: RATIO_MAX });
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        };
        self.left = left;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
