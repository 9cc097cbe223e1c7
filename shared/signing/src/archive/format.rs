//! The records of a ZIP file (APPNOTE 4.3), little-endian.

pub(super) const LOCAL_SIGNATURE: u32 = 0x0403_4b50;
pub(super) const CENTRAL_SIGNATURE: u32 = 0x0201_4b50;
pub(super) const DESCRIPTOR_SIGNATURE: u32 = 0x0807_4b50;
pub(super) const END_SIGNATURE: u32 = 0x0605_4b50;
pub(super) const ZIP64_LOCATOR_SIGNATURE: u32 = 0x0706_4b50;

pub(super) const LOCAL_BYTES: usize = 30;
pub(super) const CENTRAL_BYTES: usize = 46;
pub(super) const END_BYTES: usize = 22;
pub(super) const ZIP64_LOCATOR_BYTES: usize = 20;

pub(super) const METHOD_STORED: u16 = 0;
pub(super) const METHOD_DEFLATED: u16 = 8;

/// Sizes and checksum follow the data instead of being in the local header.
pub(super) const FLAG_DESCRIPTOR: u16 = 1 << 3;
/// Encrypted; strongly encrypted; local header masked.
pub(super) const FLAGS_ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
/// Compression level hints and the UTF-8 mark for names, which have no effect here.
pub(super) const FLAGS_HARMLESS: u16 = 1 << 1 | 1 << 2 | 1 << 11;

/// Readers must support version 2.0 of the format, for deflate.
const VERSION_NEEDED: u16 = 20;
/// Made by version 2.0 on Unix, so that readers interpret the mode below.
const VERSION_MADE_BY: u16 = 3 << 8 | VERSION_NEEDED;
/// A regular file that all users may read.
const EXTERNAL_ATTRIBUTES: u32 = 0o100_644 << 16;
/// 1980-01-01 00:00:00, the first time in the format, so that archives don't depend on when they were written.
const DOS_TIME: u16 = 0;
const DOS_DATE: u16 = 1 << 5 | 1;

/// Metadata of a member whose data has been written.
#[derive(Debug, Clone)]
pub(super) struct MemberRecord {
    pub(super) name: &'static str,
    pub(super) offset: u32,
    pub(super) flags: u16,
    pub(super) crc: u32,
    pub(super) compressed_bytes: u32,
    pub(super) bytes: u32,
}

impl MemberRecord {
    /// Returns the local header. If a descriptor follows, checksum and sizes are still zero.
    pub(super) fn local_header(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(LOCAL_BYTES + self.name.len());
        out.extend_from_slice(&LOCAL_SIGNATURE.to_le_bytes());
        self.write_shared_fields(&mut out);
        out.extend_from_slice(self.name.as_bytes());
        out
    }

    /// Returns the data descriptor, which follows the data.
    pub(super) fn descriptor(&self) -> Vec<u8> {
        let fields = [DESCRIPTOR_SIGNATURE, self.crc, self.compressed_bytes, self.bytes];
        fields.iter().flat_map(|field| field.to_le_bytes()).collect()
    }

    /// Returns the entry of the central directory.
    pub(super) fn central_header(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(CENTRAL_BYTES + self.name.len());
        out.extend_from_slice(&CENTRAL_SIGNATURE.to_le_bytes());
        out.extend_from_slice(&VERSION_MADE_BY.to_le_bytes());
        self.write_shared_fields(&mut out);
        // No comment, first disk, no internal attributes.
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&EXTERNAL_ATTRIBUTES.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(self.name.as_bytes());
        out
    }

    fn write_shared_fields(&self, out: &mut Vec<u8>) {
        for field in [VERSION_NEEDED, self.flags, METHOD_DEFLATED, DOS_TIME, DOS_DATE] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        for field in [self.crc, self.compressed_bytes, self.bytes] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        // All names are short constants, and extra fields aren't used.
        out.extend_from_slice(&[self.name.len() as u8, 0, 0, 0]);
    }
}

/// Returns the end record of an archive whose central directory has this size and offset.
pub(super) fn end_record(entries: u16, directory_bytes: u32, directory_offset: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(END_BYTES);
    out.extend_from_slice(&END_SIGNATURE.to_le_bytes());
    // Number of this disk, and of the one on which the directory starts.
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&entries.to_le_bytes());
    out.extend_from_slice(&entries.to_le_bytes());
    out.extend_from_slice(&directory_bytes.to_le_bytes());
    out.extend_from_slice(&directory_offset.to_le_bytes());
    // No comment.
    out.extend_from_slice(&[0; 2]);
    out
}

/// Reads the fields of a record one after the other. Returns `None` at the end of the bytes.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.bytes(2)?.try_into().ok()?))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }
}
