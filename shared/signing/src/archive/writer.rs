//! Writer for signed archives: one pass, constant memory.

use std::io::{self, Write};

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use jiff::Timestamp;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::Member;
use super::format::{FLAG_DESCRIPTOR, MemberRecord, end_record};
use crate::canonical::{self, CanonicalError};
use crate::keys::SigningKey;
use crate::limits::MANIFEST_BYTES_MAX;
use crate::time::whole_seconds;
use crate::{SCHEMA_VERSION, SIGNATURE_ALGORITHM};

/// Maximum size of `results.json`, in bytes: the limit of the format without ZIP64, which not all readers support.
/// Verifiers with default limits wouldn't accept larger results either.
pub const RESULTS_BYTES_MAX: u64 = u32::MAX as u64 - 1;

/// Size of the chunks that are passed to the compressor, so that its output doesn't depend on the sizes of the caller's
/// writes.
const PIECE_BYTES: usize = 64 * 1024;

/// Manifest fields that the writer sets; callers can't set them.
const RESERVED_FIELDS: [&str; 6] = [
    "generated_at",
    "public_key_fingerprint",
    "results_sha256",
    "run_id",
    "schema_version",
    "signature_algorithm",
];

/// Errors of writing an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The underlying writer failed.
    #[error("cannot write the archive")]
    Write(#[from] io::Error),
    /// The archive would exceed the limit of the format.
    #[error("the results are larger than {RESULTS_BYTES_MAX} bytes")]
    TooLarge,
    /// An additional manifest field has a name that the writer itself uses.
    #[error("the manifest field {0:?} is set by the archive itself")]
    ReservedField(String),
    /// An additional manifest field has no canonical text.
    #[error("the manifest cannot be written")]
    Manifest(#[source] CanonicalError),
    /// The manifest is too large to be read again.
    #[error("the manifest is larger than {bytes_max} bytes")]
    ManifestTooLarge {
        /// Maximum size in bytes.
        bytes_max: u64,
    },
}

/// Manifest fields that the caller provides.
#[derive(Debug, Clone)]
pub struct ManifestFields {
    /// Run id, as in `run.id` of the results; verification compares the two.
    pub run_id: String,
    /// Time at which this version of the export was completed. Written with whole seconds.
    pub generated_at: Timestamp,
    /// Additional fields. Names that the writer itself uses are rejected.
    pub additional: Map<String, Value>,
}

/// Result of a finished archive.
#[derive(Debug)]
pub struct FinishedArchive<W> {
    /// The underlying writer, not flushed.
    pub output: W,
    /// Lowercase hexadecimal SHA-256 of `results.json`.
    pub results_sha256: String,
    /// Size of `results.json`, in bytes.
    pub results_bytes: u64,
    /// Size of the archive, in bytes.
    pub archive_bytes: u64,
    /// The manifest, exactly as signed.
    pub manifest_json: String,
}

/// Writes a signed archive. Bytes written to this value with [`Write`] become `results.json`; they are hashed and
/// compressed on the way. [`Self::finish`] adds manifest, signature and public key. The same results, fields and key
/// give the same bytes with one version of the program. An unfinished archive has no directory and isn't readable.
///
/// The results should be canonical JSON (see [`crate::CanonicalStream`]), which isn't checked here.
pub struct ArchiveWriter<W: Write> {
    deflater: DeflateEncoder<CountingWriter<W>>,
    pending: Vec<u8>,
    manifest: ManifestFields,
    sha256: Sha256,
    crc: Crc,
    bytes: u64,
}

impl<W: Write> ArchiveWriter<W> {
    /// Starts an archive on `output`, which doesn't need to be buffered.
    ///
    /// # Errors
    /// Returns [`ArchiveError::ReservedField`], or an error if the writer fails.
    pub fn new(output: W, manifest: ManifestFields) -> Result<Self, ArchiveError> {
        if let Some(name) = RESERVED_FIELDS.iter().find(|name| manifest.additional.contains_key(**name)) {
            return Err(ArchiveError::ReservedField((*name).to_owned()));
        }
        let mut output = CountingWriter { inner: output, bytes: 0 };
        output.write_all(&results_entry(0, 0, 0).local_header())?;
        Ok(Self {
            deflater: DeflateEncoder::new(output, Compression::default()),
            pending: Vec::with_capacity(PIECE_BYTES),
            manifest,
            sha256: Sha256::new(),
            crc: Crc::new(),
            bytes: 0,
        })
    }

    /// Completes the results, signs them with `key` and completes the archive.
    ///
    /// # Errors
    /// Returns [`ArchiveError`] if the manifest has no canonical text, the archive is too large, or the writer fails.
    pub fn finish(mut self, key: &SigningKey) -> Result<FinishedArchive<W>, ArchiveError> {
        self.compress_pending()?;
        let results_sha256 = hex::encode(self.sha256.finalize());
        let manifest_json = manifest_json(self.manifest, &results_sha256, key)?;

        let mut output = self.deflater.finish()?;
        let header_bytes = results_entry(0, 0, 0).local_header().len() as u64;
        let entry = results_entry(self.crc.sum(), to_u32(output.bytes - header_bytes)?, to_u32(self.bytes)?);
        output.write_all(&entry.descriptor())?;

        let mut entries = vec![entry];
        let signature = base64::Engine::encode(
            &base64::engine::general_purpose::STANDARD,
            key.sign(manifest_json.as_bytes()),
        );
        let public_key = key.public_key_base64();
        for (member, content) in [
            (Member::Manifest, &manifest_json),
            (Member::Signature, &signature),
            (Member::PublicKey, &public_key),
        ] {
            entries.push(write_small(&mut output, member, content.as_bytes())?);
        }

        let directory_offset = output.bytes;
        for entry in &entries {
            output.write_all(&entry.central_header())?;
        }
        let directory_bytes = output.bytes - directory_offset;
        output.write_all(&end_record(
            entries.len() as u16,
            to_u32(directory_bytes)?,
            to_u32(directory_offset)?,
        ))?;
        Ok(FinishedArchive {
            archive_bytes: output.bytes,
            output: output.inner,
            results_sha256,
            results_bytes: self.bytes,
            manifest_json,
        })
    }

    fn compress_pending(&mut self) -> io::Result<()> {
        self.deflater.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}

impl<W: Write> Write for ArchiveWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.pending.len() >= PIECE_BYTES {
            self.compress_pending()?;
        }
        let length = buffer.len().min(PIECE_BYTES - self.pending.len());
        let piece = buffer.get(..length).unwrap_or_default();
        if self.bytes + length as u64 > RESULTS_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, ArchiveError::TooLarge));
        }
        self.pending.extend_from_slice(piece);
        self.sha256.update(piece);
        self.crc.update(piece);
        self.bytes += length as u64;
        Ok(length)
    }

    /// Does nothing: with a flush of the compressor, the archive would depend on the times of flushes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> std::fmt::Debug for ArchiveWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveWriter").field("manifest", &self.manifest).field("bytes", &self.bytes).finish()
    }
}

