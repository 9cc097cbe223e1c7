//! Ed25519, canonical JSON and the signed ZIP.
//!
//! - [`canonical`]: the one text of a JSON value that hashes and signatures are made of.
//! - [`SigningKey`], [`PublicKey`]: keys as the environment names them; [`KeyRing`]: keys of this installation, now
//!   and before, and foreign keys that the user trusts.
//! - [`ArchiveWriter`]: a signed archive in one pass over results of any size.
//! - [`verify`]: what an archive proves, against keys that the verifier already has.
//!
//! What is signed is `manifest.json`; it names the SHA-256 of `results.json`. The key inside an archive is a hint
//! for people and never trusted. There is no clock and no environment in here: times and texts are handed in.

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
    SigningKey, TrustedKey, key_named, rotate_secret,
};
pub use limits::{Limits, MANIFEST_BYTES_MAX};
pub use reason::Reason;
pub use time::whole_seconds;
pub use verify::{Verification, signer_within, unverified_manifest, verify, verify_bytes, verify_configured};

/// The version of the form of results and manifest, in both documents.
pub const SCHEMA_VERSION: &str = "1.0";

/// The only algorithm for signatures, as manifests and key lists name it.
pub const SIGNATURE_ALGORITHM: &str = "ed25519";
