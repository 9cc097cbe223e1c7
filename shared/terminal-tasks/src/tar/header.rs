//! Headers of tar archives: POSIX.1-1988 `ustar`, POSIX.1-2001 `pax`, and the long names of GNU tar.

use super::BLOCK;
use crate::refusal::ArchiveProblem;

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// Extended header of the next entry.
    Extended,
    /// Name of the next entry.
    LongName,
    /// Extended header without a meaning for files, such as comments.
    Ignored,
    /// Link, device or another special file.
    Special(&'static str),
}

/// Header of an entry.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) name: Vec<u8>,
    pub(super) mode: u32,
    /// Bytes that follow the header.
    pub(super) size: u64,
    pub(super) kind: Kind,
}

impl Header {
    pub(super) fn read(block: &[u8; BLOCK]) -> Result<Self, ArchiveProblem> {
        let number = |from, to| octal(&block[from..to]);
        let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        let own: u64 = block[148..156].iter().map(|byte| u64::from(*byte)).sum();
        // The sum is taken with blanks in its own place.
        if number(148, 156) != Some(sum - own + 8 * u64::from(b' ')) {
            return Err(damaged("the checksum of a header is wrong"));
        }
        let size = number(124, 136).ok_or_else(|| damaged("the size of an entry can't be read"))?;
        let kind = match block[156] {
            b'0' | b'7' | 0 => Kind::File,
            b'5' => Kind::Folder,
            b'x' => Kind::Extended,
            b'L' => Kind::LongName,
            b'g' | b'K' => Kind::Ignored,
            b'1' => Kind::Special("hard link"),
            b'2' => Kind::Special("symbolic link"),
            _ => Kind::Special("device or another special file"),
        };
        let mode = number(100, 108).and_then(|mode| u32::try_from(mode & 0o7777).ok());
        Ok(Self { name: name(block), mode: mode.unwrap_or(0o644), size, kind })
    }
}

fn name(block: &[u8; BLOCK]) -> Vec<u8> {
    let field = |bytes: &[u8]| bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    let (name, prefix) = (field(&block[..100]), field(&block[345..500]));
    // GNU tar has other fields in the place of the prefix.
    match prefix.is_empty() || &block[257..263] != b"ustar\0" {
        true => name,
        false => [prefix.as_slice(), b"/", &name].concat(),
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

fn damaged(cause: &str) -> ArchiveProblem {
    ArchiveProblem::Damaged { cause: cause.to_owned() }
}

/// Records of an extended header that matter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Records {
    pub(super) path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
}

/// Reads records of the form `LENGTH KEY=VALUE` and a line feed.
pub(super) fn extended(mut text: &[u8]) -> Result<Records, ArchiveProblem> {
    let invalid = || damaged("an extended header is invalid");
    let mut records = Records::default();
    while !text.is_empty() {
        let blank = text.iter().position(|byte| *byte == b' ').ok_or_else(invalid)?;
        let (digits, _) = text.split_at(blank);
        let length: usize =
            std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(invalid)?;
        let record = text.get(blank + 1..length).and_then(|record| record.strip_suffix(b"\n"));
        let record = record.ok_or_else(invalid)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(invalid)?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        match key {
            b"path" => records.path = Some(value.to_vec()),
            b"size" => {
                let digits = std::str::from_utf8(value).ok();
                records.size = Some(digits.and_then(|digits| digits.parse().ok()).ok_or_else(invalid)?);
            }
            key if key.starts_with(b"GNU.sparse") => {
                return Err(ArchiveProblem::UnsupportedFeature { feature: "sparse files" });
            }
            _ => {}
        }
        text = text.get(length..).unwrap_or_default();
    }
    Ok(records)
}
