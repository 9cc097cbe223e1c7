//! Keys and verifications as JSON.

use bench_signing::{KeyDocumentEntry, KeyStatus, KeysDocument, RingKey, SIGNATURE_ALGORITHM, Verification};
use serde::Serialize;
use utoipa::ToSchema;

/// The key that signs now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PublicKeyView {
    /// Always `ed25519`.
    pub algorithm: &'static str,
    /// Standard base64 of the 32 raw bytes.
    pub public_key: String,
    /// Lowercase hexadecimal SHA-256 of the raw bytes.
    pub public_key_fingerprint: String,
}

impl From<&RingKey> for PublicKeyView {
    fn from(key: &RingKey) -> Self {
        Self {
            algorithm: SIGNATURE_ALGORITHM,
            public_key: key.public_key.to_base64(),
            public_key_fingerprint: key.public_key.fingerprint(),
        }
    }
}

/// All keys that this installation signs or signed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct KeysView {
    /// The current key first, then retired ones, the latest first.
    pub keys: Vec<KeyView>,
}

/// One key of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct KeyView {
    /// The fingerprint: lowercase hexadecimal SHA-256 of the raw public key.
    pub key_id: String,
    /// Always `ed25519`.
    pub algorithm: String,
    /// Standard base64 of the 32 raw bytes.
    pub public_key: String,
    /// When it began to sign; null when unknown.
    #[schema(format = DateTime)]
    pub valid_from: Option<String>,
    /// When it stopped to sign; null while it signs, or when unknown.
    #[schema(format = DateTime)]
    pub valid_until: Option<String>,
    /// `current` or `retired`.
    #[schema(value_type = String)]
    pub status: KeyStatus,
}

impl From<KeysDocument> for KeysView {
    fn from(document: KeysDocument) -> Self {
        let view = |key: KeyDocumentEntry| {
            let KeyDocumentEntry { key_id, algorithm, public_key, valid_from, valid_until, status } = key;
            KeyView { key_id, algorithm, public_key: public_key.to_base64(), valid_from, valid_until, status }
        };
        Self { keys: document.keys.into_iter().map(view).collect() }
    }
}

/// What an archive proves.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct VerificationView {
    /// Everything is in order: signature, hash, and no entry in `errors`.
    pub valid: bool,
    /// A trusted key signed the manifest, and the manifest names that key.
    pub signature_valid: bool,
    /// The manifest names the hash of the results.
    pub hash_match: bool,
    /// What is wrong, one sentence each; empty if and only if `valid`.
    pub errors: Vec<String>,
    /// From the results, like the next six; null unless signature and hash are good.
    pub run_id: Option<String>,
    /// The model's name at the provider.
    pub model_slug: Option<String>,
    /// Share of the items in percent.
    pub subset_pct: Option<i64>,
    /// Number of items; wins over the share.
    pub subset_count: Option<i64>,
    /// What the choice of items depends on.
    pub subset_seed: Option<String>,
    /// Unweighted mean of the benchmarks' scores.
    pub overall_score: Option<f64>,
    /// When this version of the export was completed.
    pub exported_at: Option<String>,
    /// Benchmarks in the results.
    pub benchmark_count: Option<u64>,
    /// The fingerprint that the manifest claims. It proves nothing unless `signature_valid`.
    pub public_key_fingerprint: Option<String>,
}

impl From<Verification> for VerificationView {
    fn from(verification: Verification) -> Self {
        Self {
            valid: verification.valid,
            signature_valid: verification.signature_valid,
            hash_match: verification.hash_match,
            errors: verification.errors,
            run_id: verification.run_id,
            model_slug: verification.model_slug,
            subset_pct: verification.subset_pct,
            subset_count: verification.subset_count,
            subset_seed: verification.subset_seed,
            overall_score: verification.overall_score,
            exported_at: verification.exported_at,
            benchmark_count: verification.benchmark_count,
            public_key_fingerprint: verification.public_key_fingerprint,
        }
    }
}

/// A form with an archive.
#[derive(Debug, ToSchema)]
#[allow(dead_code)] // a description; the form is read as it comes
pub(crate) struct UploadForm {
    /// The signed archive.
    #[schema(value_type = String, format = Binary)]
    pub(crate) file: Vec<u8>,
}

/// An archive that was uploaded before.
#[derive(Debug, ToSchema)]
#[allow(dead_code)] // a description; the body is read field by field
pub(crate) struct UploadedArchive {
    /// The id that `POST /api/uploads` gave.
    pub(crate) upload_id: String,
}
