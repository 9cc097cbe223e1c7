//! Archives for tests: valid ones made by the crate, and others built byte by byte.

use std::io::Write as _;

use bench_signing::{ArchiveWriter, FinishedArchive, ManifestFields, SigningKey, TrustedKey};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

pub(crate) const RUN_ID: &str = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90";
pub(crate) const RESULTS: &str = concat!(
    r#"{"benchmarks":[{"benchmark_name":"demo","items":[{"prompt":"Gr\u00f6\u00dfe?"}]}],"#,
    r#""exported_at":"2026-01-02T03:10:00Z","run":{"id":"3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90","model_slug":"acme/a","#,
    r#""overall_score":0.5,"subset_count":3,"subset_pct":100,"subset_seed":"s"},"schema_version":"1.0"}"#
);

pub(crate) fn key() -> SigningKey {
    SigningKey::parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap()
}

/// Time of the verification: some weeks after the archives were made.
pub(crate) fn now() -> jiff::Timestamp {
    "2026-02-01T00:00:00Z".parse().unwrap()
}

pub(crate) fn trusted_keys() -> Vec<TrustedKey> {
    vec![TrustedKey::given(key().public_key())]
}

pub(crate) fn manifest_fields() -> ManifestFields {
    ManifestFields {
        run_id: RUN_ID.to_owned(),
        generated_at: "2026-01-02T03:10:00.75Z".parse().unwrap(),
        additional: serde_json::Map::from_iter([("software_version".to_owned(), "0.1.0".into())]),
    }
}

pub(crate) fn write_archive(results: &[u8]) -> FinishedArchive<Vec<u8>> {
    let mut writer = ArchiveWriter::new(Vec::new(), manifest_fields()).unwrap();
    writer.write_all(results).unwrap();
    writer.finish(&key()).unwrap()
}

/// The four members of a valid archive, stored in entries that tests then corrupt.
pub(crate) fn good_entries() -> Vec<RawEntry> {
    signed_entries(RESULTS.as_bytes(), &write_archive(RESULTS.as_bytes()).manifest_json)
}

/// Any results and any manifest, correctly signed.
pub(crate) fn signed_entries(results: &[u8], manifest: &str) -> Vec<RawEntry> {
    let base64 = |bytes: &[u8]| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    vec![
        RawEntry::new("results.json", results),
        RawEntry::new("manifest.json", manifest.as_bytes()),
        RawEntry::new("signature.txt", base64(&key().sign(manifest.as_bytes())).as_bytes()),
        RawEntry::new("public_key.txt", key().public_key_base64().as_bytes()),
    ]
}

/// Fields that both headers of an entry contain.
#[derive(Debug, Clone)]
pub(crate) struct RawHeader {
    pub(crate) name: Vec<u8>,
    pub(crate) flags: u16,
    pub(crate) method: u16,
    pub(crate) crc: u32,
    pub(crate) compressed_bytes: u32,
    pub(crate) bytes: u32,
    pub(crate) extra: Vec<u8>,
    pub(crate) comment: Vec<u8>,
    /// External attributes, which only the directory contains.
    pub(crate) attributes: u32,
}

/// An entry with all its metadata, right or wrong.
#[derive(Debug, Clone)]
pub(crate) struct RawEntry {
    pub(crate) local: RawHeader,
    pub(crate) central: RawHeader,
    pub(crate) data: Vec<u8>,
    pub(crate) descriptor: Vec<u8>,
}

impl RawEntry {
    pub(crate) fn new(name: &str, content: &[u8]) -> Self {
        let mut deflater = DeflateEncoder::new(Vec::new(), Compression::default());
        deflater.write_all(content).unwrap();
        let data = deflater.finish().unwrap();
        Self::with_data(name, 8, content, data)
    }

    pub(crate) fn stored(name: &str, content: &[u8]) -> Self {
        Self::with_data(name, 0, content, content.to_vec())
    }

    fn with_data(name: &str, method: u16, content: &[u8], data: Vec<u8>) -> Self {
        let mut crc = Crc::new();
        crc.update(content);
        let header = RawHeader {
            name: name.into(),
            flags: 0,
            method,
            crc: crc.sum(),
            compressed_bytes: data.len() as u32,
            bytes: content.len() as u32,
            extra: Vec::new(),
            comment: Vec::new(),
            attributes: 0o100_644 << 16,
        };
        Self { local: header.clone(), central: header, data, descriptor: Vec::new() }
    }

    pub(crate) fn change_both(&mut self, change: impl Fn(&mut RawHeader)) {
        change(&mut self.local);
        change(&mut self.central);
    }

    pub(crate) fn with_descriptor(mut self, signature: bool) -> Self {
        self.change_both(|header| header.flags |= 8);
        if signature {
            self.descriptor.extend_from_slice(b"PK\x07\x08");
        }
        for field in [self.central.crc, self.central.compressed_bytes, self.central.bytes] {
            self.descriptor.extend_from_slice(&field.to_le_bytes());
        }
        (self.local.crc, self.local.compressed_bytes, self.local.bytes) = (0, 0, 0);
        self
    }
}

pub(crate) fn build(entries: &[RawEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for RawEntry { local, central, data, descriptor } in entries {
        let offset = out.len() as u32;
        out.extend_from_slice(b"PK\x03\x04\x14\x00");
        out.extend(shared(local));
        out.extend_from_slice(&local.name);
        out.extend_from_slice(&local.extra);
        out.extend_from_slice(data);
        out.extend_from_slice(descriptor);

        directory.extend_from_slice(b"PK\x01\x02\x14\x03\x14\x00");
        directory.extend(shared(central));
        directory.extend_from_slice(&(central.comment.len() as u16).to_le_bytes());
        directory.extend_from_slice(&[0; 4]);
        directory.extend_from_slice(&central.attributes.to_le_bytes());
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(&central.name);
        directory.extend_from_slice(&central.extra);
        directory.extend_from_slice(&central.comment);
    }
    let offset = out.len() as u32;
    out.extend_from_slice(&directory);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    out.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    out.extend_from_slice(&offset.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out
}

fn shared(header: &RawHeader) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&header.flags.to_le_bytes());
    out.extend_from_slice(&header.method.to_le_bytes());
    out.extend_from_slice(&[0, 0, 0x21, 0]);
    for field in [header.crc, header.compressed_bytes, header.bytes] {
        out.extend_from_slice(&field.to_le_bytes());
    }
    out.extend_from_slice(&(header.name.len() as u16).to_le_bytes());
    out.extend_from_slice(&(header.extra.len() as u16).to_le_bytes());
    out
}
