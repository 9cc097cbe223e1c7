//! Ed25519 keys, canonical JSON and signed ZIP archives.
//!
//! - [`canonical`]: the canonical text of a JSON value, which hashes and signatures are computed from.
//! - [`SigningKey`], [`PublicKey`]: keys in the formats of the configuration. [`KeyRing`]: the current and earlier keys
//!   of this installation, and foreign keys that the user trusts.
//! - [`ArchiveWriter`]: writes a signed archive in one pass over results of any size.
//! - [`verify`]: checks an archive against keys that the verifier already has.
//!
//! The signature covers `manifest.json`, which contains the SHA-256 of `results.json`. The key in an archive is a hint
//! for people and never trusted. This crate reads neither the clock nor the environment: callers pass times and texts.

mod archive;
pub mod canonical;
mod keys;
mod limits;
mod reason;
mod time;
mod verify;

pub use archive::{ArchiveError, ArchiveWriter, FinishedArchive, ManifestFields, RESULTS_BYTES_MAX};
pub use canonical::{CanonicalError, CanonicalStream};
pub use keys::{
    Distrust, DistrustedKey, KeyDocumentEntry, KeyError, KeyNameError, KeyRing, KeyRingError, KeyRole,
    KeyStatus, KeysDocument, PinnedKey, PublicKey, RingConfig, RingKey, RotatedSecret, SecretError,
    SigningKey, TrustedKey, find_key, rotate_secret,
};
pub use limits::{Limits, MANIFEST_BYTES_MAX};
pub use reason::Reason;
pub use time::whole_seconds;
pub use verify::{
    FINGERPRINT_MISMATCH, Verification, embedded_signer, unverified_manifest, verify, verify_bytes,
    verify_configured,
};

/// Version of the structure of results and manifest, in both documents.
pub const SCHEMA_VERSION: &str = "1.0";

/// The only signature algorithm, as named in manifests and key lists.
pub const SIGNATURE_ALGORITHM: &str = "ed25519";
