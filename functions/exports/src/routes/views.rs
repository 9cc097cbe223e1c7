//! Keys and verifications as JSON.

use bench_signing::{KeyDocumentEntry, KeyStatus, KeysDocument, RingKey, SIGNATURE_ALGORITHM, Verification};
use serde::Serialize;
use utoipa::ToSchema;

/// The current signing key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PublicKeyView {
    /// Always `ed25519`.
    pub algorithm: &'static str,
    /// Raw public key of 32 bytes, in standard base64.
    pub public_key: String,
    /// SHA-256 of the raw public key, in lowercase hexadecimal digits.
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

/// All signing keys of this installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct KeysView {
    /// The current key, then retired ones, latest first.
    pub keys: Vec<KeyView>,
}

/// A signing key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct KeyView {
    /// Fingerprint: SHA-256 of the raw public key, in lowercase hexadecimal digits.
    pub key_id: String,
    /// Always `ed25519`.
    pub algorithm: String,
    /// Raw public key of 32 bytes, in standard base64.
    pub public_key: String,
    /// Time from which it signs; null if it isn't known.
    #[schema(format = DateTime)]
    pub valid_from: Option<String>,
    /// Time until which it signed; null while it is current, and if it isn't known.
    #[schema(format = DateTime)]
    pub valid_until: Option<String>,
    /// Status: `current` or `retired`.
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

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct VerificationView {
    /// True if signature and hash are valid and `errors` is empty.
    pub valid: bool,
    /// True if a trusted key signed the manifest, and the manifest names that key.
    pub signature_valid: bool,
    /// True if the manifest has the hash of the results.
    pub hash_match: bool,
    /// Problems, one sentence each; empty if and only if `valid`.
    pub errors: Vec<String>,
    /// Id of the run, from the results; null unless signature and hash are valid, like the next six fields.
    pub run_id: Option<String>,
    /// Name of the model at its provider.
    pub model_slug: Option<String>,
    /// Share of the items, in percent.
    pub subset_pct: Option<i64>,
    /// Number of items; takes precedence over `subset_pct`.
    pub subset_count: Option<i64>,
    /// Seed that selects the items.
    pub subset_seed: Option<String>,
    /// Unweighted mean of the benchmarks' scores.
    pub overall_score: Option<f64>,
    /// Time at which this version of the export was completed.
    pub exported_at: Option<String>,
    /// Number of benchmarks in the results.
    pub benchmark_count: Option<u64>,
    /// Fingerprint that the manifest claims. It proves nothing unless `signature_valid`.
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

/// Form with an archive.
#[derive(Debug, ToSchema)]
#[allow(dead_code)] // a description; the form is read as it comes
pub(crate) struct UploadForm {
    /// Signed archive.
    #[schema(value_type = String, format = Binary)]
    pub(crate) file: Vec<u8>,
}

/// Archive that was uploaded before.
#[derive(Debug, ToSchema)]
#[allow(dead_code)] // a description; the body is read field by field
pub(crate) struct UploadedArchive {
    /// Id from `POST /api/uploads`.
    pub(crate) upload_id: String,
}
