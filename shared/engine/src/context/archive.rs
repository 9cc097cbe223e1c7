//! Entries of a tar archive: finds the Dockerfile and the end of the entries.

use std::io::{Read, Seek, SeekFrom};

use super::spool::ContextError;

/// Size of a block of an archive, in bytes.
const BLOCK: u64 = 512;
/// Maximum size of a Dockerfile, and of a long name, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of entries of a context.
const ENTRIES_MAX: usize = 500_000;

/// What a context's archive contains.
#[derive(Debug)]
pub(super) struct Found {
    /// Text of the Dockerfile; of the last one, if there are several.
    pub(super) dockerfile: Option<Vec<u8>>,
    /// Position after the last entry, in bytes.
    pub(super) end: u64,
}

/// Reads the entries of an archive of `length` bytes. `wanted` is the Dockerfile's path in the context.
pub(super) fn read(
    archive: &mut (impl Read + Seek),
    length: u64,
    wanted: &str,
) -> Result<Found, ContextError> {
    let mut found = Found { dockerfile: None, end: 0 };
    let mut long_name: Option<String> = None;
    for _ in 0..ENTRIES_MAX {
        let start = found.end;
        if start + BLOCK > length {
            return Ok(found);
        }
        archive.seek(SeekFrom::Start(start))?;
        let mut header = [0; BLOCK as usize];
        archive.read_exact(&mut header)?;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(found);
        }
        if &header[257..262] != b"ustar" {
            return Err(ContextError::Archive("an entry is not in the format `ustar`, `pax` or `gnu`"));
        }
        let size = octal(&header[124..136]).ok_or(ContextError::Archive("an entry's size can't be read"))?;
        let content = start + BLOCK;
        if size > length || content + size > length {
            return Err(ContextError::Archive("an entry is longer than the archive"));
        }
        // Some clients end the archive without filling the last block.
        let end = content + size.div_ceil(BLOCK) * BLOCK;
        let kind = header[156];
        let name = long_name.take().unwrap_or_else(|| short_name(&header));
        match kind {
            // Long names of GNU tar, and extended headers.
            b'L' => long_name = Some(text(&read_text(archive, size)?)),
            b'x' => long_name = pax_path(&read_text(archive, size)?)?,
            b'g' | b'K' => long_name = Some(name).filter(|_| kind == b'K'),
            b'0' | 0 => {
                if normalized(&name) == wanted {
                    found.dockerfile = Some(read_text(archive, size)?);
                }
            }
            b'5' => {}
            b'1' | b'2' => {
                // The engine reads these files itself, and follows links out of the context.
                let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                if normalized(&name) == wanted || matches!(last, ".dockerignore" | ".containerignore") {
                    return Err(ContextError::Link(name.chars().take(200).collect()));
                }
            }
            _ => return Err(ContextError::Archive("only files, folders and links are allowed in a context")),
        }
        found.end = end;
    }
    Err(ContextError::Archive("the context has too many entries"))
}

/// Creates the archive of one file, with the end of the archive.
pub(super) fn file_and_end(name: &str, content: &[u8]) -> Vec<u8> {
    archive_of(name, b"0000644\0", content)
}

/// Creates the archive of one program.
pub(crate) fn program_archive(name: &str, content: &[u8]) -> Vec<u8> {
    archive_of(name, b"0000755\0", content)
}

fn archive_of(name: &str, mode: &[u8; 8], content: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; BLOCK as usize];
    let mut write = |from: usize, bytes: &[u8]| header[from..from + bytes.len()].copy_from_slice(bytes);
    write(0, name.as_bytes());
    write(100, mode);
    write(108, b"0000000\0");
    write(116, b"0000000\0");
    write(124, format!("{:011o}\0", content.len()).as_bytes());
    write(136, b"00000000000\0");
    write(148, b"        ");
    write(156, b"0");
    write(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(BLOCK as usize) + 2 * BLOCK as usize, 0);
    archive
}

/// Returns a path of an archive without leading `./` and `/`.
fn normalized(name: &str) -> String {
    let parts: Vec<_> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    parts.join("/")
}

