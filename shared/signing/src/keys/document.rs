//! The public list of keys, as `/.well-known/bench-runner-keys.json` answers it.

use serde::{Deserialize, Serialize};

use super::PublicKey;

/// All keys that this installation signed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysDocument {
    /// The current key first, then retired ones, the latest first.
    pub keys: Vec<KeyDocumentEntry>,
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
