//! Why an archive is not valid: a code for programs and a sentence for people.

use std::io;

use serde::{Deserialize, Serialize};

use crate::keys::KeyError;

/// How much of a text from the archive an error shows, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// One way in which an archive is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The file is not a ZIP archive, or is cut off.
    NotZip,
    /// There is no such file; this says nothing about the archive.
    NotFound,
    /// The file could not be read; this says nothing about the archive.
    ReadFailed,
    /// A required member is missing.
    MissingFile,
    /// A member occurs twice.
    DuplicateEntry,
    /// There is an entry that no signed archive has.
    ExtraEntry,
    /// An entry's name is a path.
    UnsafeName,
    /// Bytes stand before the first entry.
    DataBeforeArchive,
    /// Bytes stand between entries or before the end record.
    DataBetweenEntries,
    /// Bytes stand after the end record.
    DataAfterArchive,
    /// The archive or an entry has a comment.
    ArchiveComment,
    /// Local header and directory say different things of an entry.
    HeadersDisagree,
    /// More entries than [`crate::Limits::entries_max`].
    TooManyEntries,
    /// More bytes than [`crate::Limits::total_bytes_max`], or a member above its own bound.
    TooLarge,
    /// An entry grows more than [`crate::Limits::ratio_max`] times.
    RatioTooHigh,
    /// An entry is a symbolic link, a folder or something else that is no ordinary file.
    NotARegularFile,
    /// An entry is encrypted.
    Encrypted,
    /// An entry is compressed in another way than by deflate.
    UnsupportedCompression,
    /// The archive uses a part of the format that signed archives do not need, such as ZIP64.
    UnsupportedFeature,
    /// Headers, compressed data or checksums are broken.
    Damaged,
    /// The verifier has no usable keys.
    KeysUnavailable,
    /// `signature.txt` is not base64.
    SignatureEncoding,
    /// No trusted key made this signature of this manifest.
    SignatureInvalid,
    /// The archive is sound and was signed by the key inside it, which is not known to the verifier.
    UnknownKey,
    /// The signature is that of a key that is not trusted any more.
    KeyDistrusted,
    /// The manifest is not JSON.
    ManifestNotJson,
    /// The manifest is no object, repeats a key, or a field has the wrong type.
    ManifestWrongTypes,
    /// The manifest names a key that is not trusted.
    FingerprintMismatch,
    /// `public_key.txt` holds another key than the one that signed.
    KeyHintDiffers,
    /// The results are not those that were signed.
    ResultsHashMismatch,
    /// The results are not JSON.
    ResultsNotJson,
    /// The results do not have the expected form.
    ResultsWrongTypes,
    /// The archive's date is before its key began or after it stopped to sign.
    DateOutsideValidity,
    /// The archive's date is in the future.
    DateInFuture,
    /// Manifest and results name different runs.
    RunMismatch,
    /// A `schema_version` that this program does not know.
    UnsupportedSchema,
    /// A `signature_algorithm` that this program does not know.
    UnsupportedAlgorithm,
}

/// A reason with its sentence.
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

    /// A read that failed between the members.
    pub(crate) fn unreadable(error: io::Error) -> Self {
        if is_damage(&error) {
            return Self::damaged("it ends early");
        }
        Self::new(Reason::ReadFailed, format!("The archive could not be read: {error}"))
    }

    /// A read that failed inside a member.
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

/// A text from the archive as errors show it: quoted, escaped and short.
pub(crate) fn shown(text: &str) -> String {
    let short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    let mark = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{mark}")
}
