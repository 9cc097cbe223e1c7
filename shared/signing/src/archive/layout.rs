//! Finds the members of an archive, and rejects archives that two programs could read differently.
//!
//! The members, the directory and the end record must cover the file without gap or overlap, local and central headers
//! must agree, and the archive must not contain anything that a signed archive doesn't need.

use std::io::{Read, Seek, SeekFrom};

use super::Member;
use super::format::{
    CENTRAL_BYTES, CENTRAL_SIGNATURE, DESCRIPTOR_SIGNATURE, END_BYTES, END_SIGNATURE, FLAG_DESCRIPTOR,
    FLAGS_ENCRYPTED, FLAGS_HARMLESS, Fields, LOCAL_BYTES, LOCAL_SIGNATURE, METHOD_DEFLATED, METHOD_STORED,
    ZIP64_LOCATOR_BYTES, ZIP64_LOCATOR_SIGNATURE,
};
use crate::limits::Limits;
use crate::reason::{Reason, Refusal, quote_short};

/// Maximum length of a comment in the format, which may follow the end record.
const COMMENT_BYTES_MAX: u64 = u16::MAX as u64;

/// Maximum size of the directory. In a signed archive it has a few hundred bytes; extra fields of archive tools rarely
/// add kilobytes.
const DIRECTORY_BYTES_MAX: u64 = 64 * 1024;

/// Extra fields that change the meaning of a header: 64-bit sizes, encryption, another name.
const EXTRA_ZIP64: u16 = 0x0001;
const EXTRA_STRONG_ENCRYPTION: u16 = 0x0017;
const EXTRA_AES: u16 = 0x9901;
const EXTRA_UNICODE_NAME: u16 = 0x7075;
/// Unix extra fields that may contain the target of a link.
const EXTRA_PKWARE_UNIX: u16 = 0x000d;
const EXTRA_ASI_UNIX: u16 = 0x756e;
/// Length of the first one without a link: two times, user and group.
const EXTRA_PKWARE_UNIX_BYTES: usize = 12;

/// Compression method of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Stored,
    Deflated,
}

/// A member that has passed all checks.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) member: Member,
    pub(crate) method: Method,
    pub(crate) crc: u32,
    pub(crate) compressed_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) data_offset: u64,
}

/// The members of an archive: the first three are present, and each at most once.
#[derive(Debug)]
pub(crate) struct Layout(Vec<Entry>);

impl Layout {
    pub(crate) fn find(&self, member: Member) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.member == member)
    }
}

/// Reads and checks the structure of `archive`, without reading member data.
pub(crate) fn read<R: Read + Seek>(archive: &mut R, limits: &Limits) -> Result<Layout, Refusal> {
    let length = archive.seek(SeekFrom::End(0)).map_err(Refusal::unreadable)?;
    let end = find_end(archive, length, limits)?;
    let directory = read_directory(archive, &end)?;
    check_members(&directory)?;
    limits.check(directory.iter().map(|header| (header.compressed_bytes, header.bytes)))?;
    check_coverage(archive, directory, end.directory_offset).map(Layout)
}

struct End {
    entries: u16,
    directory_offset: u64,
    directory_bytes: u64,
}

fn find_end<R: Read + Seek>(archive: &mut R, length: u64, limits: &Limits) -> Result<End, Refusal> {
    let Some(at) = length.checked_sub(END_BYTES as u64) else { return Err(Refusal::not_zip()) };
    let record = read_at(archive, at, END_BYTES)?;
    let mut fields = Fields(&record);
    if fields.u32() != Some(END_SIGNATURE) || !record.ends_with(&[0, 0]) {
        return Err(explain_missing_end(archive, length));
    }
    let parsed = (|| {
        Some((fields.u16()?, fields.u16()?, fields.u16()?, fields.u16()?, fields.u32()?, fields.u32()?))
    })();
    let Some((disk, directory_disk, here, entries, directory_bytes, directory_offset)) = parsed else {
        return Err(Refusal::not_zip());
    };

    let has_locator = match at.checked_sub(ZIP64_LOCATOR_BYTES as u64) {
        Some(before) => Fields(&read_at(archive, before, 4)?).u32() == Some(ZIP64_LOCATOR_SIGNATURE),
        None => false,
    };
    if has_locator || entries == u16::MAX || directory_bytes == u32::MAX || directory_offset == u32::MAX {
        return Err(Refusal::zip64());
    }
    if disk != 0 || directory_disk != 0 || here != entries {
        return Err(Refusal::new(Reason::UnsupportedFeature, "The archive is split over several files"));
    }
    if entries > limits.entries_max {
        let text = format!("The archive has {entries} entries, more than the {} allowed", limits.entries_max);
        return Err(Refusal::new(Reason::TooManyEntries, text));
    }
    let (directory_bytes, directory_offset) = (u64::from(directory_bytes), u64::from(directory_offset));
    if directory_bytes > DIRECTORY_BYTES_MAX {
        return Err(Refusal::new(Reason::TooLarge, "The directory of the archive is too large"));
    }
    let Some(directory_at) = at.checked_sub(directory_bytes) else {
        return Err(Refusal::damaged("its directory is larger than the file"));
    };
    if directory_at < directory_offset {
        return Err(Refusal::damaged("its directory overlaps its end"));
    }
    if directory_at > directory_offset {
        // Data was inserted: before the archive if the directory is still directly in front of the end record.
        let moved =
            entries > 0 && Fields(&read_at(archive, directory_at, 4)?).u32() == Some(CENTRAL_SIGNATURE);
        return Err(if moved { Refusal::data_before() } else { Refusal::data_between() });
    }
    Ok(End { entries, directory_offset, directory_bytes })
}

