//! Keyed hashes that identify the holders of keys.

use std::fmt;

use bench_domain::Secret;
use ring::hmac;

use super::KEY_BYTES;
use crate::StateError;

/// Minimum length in bytes of a text that an [`OwnerKey`] is made from.
pub const OWNER_TEXT_BYTES_MIN: usize = 32;
const PURPOSE: &[u8] = b"bench-runner owners v1";

/// Computes the keyed hash that identifies the holder of a key. It can't decrypt anything: with it, one can only check
/// whether a known key created a run.
pub struct OwnerKey(hmac::Key);

impl fmt::Debug for OwnerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerKey(***)")
    }
}

impl OwnerKey {
    /// Derives the owner key of an installation from its master key, so that hashes of callers' keys reveal nothing
    /// about the master key.
    pub fn from_master_key(master: &[u8; KEY_BYTES]) -> Self {
        Self::derived(master)
    }

    /// Derives the owner key from a secret text.
    ///
    /// # Errors
    /// [`StateError::Secret`] for texts of fewer than [`OWNER_TEXT_BYTES_MIN`] bytes, which could be guessed.
    pub fn from_text(text: &str) -> Result<Self, StateError> {
        let text = text.trim();
        if text.len() < OWNER_TEXT_BYTES_MIN {
            let problem = format!("the owners' key has fewer than {OWNER_TEXT_BYTES_MIN} characters");
            return Err(StateError::Secret { verb: "hashed", problem });
        }
        Ok(Self::derived(text.as_bytes()))
    }

    fn derived(secret: &[u8]) -> Self {
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), PURPOSE);
        Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }

    /// Returns the keyed hash of a caller's key: 32 hex digits.
    pub fn owner_of(&self, key: &Secret) -> String {
        let tag = hmac::sign(&self.0, key.expose().as_bytes());
        tag.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_known_by_a_keyed_hash() {
        let (one, other) =
            (OwnerKey::from_master_key(&[1; KEY_BYTES]), OwnerKey::from_master_key(&[2; KEY_BYTES]));
        let key = Secret::new("sk-secret").unwrap();
        assert_eq!(one.owner_of(&key), one.owner_of(&key));
        assert_ne!(one.owner_of(&key), other.owner_of(&key));
        assert_eq!(one.owner_of(&key).len(), 32);
    }

    /// Owners of stored runs must stay the same: HMAC-SHA256 under the key that is the HMAC-SHA256 of the purpose.
    #[test]
    fn a_key_has_the_same_owner_in_every_version() {
        let owner = OwnerKey::from_master_key(&[7; KEY_BYTES]).owner_of(&Secret::new("sk-secret").unwrap());
        assert_eq!(owner, "b7ffbc29d46a198903f71a69509e5345");
    }

    #[test]
    fn a_text_is_long_enough_or_refused() {
        let text = "0123456789abcdef0123456789abcdef";
        let (one, padded) =
            (OwnerKey::from_text(text).unwrap(), OwnerKey::from_text(&format!(" {text}\n")).unwrap());
        let key = Secret::new("sk-secret").unwrap();
        assert_eq!(one.owner_of(&key), padded.owner_of(&key));
        let short = OwnerKey::from_text(&text[1..]).unwrap_err().to_string();
        assert!(short.contains("32") && !short.contains(&text[1..]), "{short}");
    }
}
