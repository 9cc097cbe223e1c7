//! Copies a client's tar archive into a new one that every program reads in the same way.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;

use tar::{EntryType, Header};

use super::spool::ContextError;

/// Size of a block of an archive, in bytes.
const BLOCK: u64 = 512;
/// Maximum size of a Dockerfile, and of an extended header, in bytes.
const TEXT_BYTES_MAX: u64 = 256 << 10;
/// Files with patterns of what a builder leaves out, and their maximum size in bytes: podman takes 4 KiB of memory for each
/// pattern.
const IGNORE_FILES: [&[u8]; 2] = [b".dockerignore", b".containerignore"];
const IGNORE_BYTES_MAX: u64 = 16 << 10;
/// Maximum number of entries of a context.
const ENTRIES_MAX: usize = 500_000;
/// Maximum length of a path, in bytes, and in names.
const PATH_BYTES_MAX: usize = 4_096;
const PATH_NAMES_MAX: usize = 256;
/// Maximum length of all paths of a context, in bytes: they are kept in memory.
const PATHS_BYTES_MAX: usize = 64 << 20;

/// Copies the entries of an archive of at most `bytes_max` bytes. Returns the text of the Dockerfile, whose path in the context
/// is `wanted`; of the last one, if there are several.
///
/// Writes paths, modes, owners, times and contents as they were read, and nothing else of the client's headers.
pub(super) fn copy<W: Write>(
    from: impl Read,
    bytes_max: u64,
    to: &mut tar::Builder<W>,
    wanted: &str,
) -> Result<Option<Vec<u8>>, ContextError> {
    let received = Cell::new(0);
    let counted = Counted { from: from.take(bytes_max.saturating_add(1)), read: &received };
    let copied = copy_entries(counted, to, wanted);
    if received.get() > bytes_max { Err(ContextError::TooLarge(bytes_max)) } else { copied }
}

fn copy_entries<W: Write>(
    from: Counted<'_, impl Read>,
    to: &mut tar::Builder<W>,
    wanted: &str,
) -> Result<Option<Vec<u8>>, ContextError> {
    let received = from.read;
    // Some clients don't fill the last block, or leave out the block of zeros that ends the archive.
    let mut archive = tar::Archive::new(from.chain(io::repeat(0).take(2 * BLOCK - 1)));
    let mut places = Places::default();
    let mut dockerfile = None;
    // Names from headers that precede the entry they are about.
    let mut long = Names::default();
    for (count, entry) in archive.entries()?.raw(true).enumerate() {
        if count >= ENTRIES_MAX {
            return Err(ContextError::Archive("the context has too many entries"));
        }
        let mut entry = entry.map_err(|_| ContextError::Archive("an entry's header is broken"))?;
        let end = entry.raw_file_position().saturating_add(entry.size());
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => {
                long.path = Some(long_name(&mut entry)?);
                continue;
            }
            EntryType::GNULongLink => {
                long.target = Some(long_name(&mut entry)?);
                continue;
            }
            EntryType::XHeader => {
                long.read_pax(&read_text(&mut entry)?)?;
                continue;
            }
            // Clients write comments there.
            EntryType::XGlobalHeader => continue,
            _ => {}
        }
        let names = std::mem::take(&mut long).of(entry.header());
        let path = places.add(kind, &names)?;
        match kind {
            EntryType::Regular | EntryType::Continuous => {
                if path.is_empty() || names.path.is_some_and(|path| path.ends_with(b"/")) {
                    return Err(ContextError::Archive("a file has no name, or that of a folder"));
                }
                if IGNORE_FILES.contains(&path.as_slice()) && entry.size() > IGNORE_BYTES_MAX {
                    return Err(ContextError::Archive("`.dockerignore` is larger than 16 KiB"));
                }
                let mut header = header_like(entry.header(), EntryType::Regular);
                header.set_size(entry.size());
                let name = OsStr::from_bytes(&path);
                if path == wanted.as_bytes() {
                    let text = read_text(&mut entry)?;
                    to.append_data(&mut header, name, text.as_slice())?;
                    dockerfile = Some(text);
                } else {
                    to.append_data(&mut header, name, &mut entry)?;
                }
                if received.get() < end {
                    return Err(ContextError::Archive("an entry is longer than the archive"));
                }
            }
            EntryType::Directory => {
                if !path.is_empty() {
                    let mut header = header_like(entry.header(), kind);
                    to.append_data(&mut header, OsStr::from_bytes(&path), io::empty())?;
                }
            }
            EntryType::Symlink | EntryType::Link => {
                let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                // The engine reads these files itself, and follows links out of the context.
                if path == wanted.as_bytes() || IGNORE_FILES.contains(&last) {
                    return Err(ContextError::Link(shown(&path)));
                }
                let target = names.target.unwrap_or_default();
                let target = if kind == EntryType::Link { normalized(&target) } else { target };
                let mut header = header_like(entry.header(), kind);
                to.append_link(&mut header, OsStr::from_bytes(&path), OsStr::from_bytes(&target))?;
            }
            _ => return Err(ContextError::Archive("only files, folders and links are allowed in a context")),
        }
    }
    Ok(dockerfile)
}