/// Returns the reason why the file doesn't end with an end record: a comment, data after it, or no archive at all.
fn explain_missing_end<R: Read + Seek>(archive: &mut R, length: u64) -> Refusal {
    let tail_bytes = length.min(COMMENT_BYTES_MAX + END_BYTES as u64);
    let Ok(tail) = usize::try_from(tail_bytes)
        .map_err(|_| Refusal::not_zip())
        .and_then(|count| read_at(archive, length - tail_bytes, count))
    else {
        return Refusal::not_zip();
    };
    let signature = END_SIGNATURE.to_le_bytes();
    let found = tail.windows(END_BYTES).enumerate().rev().find(|(_, window)| window.starts_with(&signature));
    let Some((at, record)) = found else { return Refusal::not_zip() };
    let comment_bytes = Fields(record.get(END_BYTES - 2..).unwrap_or_default()).u16().unwrap_or(0);
    match (at + END_BYTES + usize::from(comment_bytes)).cmp(&tail.len()) {
        std::cmp::Ordering::Equal => {
            Refusal::new(Reason::ArchiveComment, "The archive has a comment, which no signature covers")
        }
        std::cmp::Ordering::Less => Refusal::new(Reason::DataAfterArchive, "Data follows after the archive"),
        std::cmp::Ordering::Greater => Refusal::not_zip(),
    }
}

/// Metadata of an entry in the central directory.
struct Header {
    name: Vec<u8>,
    member: Option<Member>,
    flags: u16,
    method: u16,
    crc: u32,
    compressed_bytes: u64,
    bytes: u64,
    offset: u64,
}

fn read_directory<R: Read + Seek>(archive: &mut R, end: &End) -> Result<Vec<Header>, Refusal> {
    let bytes = usize::try_from(end.directory_bytes).map_err(|_| Refusal::not_zip())?;
    let directory = read_at(archive, end.directory_offset, bytes)?;
    let mut fields = Fields(&directory);
    let mut headers = Vec::with_capacity(usize::from(end.entries));
    for _ in 0..end.entries {
        headers.push(read_central_header(&mut fields)?);
    }
    if !fields.0.is_empty() {
        return Err(Refusal::damaged("its directory is longer than its entries"));
    }
    Ok(headers)
}

fn read_central_header(fields: &mut Fields<'_>) -> Result<Header, Refusal> {
    let short = || Refusal::damaged("its directory is cut off");
    let mut fixed = Fields(fields.bytes(CENTRAL_BYTES).ok_or_else(short)?);
    let parsed = (|| {
        let signature = fixed.u32()?;
        let _versions = (fixed.u16()?, fixed.u16()?);
        let (flags, method) = (fixed.u16()?, fixed.u16()?);
        let _time = fixed.u32()?;
        let sizes = (fixed.u32()?, fixed.u32()?, fixed.u32()?);
        let lengths = (fixed.u16()?, fixed.u16()?, fixed.u16()?);
        let disk = fixed.u16()?;
        let _internal = fixed.u16()?;
        let attributes = fixed.u32()?;
        Some((signature, flags, method, sizes, lengths, disk, attributes, fixed.u32()?))
    })();
    let (signature, flags, method, (crc, compressed, size), (name, extra, comment), disk, attributes, offset) =
        parsed.ok_or_else(short)?;
    if signature != CENTRAL_SIGNATURE {
        return Err(Refusal::damaged("its directory has something other than entries"));
    }
    let name = fields.bytes(name.into()).ok_or_else(short)?.to_vec();
    let extra = fields.bytes(extra.into()).ok_or_else(short)?;
    if comment > 0 {
        return Err(Refusal::new(
            Reason::ArchiveComment,
            "An entry has a comment, which no signature covers",
        ));
    }
    if !is_regular(attributes) {
        return Err(Refusal::not_regular());
    }
    if flags & FLAGS_ENCRYPTED != 0 {
        return Err(Refusal::encrypted());
    }
    check_extra(extra)?;
    if [compressed, size, offset].contains(&u32::MAX) {
        return Err(Refusal::zip64());
    }
    if flags & !(FLAG_DESCRIPTOR | FLAGS_HARMLESS) != 0 || disk != 0 {
        return Err(Refusal::new(
            Reason::UnsupportedFeature,
            "An entry uses a ZIP feature that is not supported",
        ));
    }
    let member = Member::ALL.into_iter().find(|member| member.name().as_bytes() == name);
    Ok(Header {
        name,
        member,
        flags,
        method,
        crc,
        compressed_bytes: compressed.into(),
        bytes: size.into(),
        offset: offset.into(),
    })
}

