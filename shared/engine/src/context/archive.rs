//! Entries of a tar archive: finds the Dockerfile and the end of the entries.

use std::collections::HashSet;
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
    let mut places = Places::default();
    let (mut long_name, mut long_target): (Option<String>, Option<String>) = (None, None);
    // An extended header precedes the next entry.
    let mut is_extended = false;
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
        // Programs divide the prefix of this older format in another way.
        if &header[508..512] == b"tar\0" {
            return Err(ContextError::Archive("an entry is in the format `star`"));
        }
        let size = octal(&header[124..136]).ok_or(ContextError::Archive("an entry's size can't be read"))?;
        let content = start + BLOCK;
        if size > length || content + size > length {
            return Err(ContextError::Archive("an entry is longer than the archive"));
        }
        // Some clients end the archive without filling the last block.
        let end = content + size.div_ceil(BLOCK) * BLOCK;
        let kind = header[156];
        // Long names and extended headers precede the entry that they are about.
        let is_about_next = matches!(kind, b'L' | b'K' | b'x' | b'g');
        match kind {
            // Programs differ in which of several headers counts, so there is at most one of each, and of one format.
            b'L' if long_name.is_none() && !is_extended => long_name = Some(long_text(archive, size)?),
            b'K' if long_target.is_none() && !is_extended => long_target = Some(long_text(archive, size)?),
            b'x' if long_name.is_none() && long_target.is_none() && !is_extended => {
                (long_name, long_target) = pax_paths(&read_text(archive, size)?)?;
                is_extended = true;
            }
            b'L' | b'K' | b'x' | b'g' => {
                return Err(ContextError::Archive("an entry has several extended headers, or a global one"));
            }
            // Programs that read no content of such an entry would take it for further entries.
            b'1' | b'2' | b'5' if size > 0 => {
                return Err(ContextError::Archive("a folder or a link has content"));
            }
            b'0' | 0 | b'1' | b'2' | b'5' => {}
            _ => return Err(ContextError::Archive("only files, folders and links are allowed in a context")),
        }
        if !is_about_next {
            let name = long_name.take().unwrap_or_else(|| short_name(&header));
            let target = long_target.take().unwrap_or_else(|| text(until_zero(&header[157..257])));
            is_extended = false;
            if name.is_empty() || (matches!(kind, b'0' | 0) && name.ends_with('/')) {
                return Err(ContextError::Archive("a file has no name, or that of a folder"));
            }
            let path = normalized(&name);
            let last = path.rsplit('/').next().unwrap_or_default();
            // The engine reads these files itself, and follows links out of the context.
            let is_read = path == wanted || matches!(last, ".dockerignore" | ".containerignore");
            if matches!(kind, b'1' | b'2') && is_read {
                return Err(ContextError::Link(shortened(&name)));
            }
            if !places.add(kind, &path, &target) {
                return Err(ContextError::LeadsOut(shortened(&name)));
            }
            if matches!(kind, b'0' | 0) && path == wanted {
                found.dockerfile = Some(read_text(archive, size)?);
            }
        }
        found.end = end;
    }
    Err(ContextError::Archive("the context has too many entries"))
}

/// Places of a context's entries. Engines unpack a context with the rights of the machine's superuser and follow the links
/// that they have just made, so nothing may be written or linked through one.
#[derive(Default)]
struct Places {
    files: HashSet<String>,
    links: HashSet<String>,
}

impl Places {
    /// Adds an entry. Returns false if it leads out of the context, or through a link.
    fn add(&mut self, kind: u8, path: &str, target: &str) -> bool {
        if path.split('/').any(|part| part == "..") || self.is_behind_link(path) || self.links.contains(path)
        {
            return false;
        }
        match kind {
            b'2' => {
                let is_inside = !target.is_empty()
                    && !target.starts_with('/')
                    && target.split('/').all(|part| part != "..");
                // Without `..` and through no other place than those of the context, it can't lead out.
                let is_new =
                    !path.is_empty() && !self.files.contains(path) && self.links.insert(path.to_owned());
                is_inside && is_new
            }
            b'1' => {
                let target = normalized(target);
                let is_file = self.files.contains(&target) && !self.is_behind_link(&target);
                is_file && self.files.insert(path.to_owned())
            }
            b'5' => true,
            _ => {
                self.files.insert(path.to_owned());
                true
            }
        }
    }

