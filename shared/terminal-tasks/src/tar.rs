//! Reader for task folders in gzipped tar archives, as datasets of Terminal-Bench 1 hold them.
//!
//! Formats: ustar, with the long names and sizes of pax and the long names of GNU tar. The rules for names, types and
//! sizes are those of uploaded ZIP archives. Content is read in the order of the archive and never held as a whole.

use std::io::{self, Read};

use flate2::read::GzDecoder;

use crate::path::{PATH_BYTES_MAX, PATH_DEPTH_MAX, TaskPath};
use crate::refusal::{ArchiveProblem, Refusal};
use crate::tree::{Tree, TreeBuilder, TreeLimits};

mod header;

use header::{Header, Kind};

/// Size of a block of an archive, in bytes.
const BLOCK: usize = 512;
/// Maximum size of an extended header, in bytes.
const EXTENDED_BYTES_MAX: u64 = 64 << 10;
/// Leading bytes of a gzipped file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Receives a file's path, its Unix mode and its content.
type Sink<'a> = &'a mut dyn FnMut(&TaskPath, u32, &mut dyn Read) -> Result<(), Refusal>;

/// Reads all files of a gzipped tar archive into a tree.
///
/// # Errors
/// As [`read_tar_gz`], and if a path occurs twice or collides with another one.
pub fn read_tar_gz_tree(archive: &[u8], limits: TreeLimits) -> Result<Tree, Refusal> {
    let mut builder = TreeBuilder::new(limits);
    read_tar_gz(archive, limits, &mut |path, mode, content| builder.add(path, Some(mode), content))?;
    Ok(builder.finish())
}

/// Passes each file of a gzipped tar archive to `sink`.
///
/// # Errors
/// If the archive is damaged, an entry is not a regular file or folder, a name is unsafe, the entries are too many or
/// too large together, or the sink fails.
pub fn read_tar_gz(archive: &[u8], limits: TreeLimits, sink: Sink<'_>) -> Result<(), Refusal> {
    if !archive.starts_with(&GZIP) {
        return Err(damaged("it is not compressed with gzip"));
    }
    let mut tar = Tar { reader: GzDecoder::new(archive), entries: 0, bytes: 0, limits };
    let (mut long_name, mut long_size) = (None, None);
    while let Some(header) = tar.next_header()? {
        let size = match header.kind {
            Kind::File => long_size.take().unwrap_or(header.size),
            _ => header.size,
        };
        match header.kind {
            Kind::Extended => {
                let records = header::extended(&tar.read_text(size)?).map_err(Refusal::whole)?;
                long_name = records.path.or(long_name);
                long_size = records.size.or(long_size);
                continue;
            }
            Kind::LongName => {
                let mut name = tar.read_text(size)?;
                name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
                long_name = Some(name);
                continue;
            }
            Kind::Ignored => {
                tar.read_text(size)?;
                continue;
            }
            Kind::File | Kind::Folder | Kind::Special(_) => {}
        }
        let Some(path) = checked_path(&long_name.take().unwrap_or(header.name))? else { continue };
        let at = |problem| Refusal::file(path.as_str(), problem);
        match header.kind {
            Kind::Special(kind) => return Err(at(ArchiveProblem::NotARegularFile { kind })),
            Kind::File => tar.read_file(size, &path, header.mode, sink)?,
            _ => long_size = None,
        }
    }
    Ok(())
}

/// Archive that is being read.
struct Tar<R> {
    reader: R,
    entries: usize,
    /// Bytes of all entries so far.
    bytes: u64,
    limits: TreeLimits,
}

impl<R: Read> Tar<R> {
    /// Reads the next header; `None` at the end.
    fn next_header(&mut self) -> Result<Option<Header>, Refusal> {
        let mut block = [0; BLOCK];
        self.fill(&mut block)?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        self.entries += 1;
        if self.entries > self.limits.entries_max {
            let entries_max = self.limits.entries_max;
            return Err(Refusal::whole(ArchiveProblem::TooManyEntries { entries_max }));
        }
        Header::read(&block).map(Some).map_err(Refusal::whole)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Refusal> {
        self.reader.read_exact(bytes).map_err(|error| damaged(&explain(&error)))
    }

    /// Counts the bytes of an entry.
    fn count(&mut self, size: u64) -> Result<(), Refusal> {
        let bytes_max = self.limits.task_bytes_max;
        self.bytes = self.bytes.saturating_add(size);
        match self.bytes > bytes_max {
            true => Err(Refusal::whole(ArchiveProblem::TaskTooLarge { bytes_max })),
            false => Ok(()),
        }
    }

    /// Reads an extended header.
    fn read_text(&mut self, size: u64) -> Result<Vec<u8>, Refusal> {
        if size > EXTENDED_BYTES_MAX {
            return Err(damaged("an extended header is too long"));
        }
        self.count(size)?;
        let mut text = vec![0; size as usize];
        self.fill(&mut text)?;
        self.skip_padding(size)?;
        Ok(text)
    }

    fn read_file(&mut self, size: u64, path: &TaskPath, mode: u32, sink: Sink<'_>) -> Result<(), Refusal> {
        self.count(size)?;
        let mut content = self.reader.by_ref().take(size);
        sink(path, mode, &mut content)?;
        io::copy(&mut content, &mut io::sink()).map_err(|error| damaged(&explain(&error)))?;
        if content.limit() > 0 {
            return Err(Refusal::file(
                path.as_str(),
                ArchiveProblem::Damaged { cause: ENDS_EARLY.to_owned() },
            ));
        }
        self.skip_padding(size)
    }

    fn skip_padding(&mut self, size: u64) -> Result<(), Refusal> {
        let mut padding = [0; BLOCK];
        let length = (size.next_multiple_of(BLOCK as u64) - size) as usize;
        self.fill(padding.get_mut(..length).unwrap_or_default())
    }
}

const ENDS_EARLY: &str = "it ends in the middle of a file";

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends early".to_owned(),
        _ => error.to_string(),
    }
}

fn damaged(cause: &str) -> Refusal {
    Refusal::whole(ArchiveProblem::Damaged { cause: cause.to_owned() })
}

/// Checks a name; `None` for the folder that the archive was made of.
fn checked_path(name: &[u8]) -> Result<Option<TaskPath>, Refusal> {
    let shown = || String::from_utf8_lossy(name.get(..80).unwrap_or(name)).into_owned();
    if name.len() > PATH_BYTES_MAX + 2 {
        let problem =
            ArchiveProblem::PathTooLong { path_bytes_max: PATH_BYTES_MAX, depth_max: PATH_DEPTH_MAX };
        return Err(Refusal::file(shown(), problem));
    }
    let text = std::str::from_utf8(name).map_err(|_| Refusal::file(shown(), ArchiveProblem::NameNotUtf8))?;
    let text = text.strip_suffix('/').unwrap_or(text);
    let text = text.strip_prefix("./").unwrap_or(text);
    if text == "." {
        return Ok(None);
    }
    TaskPath::new(text).map(Some).map_err(|problem| Refusal::file(shown(), problem))
}

#[cfg(test)]
mod tests;
