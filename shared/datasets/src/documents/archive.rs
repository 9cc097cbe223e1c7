//! Reader for the text members of a ZIP archive.
//!
//! Archives come from outside, so the sizes that they claim aren't trusted. Reading one ends in its members or in an
//! error with the member's name, with one member in memory at a time.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use tokio::sync::mpsc;
use zip::ZipArchive;
use zip::read::ZipFileEntry;

use crate::error::DatasetError;
use crate::rows::catch_panic;

/// Maximum size of an archive, in bytes.
pub(super) const ARCHIVE_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Maximum number of members, including folders.
const MEMBERS_MAX: u16 = 20_000;
/// Maximum size of one document, in bytes.
const DOCUMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum size of all documents of an archive, in bytes.
const DOCUMENTS_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Maximum length of a member's name, in bytes.
const NAME_BYTES_MAX: usize = 4_096;
/// Length of the record at the end of an archive, without its comment.
const END_BYTES: usize = 22;
const END_MARK: &[u8] = b"PK\x05\x06";
/// Characters of the bytes from 0x80 on in code page 437.
const CODE_PAGE_437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
    └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
/// Flag of a member whose name is marked as UTF-8.
const UTF_8_NAME: u16 = 1 << 11;

/// A text member of an archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document {
    /// The member's name without the archive's prefix. There are two names if the encoding is ambiguous.
    pub(super) names: Vec<String>,
    /// The text, or the reason why the bytes aren't valid text.
    pub(super) text: Result<String, String>,
}

/// Starts to read an archive on another thread. An error is the last message.
pub(super) fn read(what: String, file: File, prefix: &str) -> mpsc::Receiver<Result<Document, DatasetError>> {
    let (sender, receiver) = mpsc::channel(1);
    let prefix = prefix.to_owned();
    tokio::task::spawn_blocking(move || {
        let mut sink = |document| sender.blocking_send(Ok(document)).is_ok();
        let all = catch_panic(|| members(&what, file, &prefix, &mut sink));
        // Without this, a panic of the thread would look like the end of the archive.
        let all = all.unwrap_or_else(|panic| Err(DatasetError::Interrupted(panic)));
        if let Err(error) = all {
            // A receiver that is closed doesn't need the error either.
            sender.blocking_send(Err(error)).ok();
        }
    });
    receiver
}

/// Passes every document to `sink` until it returns `false`.
fn members(
    what: &str,
    mut file: File,
    prefix: &str,
    sink: &mut dyn FnMut(Document) -> bool,
) -> Result<(), DatasetError> {
    let failed = |problem: String| DatasetError::content(what, None, None, problem);
    check_end(&mut file).map_err(failed)?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| failed(invalid_zip(&error)))?;
    if archive.has_duplicate_names() {
        return Err(failed("two members have the same name".to_owned()));
    }
    let mut left = DOCUMENTS_BYTES_MAX;
    for index in 0..archive.len() {
        let entry = archive.by_index_data(index).map_err(|error| failed(error.to_string()))?;
        let names = names(&entry).map_err(failed)?;
        let own: Vec<String> = names
            .iter()
            .filter_map(|name| name.strip_prefix(prefix))
            .filter(|name| !name.is_empty() && !name.ends_with('/'))
            .map(str::to_owned)
            .collect();
        let Some(first) = own.first().cloned() else { continue };
        let at = |problem: String| failed(format!("member `{first}`: {problem}"));
        let mut member = archive.by_index(index).map_err(|error| at(error.to_string()))?;
        // The content of a symbolic link is a path, not a document.
        if !member.is_file()
            || member.unix_mode().is_some_and(|mode| !matches!(mode & 0o170_000, 0 | 0o100_000))
        {
            return Err(at("it is not a regular file".to_owned()));
        }
        let limit = DOCUMENT_BYTES_MAX.min(left);
        let mut bytes = Vec::new();
        let read = member.by_ref().take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|error| at(error.to_string()))?;
        if bytes.len() as u64 > limit {
            return Err(at(format!(
                "it has more than {DOCUMENT_BYTES_MAX} bytes, or all together more than {DOCUMENTS_BYTES_MAX}"
            )));
        }
        left -= bytes.len() as u64;
        let text = String::from_utf8(bytes)
            .map_err(|error| format!("byte {} of it is not UTF-8", error.utf8_error().valid_up_to()));
        if !sink(Document { names: own, text }) {
            return Ok(());
        }
    }
    Ok(())
}

/// Rejects archives whose list of members wouldn't fit into memory, before it is read.
fn check_end(file: &mut File) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
    if length > ARCHIVE_BYTES_MAX {
        return Err(format!("it has more than {ARCHIVE_BYTES_MAX} bytes"));
    }
    let tail_bytes = length.min(END_BYTES as u64 + u64::from(u16::MAX));
    file.seek(SeekFrom::Start(length - tail_bytes)).map_err(failed)?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let ends = tail.windows(END_BYTES).filter(|window| window.starts_with(END_MARK));
    let counts = ends.filter_map(|end| Some(u16::from_le_bytes([*end.get(10)?, *end.get(11)?])));
    match counts.max() {
        None => Err("it is not a ZIP archive".to_owned()),
        Some(count) if count > MEMBERS_MAX => Err(format!("it has more than {MEMBERS_MAX} members")),
        Some(_) => Ok(()),
    }
}

fn invalid_zip(error: &zip::result::ZipError) -> String {
    format!("it is not a readable ZIP archive: {error}")
}

/// Decodes a member's name. Old programs wrote code page 437; others write UTF-8 without marking it.
fn names(entry: &ZipFileEntry<'_>) -> Result<Vec<String>, String> {
    let raw = entry.name_raw();
    if raw.len() > NAME_BYTES_MAX {
        return Err(format!("a member's name has more than {NAME_BYTES_MAX} bytes"));
    }
    let utf_8 = std::str::from_utf8(raw).ok().map(str::to_owned);
    if entry.flags().as_u16() & UTF_8_NAME != 0 {
        let name = utf_8.ok_or("a member's name is marked as UTF-8 and is not")?;
        return Ok(vec![name]);
    }
    let old = raw.iter().map(|byte| match byte.checked_sub(0x80) {
        None => char::from(*byte),
        Some(high) => CODE_PAGE_437.chars().nth(high.into()).unwrap_or(char::REPLACEMENT_CHARACTER),
    });
    let old: String = old.collect();
    let mut names: Vec<String> = utf_8.into_iter().chain([old]).collect();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests;