/// Returns true if the external attributes belong to a regular file: the Unix file type is missing or regular, whatever
/// system the entry claims to come from, and the DOS attributes mark neither a folder nor a volume label.
fn is_regular(attributes: u32) -> bool {
    const UNIX_TYPE: u32 = 0o170_000 << 16;
    const UNIX_REGULAR: u32 = 0o100_000 << 16;
    const DOS_LABEL_OR_FOLDER: u32 = 0x18;
    matches!(attributes & UNIX_TYPE, 0 | UNIX_REGULAR) && attributes & DOS_LABEL_OR_FOLDER == 0
}

fn check_extra(extra: &[u8]) -> Result<(), Refusal> {
    let mut fields = Fields(extra);
    while !fields.0.is_empty() {
        let id = (|| {
            let id = fields.u16()?;
            let length = fields.u16()?;
            Some((id, fields.bytes(length.into())?.len()))
        })();
        match id {
            None => return Err(Refusal::damaged("an extra field is cut off")),
            Some((EXTRA_ZIP64, _)) => return Err(Refusal::zip64()),
            Some((EXTRA_AES | EXTRA_STRONG_ENCRYPTION, _)) => return Err(Refusal::encrypted()),
            Some((EXTRA_UNICODE_NAME, _)) => {
                return Err(Refusal::new(Reason::HeadersDisagree, "An entry has two names"));
            }
            Some((EXTRA_ASI_UNIX, _)) => return Err(Refusal::not_regular()),
            Some((EXTRA_PKWARE_UNIX, length)) if length > EXTRA_PKWARE_UNIX_BYTES => {
                return Err(Refusal::not_regular());
            }
            // Times and owners, which archive tools add.
            Some(_) => {}
        }
    }
    Ok(())
}

fn check_members(headers: &[Header]) -> Result<(), Refusal> {
    for required in [Member::Results, Member::Manifest, Member::Signature] {
        if !headers.iter().any(|header| header.member == Some(required)) {
            let text = format!(
                "Missing required file: \"There is no item named '{}' in the archive\"",
                required.name()
            );
            return Err(Refusal::new(Reason::MissingFile, text));
        }
    }
    for (index, header) in headers.iter().enumerate() {
        let shown = quote_short(&String::from_utf8_lossy(&header.name));
        let is_path =
            header.name.iter().any(|byte| b"/\\:\0".contains(byte)) || header.name.starts_with(b".");
        if is_path {
            let text = format!("The entry name {shown} is a path");
            return Err(Refusal::new(Reason::UnsafeName, text));
        }
        if header.member.is_none() {
            let text = format!("The archive has an entry that does not belong there: {shown}");
            return Err(Refusal::new(Reason::ExtraEntry, text));
        }
        if headers.iter().take(index).any(|other| other.name == header.name) {
            let text = format!("The archive has the entry {shown} twice");
            return Err(Refusal::new(Reason::DuplicateEntry, text));
        }
    }
    Ok(())
}

/// Checks from the start of the file that every byte belongs to exactly one entry. The entries may be in any order.
fn check_coverage<R: Read + Seek>(
    archive: &mut R,
    mut headers: Vec<Header>,
    directory_offset: u64,
) -> Result<Vec<Entry>, Refusal> {
    headers.sort_by_key(|header| header.offset);
    let ends: Vec<u64> =
        headers.iter().skip(1).map(|header| header.offset).chain([directory_offset]).collect();
    if headers.first().is_some_and(|header| header.offset > 0) {
        return Err(Refusal::data_before());
    }
    headers.iter().zip(ends).map(|(header, end)| check_local(archive, header, end)).collect()
}