    fn is_behind_link(&self, path: &str) -> bool {
        path.match_indices('/')
            .any(|(at, _)| path.get(..at).is_some_and(|folder| self.links.contains(folder)))
    }
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
    let field = |bytes: &[u8]| text(until_zero(bytes));
    let (name, prefix) = (field(&header[..100]), field(&header[345..500]));
    // GNU tar uses the place of the prefix for other fields.
    if prefix.is_empty() || &header[257..263] != b"ustar\0" { name } else { format!("{prefix}/{name}") }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn shortened(name: &str) -> String {
    name.chars().take(200).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

/// Reads a long name, which ends at the first zero byte.
fn long_text(archive: &mut impl Read, size: u64) -> Result<String, ContextError> {
    let name = text(until_zero(&read_text(archive, size)?));
    if name.is_empty() {
        return Err(ContextError::Archive("an extended header has an empty name"));
    }
    Ok(name)
}

fn read_text(archive: &mut impl Read, size: u64) -> Result<Vec<u8>, ContextError> {
    if size > TEXT_BYTES_MAX {
        return Err(ContextError::Archive("a Dockerfile or a name is larger than 1 MiB"));
    }
    let mut bytes = Vec::new();
    archive.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns path and link's target in an extended header. A size there would move the next entry.
fn pax_paths(records: &[u8]) -> Result<(Option<String>, Option<String>), ContextError> {
    let (mut path, mut target) = (None, None);
    let mut rest = records;
    while !rest.is_empty() {
        let broken = || ContextError::Archive("an extended header can't be read");
        // Each record begins with its length, so that values may have line ends.
        let space = rest.iter().position(|byte| *byte == b' ').ok_or_else(broken)?;
        let length = std::str::from_utf8(&rest[..space]).ok().and_then(|digits| digits.parse::<usize>().ok());
        let record = length.filter(|length| *length > space).and_then(|length| rest.get(space + 1..length));
        let record = record.and_then(|record| record.strip_suffix(b"\n")).ok_or_else(broken)?;
        rest = &rest[length.unwrap_or(rest.len())..];
        let record = String::from_utf8_lossy(record);
        let (key, value) = record.split_once('=').ok_or_else(broken)?;
        match key {
            "path" | "linkpath" => {
                let place = if key == "path" { &mut path } else { &mut target };
                if value.is_empty() || value.contains('\0') || place.replace(value.to_owned()).is_some() {
                    return Err(ContextError::Archive("an extended header has an unusual name"));
                }
            }
            "size" => return Err(ContextError::Archive("extended sizes are not allowed in a context")),
            key if key.starts_with("GNU.sparse") => {
                return Err(ContextError::Archive("sparse files are not allowed in a context"));
            }
            _ => {}
        }
    }
    Ok((path, target))
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
        let pax = [("pax", b'x', "23 path=sub/Dockerfile\n"), ("x", b'0', "FROM c")];
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

    /// Returns an archive of entries with name, kind and, for links, the target.
    fn linked(entries: &[(&str, u8, &str)]) -> Vec<u8> {
        let mut bytes = vec![];
        for (name, kind, target) in entries {
            let content = if matches!(kind, b'L' | b'K' | b'x') { *target } else { "" };
            let mut entry = archive(&[(name, *kind, content)]);
            entry.truncate(entry.len() - 1024);
            if content.is_empty() {
                entry[157..157 + target.len()].copy_from_slice(target.as_bytes());
            }
            bytes.extend(entry);
        }
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }

    #[test]
    fn nothing_leads_out_of_the_context_or_through_a_link() {
        let long = format!("{}/../../..", "a/".repeat(60));
        let pax = "20 linkpath=../../x\n";
        let found = |entries: &[(&str, u8, &str)]| {
            let mut all = vec![("Dockerfile", b'0', "")];
            all.extend(entries);
            let bytes = linked(&all);
            let length = bytes.len() as u64;
            read(&mut Cursor::new(bytes), length, "Dockerfile").map(|_| ())
        };
        for entries in [
            &[("x", b'2', "/etc"), ("x/written", b'0', "")][..],
            &[("x", b'2', "/etc")],
            &[("x", b'2', "../..")],
            &[("d/x", b'2', "a/../../..")],
            &[("x", b'2', "d"), ("x/y", b'0', "")],
            &[("x", b'2', "d"), ("./x//y", b'5', "")],
            &[("x", b'2', "d"), ("x", b'0', "")],
            &[("x", b'2', "d"), ("x", b'5', "")],
            &[("x", b'2', "d"), ("s", b'1', "x/hostsecret")],
            &[("s", b'1', "x")],
            &[("s", b'1', "/etc/shadow")],
            &[("x", b'2', "d"), ("s", b'1', "x")],
            &[("../x", b'0', "")],
            &[("a/../../x", b'0', "")],
            &[("a/..", b'5', "")],
            &[("@", b'K', long.as_str()), ("x", b'2', "d")],
            &[("@", b'x', pax), ("x", b'2', "d")],
            &[("@", b'L', "../out\0"), ("x", b'0', "")],
        ] {
            assert!(matches!(found(entries), Err(ContextError::LeadsOut(_))), "{entries:?}");
        }
        for entries in [
            &[("d", b'5', ""), ("d/a", b'0', ""), ("x", b'2', "d/a"), ("d/y", b'2', "a"), ("h", b'1', "d/a")]
                [..],
            &[("./", b'5', ""), ("./bin", b'2', "usr/bin"), ("./usr/bin/a", b'0', "")],
            &[("a..b", b'0', ""), ("l", b'2', "a..b")],
        ] {
            found(entries).unwrap();
        }
    }

    /// Go's programs read such archives in another way, so that entries would be hidden from this check.
    #[test]
    fn entries_that_programs_read_differently_are_refused() {
        let hidden = String::from_utf8(linked(&[("x", b'2', "/etc")])[..512].to_vec()).unwrap();
        let pax = "20 linkpath=../../x\n";
        for entries in [
            &[("d", b'5', hidden.as_str())][..],
            &[("d/", b'0', hidden.as_str())],
            &[("d/", 0, hidden.as_str())],
            &[("l", b'2', hidden.as_str())],
            &[("l", b'1', hidden.as_str())],
            &[("@", b'K', "/etc\0"), ("@", b'x', pax), ("l", b'2', "")],
            &[("@", b'x', pax), ("@", b'x', "10 mtime=1\n"), ("l", b'2', "")],
            &[("@", b'x', pax), ("@", b'g', "10 mtime=1\n"), ("l", b'2', "")],
            &[("@", b'L', "a\0"), ("@", b'L', "b\0"), ("l", b'0', "")],
            &[("@", b'x', "8 path=\n"), ("l", b'0', "")],
            &[("@", b'x', "9 path=a\n9 path=b\n"), ("l", b'0', "")],
            &[("@", b'L', "\0x"), ("l", b'0', "")],
            &[("", b'2', "")],
        ] {
            let found = dockerfile(entries, "Dockerfile");
            assert!(matches!(found, Err(ContextError::Archive(_))), "{entries:?}: {found:?}");
        }
        let mut star = archive(&[("Dockerfile", b'0', "FROM a")]);
        star[508..512].copy_from_slice(b"tar\0");
        let length = star.len() as u64;
        assert!(read(&mut Cursor::new(star), length, "Dockerfile").is_err());
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