fn short_name(header: &[u8; BLOCK as usize]) -> String {
    let field = |bytes: &[u8]| text(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
    let (name, prefix) = (field(&header[..100]), field(&header[345..500]));
    // GNU tar uses the place of the prefix for other fields.
    if prefix.is_empty() || &header[257..263] != b"ustar\0" { name } else { format!("{prefix}/{name}") }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

fn read_text(archive: &mut impl Read, size: u64) -> Result<Vec<u8>, ContextError> {
    if size > TEXT_BYTES_MAX {
        return Err(ContextError::Archive("a Dockerfile or a name is larger than 1 MiB"));
    }
    let mut bytes = Vec::new();
    archive.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the path in an extended header. A size there would move the next entry.
fn pax_path(records: &[u8]) -> Result<Option<String>, ContextError> {
    let mut path = None;
    for record in records.split(|byte| *byte == b'\n') {
        let record = String::from_utf8_lossy(record);
        let Some((key, value)) = record.split_once(' ').and_then(|(_, pair)| pair.split_once('=')) else {
            continue;
        };
        match key {
            "path" => path = Some(value.to_owned()),
            "size" => return Err(ContextError::Archive("extended sizes are not allowed in a context")),
            key if key.starts_with("GNU.sparse") => {
                return Err(ContextError::Archive("sparse files are not allowed in a context"));
            }
            _ => {}
        }
    }
    Ok(path)
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Cursor;

    use super::*;

    /// Returns an archive of entries with name, kind and content.
    pub(crate) fn archive(entries: &[(&str, u8, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, kind, content) in entries {
            let mut entry = file_and_end(name, content.as_bytes());
            entry.truncate(entry.len() - 1024);
            entry[156] = *kind;
            bytes.extend(entry);
        }
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }

    fn dockerfile(entries: &[(&str, u8, &str)], wanted: &str) -> Result<Option<String>, ContextError> {
        let bytes = archive(entries);
        let length = bytes.len() as u64;
        read(&mut Cursor::new(bytes), length, wanted).map(|found| found.dockerfile.map(|bytes| text(&bytes)))
    }

    #[test]
    fn the_dockerfile_is_found_by_its_path() {
        let found = dockerfile(&[("a", b'0', "x"), ("./Dockerfile", b'0', "FROM a")], "Dockerfile");
        assert_eq!(found.unwrap().unwrap(), "FROM a");
        let long = [("././@LongLink", b'L', "sub/dir/Dockerfile\0"), ("sub", b'0', "FROM b")];
        assert_eq!(dockerfile(&long, "sub/dir/Dockerfile").unwrap().unwrap(), "FROM b");
        let pax = [("pax", b'x', "22 path=sub/Dockerfile\n"), ("x", b'0', "FROM c")];
        assert_eq!(dockerfile(&pax, "sub/Dockerfile").unwrap().unwrap(), "FROM c");
        assert_eq!(dockerfile(&[("a", b'0', "x")], "Dockerfile").unwrap(), None);
    }

    #[test]
    fn links_in_place_of_files_that_the_engine_reads_are_refused() {
        for entry in [("Dockerfile", b'2', ""), ("./Dockerfile", b'1', ""), ("s/.dockerignore", b'2', "")] {
            assert!(matches!(dockerfile(&[entry], "Dockerfile"), Err(ContextError::Link(_))), "{entry:?}");
        }
        for entry in [("null", b'3', ""), ("disk", b'4', ""), ("pipe", b'6', ""), ("p", b'x', "10 size=9\n")]
        {
            assert!(dockerfile(&[entry], "Dockerfile").is_err(), "{entry:?}");
        }
    }

    #[test]
    fn the_last_block_need_not_be_full() {
        let bytes = archive(&[("Dockerfile", b'0', "FROM a")])[..512 + 6].to_vec();
        let found = read(&mut Cursor::new(bytes), 512 + 6, "Dockerfile").unwrap();
        assert_eq!((found.dockerfile.as_deref(), found.end), (Some(&b"FROM a"[..]), 1024));
    }

    #[test]
    fn broken_archives_are_errors() {
        for bytes in [vec![1; 512], vec![0xff; 1024], archive(&[("a", b'0', "x")])[..512].to_vec()] {
            let length = bytes.len() as u64;
            assert!(read(&mut Cursor::new(bytes), length, "Dockerfile").is_err());
        }
    }
}
