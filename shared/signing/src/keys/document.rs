//! The public list of keys, served as `/.well-known/bench-runner-keys.json`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{KeyRole, PublicKey, TrustedKey};
use crate::time::after_rollout;

/// All keys that this installation has signed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysDocument {
    /// The current key, then retired keys, latest first.
    pub keys: Vec<KeyDocumentEntry>,
}

impl KeysDocument {
    /// Converts the list to keys for verification, each with its validity. A time that can't be parsed counts as
    /// unknown.
    #[must_use]
    pub fn trusted_keys(&self) -> Vec<TrustedKey> {
        let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
        let trusted = |entry: &KeyDocumentEntry| TrustedKey {
            public_key: entry.public_key,
            role: KeyRole::Given,
            label: None,
            valid_from: time(&entry.valid_from),
            valid_until: time(&entry.valid_until).map(after_rollout),
        };
        self.keys.iter().map(trusted).collect()
    }
}

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDocumentEntry {
    /// Fingerprint: lowercase hexadecimal SHA-256 of the raw public key.
    pub key_id: String,
    /// Always `ed25519`.
    pub algorithm: String,
    /// Standard base64 of the 32 raw bytes.
    pub public_key: PublicKey,
    /// Time at which it began to sign, RFC 3339 in UTC; null if unknown.
    pub valid_from: Option<String>,
    /// Time at which it stopped signing, RFC 3339 in UTC; null while it signs, or if unknown.
    pub valid_until: Option<String>,
    /// Current or retired.
    pub status: KeyStatus,
}

/// Status of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyStatus {
    /// The key signs new archives.
    Current,
    /// The key signed earlier archives, which still verify.
    Retired,
}
