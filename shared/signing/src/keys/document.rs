//! The public list of keys, as `/.well-known/bench-runner-keys.json` answers it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{KeyRole, PublicKey, TrustedKey};
use crate::time::after_rollout;

/// All keys that this installation signed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysDocument {
    /// The current key first, then retired ones, the latest first.
    pub keys: Vec<KeyDocumentEntry>,
}

impl KeysDocument {
    /// The keys of the list as keys to verify with, each within its validity. A time that can't be read is unknown.
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

/// One key of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDocumentEntry {
    /// The fingerprint: lowercase hexadecimal SHA-256 of the raw public key.
    pub key_id: String,
    /// Always `ed25519`.
    pub algorithm: String,
    /// Standard base64 of the 32 raw bytes.
    pub public_key: PublicKey,
    /// When it began to sign, RFC 3339 in UTC; null when unknown.
    pub valid_from: Option<String>,
    /// When it stopped to sign; null while it signs, or when unknown.
    pub valid_until: Option<String>,
    /// Whether it signs now.
    pub status: KeyStatus,
}

/// Whether a key signs now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyStatus {
    /// It signs.
    Current,
    /// It signed; what it signed still verifies.
    Retired,
}