/// Counts the bytes written through it.
struct CountingWriter<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn results_entry(crc: u32, compressed_bytes: u32, bytes: u32) -> MemberRecord {
    MemberRecord {
        name: Member::Results.name(),
        offset: 0,
        flags: FLAG_DESCRIPTOR,
        crc,
        compressed_bytes,
        bytes,
    }
}

/// Writes a member that is small enough to be compressed before its header is written.
fn write_small<W: Write>(
    output: &mut CountingWriter<W>,
    member: Member,
    content: &[u8],
) -> Result<MemberRecord, ArchiveError> {
    let mut deflater = DeflateEncoder::new(Vec::new(), Compression::default());
    deflater.write_all(content)?;
    let compressed = deflater.finish()?;
    let mut crc = Crc::new();
    crc.update(content);
    let entry = MemberRecord {
        name: member.name(),
        offset: to_u32(output.bytes)?,
        flags: 0,
        crc: crc.sum(),
        compressed_bytes: to_u32(compressed.len() as u64)?,
        bytes: to_u32(content.len() as u64)?,
    };
    output.write_all(&entry.local_header())?;
    output.write_all(&compressed)?;
    Ok(entry)
}

/// Converts a size or offset to 32 bits, where the largest value is reserved for ZIP64.
fn to_u32(bytes: u64) -> Result<u32, ArchiveError> {
    u32::try_from(bytes).ok().filter(|&bytes| bytes != u32::MAX).ok_or(ArchiveError::TooLarge)
}

fn manifest_json(
    fields: ManifestFields,
    results_sha256: &str,
    key: &SigningKey,
) -> Result<String, ArchiveError> {
    let mut manifest = fields.additional;
    for (name, value) in [
        ("generated_at", whole_seconds(fields.generated_at)),
        ("public_key_fingerprint", key.fingerprint()),
        ("results_sha256", results_sha256.to_owned()),
        ("run_id", fields.run_id),
        ("schema_version", SCHEMA_VERSION.to_owned()),
        ("signature_algorithm", SIGNATURE_ALGORITHM.to_owned()),
    ] {
        manifest.insert(name.to_owned(), Value::String(value));
    }
    let text = canonical::to_string(&manifest).map_err(ArchiveError::Manifest)?;
    if text.len() as u64 > MANIFEST_BYTES_MAX {
        return Err(ArchiveError::ManifestTooLarge { bytes_max: MANIFEST_BYTES_MAX });
    }
    Ok(text)
}