fn check_local<R: Read + Seek>(archive: &mut R, header: &Header, end: u64) -> Result<Entry, Refusal> {
    let overlap = || Refusal::damaged("its entries overlap");
    let disagree = || {
        let name = quote_short(&String::from_utf8_lossy(&header.name));
        Refusal::new(Reason::HeadersDisagree, format!("The two headers of {name} say different things"))
    };
    let room = end.checked_sub(header.offset).ok_or_else(overlap)?;
    if room < LOCAL_BYTES as u64 {
        return Err(overlap());
    }
    let fixed = read_at(archive, header.offset, LOCAL_BYTES)?;
    let mut fields = Fields(&fixed);
    let parsed = (|| {
        let signature = fields.u32()?;
        let _version = fields.u16()?;
        let (flags, method) = (fields.u16()?, fields.u16()?);
        let _time = fields.u32()?;
        let sizes = (fields.u32()?, fields.u32()?, fields.u32()?);
        Some((signature, flags, method, sizes, fields.u16()?, fields.u16()?))
    })();
    let (signature, flags, method, sizes, name_bytes, extra_bytes) = parsed.ok_or_else(overlap)?;
    if signature != LOCAL_SIGNATURE {
        return Err(Refusal::damaged("an entry does not start where the directory says"));
    }
    let variable = usize::from(name_bytes) + usize::from(extra_bytes);
    let data_offset = header.offset + (LOCAL_BYTES + variable) as u64;
    let data_end = data_offset + header.compressed_bytes;
    let tail = end.checked_sub(data_end).ok_or_else(overlap)?;
    let variable = read_at(archive, header.offset + LOCAL_BYTES as u64, variable)?;
    let (name, extra) = variable.split_at_checked(name_bytes.into()).ok_or_else(overlap)?;
    check_extra(extra)?;
    if name != header.name || flags != header.flags || method != header.method {
        return Err(disagree());
    }
    let method = match method {
        METHOD_STORED => Method::Stored,
        METHOD_DEFLATED => Method::Deflated,
        other => {
            let text = format!("The archive uses compression method {other}; only deflate is supported");
            return Err(Refusal::new(Reason::UnsupportedCompression, text));
        }
    };
    let central = (header.crc, header.compressed_bytes, header.bytes);
    let local = (sizes.0, u64::from(sizes.1), u64::from(sizes.2));
    let has_descriptor = flags & FLAG_DESCRIPTOR != 0;
    if local != central && !(has_descriptor && local == (0, 0, 0)) {
        return Err(disagree());
    }
    if has_descriptor {
        if method == Method::Stored {
            // A program that reads from the front couldn't find the end of such data.
            let text = "An entry is stored without saying its size first";
            return Err(Refusal::new(Reason::UnsupportedFeature, text));
        }
        check_descriptor(archive, data_end, tail, central, disagree)?;
    } else if tail != 0 {
        return Err(Refusal::data_between());
    }
    // Entries with unknown names have been rejected before.
    let member = header.member.ok_or_else(disagree)?;
    Ok(Entry {
        member,
        method,
        crc: header.crc,
        compressed_bytes: header.compressed_bytes,
        bytes: header.bytes,
        data_offset,
    })
}

/// Checks the data descriptor. It has 16 bytes, or 12 without its signature, and must fill the space up to the next
/// entry.
fn check_descriptor<R: Read + Seek>(
    archive: &mut R,
    at: u64,
    room: u64,
    central: (u32, u64, u64),
    disagree: impl Fn() -> Refusal,
) -> Result<(), Refusal> {
    let bytes = match room {
        12 | 16 => read_at(archive, at, room as usize)?,
        0..12 => return Err(Refusal::damaged("its entries overlap")),
        _ => return Err(Refusal::data_between()),
    };
    let mut fields = Fields(&bytes);
    let signature_is_good = room == 12 || fields.u32() == Some(DESCRIPTOR_SIGNATURE);
    let sizes = (|| Some((fields.u32()?, u64::from(fields.u32()?), u64::from(fields.u32()?))))();
    if signature_is_good && sizes == Some(central) { Ok(()) } else { Err(disagree()) }
}

fn read_at<R: Read + Seek>(archive: &mut R, at: u64, count: usize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = vec![0; count];
    archive
        .seek(SeekFrom::Start(at))
        .and_then(|_| archive.read_exact(&mut bytes))
        .map_err(Refusal::unreadable)?;
    Ok(bytes)
}