/// Creates the archive of one program.
pub(crate) fn program_archive(name: &str, content: &[u8]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    append(&mut archive, name, 0o755, content)?;
    archive.into_inner()
}

/// Appends a file with these rights.
pub(super) fn append<W: Write>(
    to: &mut tar::Builder<W>,
    name: &str,
    mode: u32,
    content: &[u8],
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(mode);
    header.set_size(content.len() as u64);
    to.append_data(&mut header, name, content)
}

/// Returns a header with mode, owner and time of another one. What can't be read becomes zero.
fn header_like(other: &Header, kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(other.mode().unwrap_or_default() & 0o7777);
    header.set_uid(other.uid().unwrap_or_default());
    header.set_gid(other.gid().unwrap_or_default());
    header.set_mtime(other.mtime().unwrap_or_default());
    header.set_size(0);
    header
}

/// Path and link's target of an entry, as they are in the archive.
#[derive(Default)]
struct Names {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
}

impl Names {
    /// Fills in what is only in the entry's own header.
    fn of(self, header: &Header) -> Self {
        Self {
            path: self.path.or_else(|| Some(header.path_bytes().into_owned())),
            target: self.target.or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned)),
        }
    }

    /// Reads an extended header. A size there would move the next entry.
    fn read_pax(&mut self, records: &[u8]) -> Result<(), ContextError> {
        for record in tar::PaxExtensions::new(records) {
            let record = record.map_err(|_| ContextError::Archive("an extended header can't be read"))?;
            match record.key_bytes() {
                b"path" => self.path = Some(record.value_bytes().to_vec()),
                b"linkpath" => self.target = Some(record.value_bytes().to_vec()),
                b"size" => return Err(ContextError::Archive("extended sizes are not allowed in a context")),
                key if key.starts_with(b"GNU.sparse") => {
                    return Err(ContextError::Archive("sparse files are not allowed in a context"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Places of a context's entries. Engines unpack a context with the rights of the machine's superuser and follow the links
/// that they have just made, so nothing may be written or linked through one.
#[derive(Default)]
struct Places {
    files: HashSet<Vec<u8>>,
    links: HashSet<Vec<u8>>,
    /// Length of all paths, in bytes.
    bytes: usize,
}

impl Places {
    /// Adds an entry and returns its path, without leading `./` and `/`: empty for the context itself. Fails if it leads out
    /// of the context, or through a link.
    fn add(&mut self, kind: EntryType, names: &Names) -> Result<Vec<u8>, ContextError> {
        let given = names.path.as_deref().unwrap_or_default();
        let target = names.target.as_deref().unwrap_or_default();
        let is_long = |text: &[u8]| {
            text.len() > PATH_BYTES_MAX || text.split(|byte| *byte == b'/').count() > PATH_NAMES_MAX
        };
        if is_long(given) || is_long(target) {
            return Err(ContextError::Archive("a path is longer than 4096 bytes or 256 names"));
        }
        if given.contains(&0) || target.contains(&0) {
            return Err(ContextError::Archive("a path has a zero byte"));
        }
        let path = normalized(given);
        self.bytes += path.len();
        if self.bytes > PATHS_BYTES_MAX {
            return Err(ContextError::Archive("the paths of all entries are longer than 64 MiB"));
        }
        let leads_out = || ContextError::LeadsOut(shown(given));
        if has_parent(&path) || self.is_behind_link(&path) || self.links.contains(&path) {
            return Err(leads_out());
        }
        let is_inside = match kind {
            EntryType::Symlink => {
                // Without `..` and through no other place than those of the context, it can't lead out.
                let is_inside = !target.is_empty() && !target.starts_with(b"/") && !has_parent(target);
                is_inside
                    && !path.is_empty()
                    && !self.files.contains(&path)
                    && self.links.insert(path.clone())
            }
            EntryType::Link => {
                let target = normalized(target);
                let is_file = self.files.contains(&target) && !self.is_behind_link(&target);
                is_file && !path.is_empty() && self.files.insert(path.clone())
            }
            EntryType::Directory => true,
            _ => {
                self.files.insert(path.clone());
                true
            }
        };
        if is_inside { Ok(path) } else { Err(leads_out()) }
    }

    fn is_behind_link(&self, path: &[u8]) -> bool {
        let mut slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        !self.links.is_empty()
            && slashes.any(|(at, _)| path.get(..at).is_some_and(|folder| self.links.contains(folder)))
    }
}

/// Counts the bytes that are read.
struct Counted<'a, R> {
    from: R,
    read: &'a Cell<u64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

/// Returns a path of an archive without leading `./` and `/`.
fn normalized(path: &[u8]) -> Vec<u8> {
    let parts: Vec<_> =
        path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    parts.join(&b'/')
}

fn has_parent(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| part == b"..")
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).chars().take(200).collect()
}

/// Reads a long name, which ends at the first zero byte.
fn long_name(entry: &mut (impl Read + Sized)) -> Result<Vec<u8>, ContextError> {
    let mut name = read_text(entry)?;
    name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
    Ok(name)
}

fn read_text(entry: &mut impl Read) -> Result<Vec<u8>, ContextError> {
    let mut bytes = Vec::new();
    entry.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(ContextError::Archive("a Dockerfile or a name is larger than 256 KiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
