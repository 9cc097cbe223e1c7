//! Reader for task folders in gzipped tar archives, as datasets of Terminal-Bench 1 hold them.
//!
//! Formats: ustar, with the long names of pax and of GNU tar. The rules for names, types and sizes are those of uploaded ZIP
//! archives. Content is read in the order of the archive and never held as a whole.

use std::io::{self, Read};

use ::tar::EntryType;
use flate2::read::GzDecoder;

use crate::path::{PATH_BYTES_MAX, PATH_DEPTH_MAX, TaskPath};
use crate::refusal::{ArchiveProblem, FILES_TO_IMAGE, Refusal};
use crate::tree::{Tree, TreeBuilder, TreeLimits};

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
    let mut archive = ::tar::Archive::new(GzDecoder::new(archive));
    let entries = archive.entries().map_err(|error| damaged(&error.to_string()))?;
    let (mut bytes, mut long_name) = (0_u64, None);
    for (count, entry) in entries.raw(true).enumerate() {
        let mut entry = entry.map_err(|error| damaged(&explain(&error)))?;
        let TreeLimits { entries_max, task_bytes_max: bytes_max, .. } = limits;
        if count >= entries_max {
            return Err(Refusal::whole(ArchiveProblem::TooManyEntries { entries_max }));
        }
        let size = entry.size();
        bytes = bytes.saturating_add(size);
        if bytes > bytes_max {
            return Err(Refusal::whole(ArchiveProblem::TaskTooLarge { bytes_max, advice: FILES_TO_IMAGE }));
        }
        let kind = entry.header().entry_type();
        match kind {
            EntryType::XHeader => {
                long_name = pax_path(&read_text(&mut entry)?)?.or(long_name);
                continue;
            }
            EntryType::GNULongName => {
                let mut name = read_text(&mut entry)?;
                name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
                long_name = Some(name);
                continue;
            }
            // Comments, and targets of links, which are refused.
            EntryType::XGlobalHeader | EntryType::GNULongLink => continue,
            _ => {}
        }
        let name = long_name.take().unwrap_or_else(|| entry.header().path_bytes().into_owned());
        let Some(path) = checked_path(&name)? else { continue };
        let at = |problem| Refusal::file(path.as_str(), problem);
        let special = match kind {
            EntryType::Directory => continue,
            EntryType::Regular | EntryType::Continuous => None,
            EntryType::Link => Some("hard link"),
            EntryType::Symlink => Some("symbolic link"),
            _ => Some("device or another special file"),
        };
        if let Some(kind) = special {
            return Err(at(ArchiveProblem::NotARegularFile { kind }));
        }
        let mode = entry.header().mode().map_or(0o644, |mode| mode & 0o7777);
        let mut content = entry.take(size);
        sink(&path, mode, &mut content)?;
        io::copy(&mut content, &mut io::sink()).map_err(|error| damaged(&explain(&error)))?;
        if content.limit() > 0 {
            return Err(at(ArchiveProblem::Damaged { cause: "it ends in the middle of a file".to_owned() }));
        }
    }
    Ok(())
}

/// Reads an extended header.
fn read_text(entry: &mut impl Read) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    let read = entry.take(EXTENDED_BYTES_MAX + 1).read_to_end(&mut text);
    read.map_err(|error| damaged(&explain(&error)))?;
    if text.len() as u64 > EXTENDED_BYTES_MAX {
        return Err(damaged("an extended header is too long"));
    }
    Ok(text)
}

/// Returns the path in an extended header. A size there is only needed above 8 GiB, and would move the next entry.
fn pax_path(records: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    let mut path = None;
    for record in ::tar::PaxExtensions::new(records) {
        let record = record.map_err(|_| damaged("an extended header is invalid"))?;
        match record.key_bytes() {
            b"path" => path = Some(record.value_bytes().to_vec()),
            b"size" => return Err(unsupported("sizes in extended headers")),
            key if key.starts_with(b"GNU.sparse") => return Err(unsupported("sparse files")),
            _ => {}
        }
    }
    Ok(path)
}

fn unsupported(feature: &'static str) -> Refusal {
    Refusal::whole(ArchiveProblem::UnsupportedFeature { feature })
}

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
