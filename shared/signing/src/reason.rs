//! Reasons for an invalid archive: a code for programs and a sentence for people.

use std::io;

use serde::{Deserialize, Serialize};

use crate::keys::KeyError;

/// Maximum number of characters of a text from the archive that an error shows.
const QUOTED_CHARS_MAX: usize = 60;

/// Reason for which an archive is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The file is not a ZIP archive, or is truncated.
    NotZip,
    /// The file doesn't exist; this says nothing about the archive.
    NotFound,
    /// The file could not be read; this says nothing about the archive.
    ReadFailed,
    /// A required member is missing.
    MissingFile,
    /// A member occurs twice.
    DuplicateEntry,
    /// The archive has an entry that doesn't belong in a signed archive.
    ExtraEntry,
    /// An entry's name is a path.
    UnsafeName,
    /// There is data before the first entry.
    DataBeforeArchive,
    /// There is data between entries or before the end record.
    DataBetweenEntries,
    /// There is data after the end record.
    DataAfterArchive,
    /// The archive or an entry has a comment.
    ArchiveComment,
    /// Local header and central directory disagree about an entry.
    HeadersDisagree,
    /// More entries than [`crate::Limits::entries_max`].
    TooManyEntries,
    /// More bytes than [`crate::Limits::total_bytes_max`], or a member above its own limit.
    TooLarge,
    /// The decompressed size of an entry is more than [`crate::Limits::ratio_max`] times its
    /// compressed size.
    RatioTooHigh,
    /// An entry is a symbolic link, a folder or another kind of special file.
    NotARegularFile,
    /// An entry is encrypted.
    Encrypted,
    /// An entry uses a compression method other than deflate.
    UnsupportedCompression,
    /// The archive uses a feature of the format that signed archives don't need, such as ZIP64.
    UnsupportedFeature,
    /// Headers, compressed data or checksums are damaged.
    Damaged,
    /// The verifier has no usable keys.
    KeysUnavailable,
    /// `signature.txt` is not base64.
    SignatureEncoding,
    /// The manifest isn't signed by a trusted key.
    SignatureInvalid,
    /// The archive is intact and signed by the key in it, which the verifier doesn't know.
    UnknownKey,
    /// The archive is signed by a key that is no longer trusted.
    KeyDistrusted,
    /// The manifest is not JSON.
    ManifestNotJson,
    /// The manifest isn't an object, repeats a key, or has a field of the wrong type.
    ManifestWrongTypes,
    /// The manifest names a key that isn't trusted.
    FingerprintMismatch,
    /// `public_key.txt` contains a different key than the one that signed.
    KeyHintDiffers,
    /// The results differ from the signed ones.
    ResultsHashMismatch,
    /// The results are not JSON.
    ResultsNotJson,
    /// The results don't have the expected structure.
    ResultsWrongTypes,
    /// The archive's date is before its key was valid or after the key was retired.
    DateOutsideValidity,
    /// The archive's date is in the future.
    DateInFuture,
    /// Manifest and results name different runs.
    RunMismatch,
    /// This program doesn't know the `schema_version`.
    UnsupportedSchema,
    /// This program doesn't know the `signature_algorithm`.
    UnsupportedAlgorithm,
}

/// A reason with its sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }

    pub(crate) fn not_zip() -> Self {
        Self::new(Reason::NotZip, "Invalid zip archive")
    }

    pub(crate) fn damaged(what: &str) -> Self {
        Self::new(Reason::Damaged, format!("The archive is damaged: {what}"))
    }

    pub(crate) fn zip64() -> Self {
        Self::new(Reason::UnsupportedFeature, "The archive uses ZIP64, which is not supported")
    }

    pub(crate) fn encrypted() -> Self {
        Self::new(Reason::Encrypted, "The archive is encrypted")
    }

    pub(crate) fn not_regular() -> Self {
        Self::new(
            Reason::NotARegularFile,
            "An entry is a symbolic link or something else than a regular file",
        )
    }

    pub(crate) fn data_before() -> Self {
        Self::new(Reason::DataBeforeArchive, "Data stands before the archive")
    }

    pub(crate) fn data_between() -> Self {
        Self::new(Reason::DataBetweenEntries, "Data that belongs to no entry stands inside the archive")
    }

    pub(crate) fn keys(error: &KeyError) -> Self {
        Self::new(Reason::KeysUnavailable, error.to_string())
    }

    /// Error for a failed read outside of the members.
    pub(crate) fn unreadable(error: io::Error) -> Self {
        if is_damage(&error) {
            return Self::damaged("it ends early");
        }
        Self::new(Reason::ReadFailed, format!("The archive could not be read: {error}"))
    }

    /// Error for a failed read inside a member.
    pub(crate) fn member(name: &str, error: &io::Error) -> Self {
        if is_damage(error) {
            return Self::new(Reason::Damaged, format!("{name} is damaged: {error}"));
        }
        Self::new(Reason::ReadFailed, format!("The archive could not be read: {error}"))
    }
}

fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// Formats a text from the archive for an error: quoted, escaped and shortened.
pub(crate) fn quote_short(text: &str) -> String {
    let short: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    let mark = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{mark}")
}
