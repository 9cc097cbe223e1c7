//! Ed25519 keys in the formats of the configuration, and the local key ring.

mod document;
mod name;
mod ring;
mod secret;
mod store;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ed25519_dalek::Signer as _;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, KeypairBytes,
};
use jiff::Timestamp;
use rand::TryRng as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use self::document::{KeyDocumentEntry, KeyStatus, KeysDocument};
pub use self::name::{KeyNameError, find_key};
pub use self::ring::{DistrustedKey, KeyRing, PinnedKey, RingConfig, RingKey};
pub use self::secret::{Distrust, RotatedSecret, SecretError, rotate_secret};
pub use self::store::KeyRingError;

/// Length of a public key and of a private key, in bytes.
const KEY_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;

/// Base64 in the standard alphabet with optional padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Problems with the configured keys. Clients of the compatible API show these texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The private key is missing or empty.
    #[error("BENCH_SIGNING_PRIVATE_KEY is not configured")]
    NotConfigured,
    /// Neither PKCS#8 in PEM nor 32 bytes in base64 or hexadecimal.
    #[error("Invalid BENCH_SIGNING_PRIVATE_KEY")]
    InvalidPrivateKey,
    /// Neither `SubjectPublicKeyInfo` in PEM nor 32 bytes in base64, or not a usable point.
    #[error("Invalid BENCH_SIGNING_PUBLIC_KEY")]
    InvalidPublicKey,
    /// The public key is valid but belongs to another private key: all signatures would fail verification.
    #[error("Invalid BENCH_SIGNING_PUBLIC_KEY: it does not belong to BENCH_SIGNING_PRIVATE_KEY")]
    ForeignPublicKey,
    /// An old public key in the configuration can't be parsed.
    #[error("Invalid BENCH_SIGNING_OLD_PUBLIC_KEYS: entry {position} is not KEY or KEY@FROM/UNTIL")]
    InvalidOldKey {
        /// Position in the list, counted from 1.
        position: usize,
    },
    /// The operating system provided no random bytes.
    #[error("cannot create a key: the system provides no random bytes")]
    NoRandomness,
}

/// A public key that has been checked to be a usable point of the curve.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey(ed25519_dalek::VerifyingKey);

impl PublicKey {
    /// Creates a key from 32 raw bytes.
    ///
    /// # Errors
    /// Returns [`KeyError::InvalidPublicKey`] if they aren't a point of the curve, or a point of small order, for which
    /// signatures are trivial to forge.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes: &[u8; KEY_BYTES] = bytes.try_into().map_err(|_| KeyError::InvalidPublicKey)?;
        let key = ed25519_dalek::VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::InvalidPublicKey)?;
        Self::checked(key)
    }

    /// Parses a configured key: PEM (`SubjectPublicKeyInfo`) or 32 raw bytes in base64.
    ///
    /// # Errors
    /// Returns [`KeyError::InvalidPublicKey`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if is_pem(text) {
            let key = ed25519_dalek::VerifyingKey::from_public_key_pem(&pem_lines(text))
                .map_err(|_| KeyError::InvalidPublicKey)?;
            return Self::checked(key);
        }
        Self::from_bytes(&BASE64.decode(text).map_err(|_| KeyError::InvalidPublicKey)?)
    }

    fn checked(key: ed25519_dalek::VerifyingKey) -> Result<Self, KeyError> {
        if key.is_weak() { Err(KeyError::InvalidPublicKey) } else { Ok(Self(key)) }
    }

    /// Returns the 32 raw bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; KEY_BYTES] {
        self.0.to_bytes()
    }

    /// Returns the raw bytes in standard base64, with padding.
    #[must_use]
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0.as_bytes())
    }

    /// Returns the lowercase hexadecimal SHA-256 of the raw bytes.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex::encode(Sha256::digest(self.0.as_bytes()))
    }

    /// Returns true if `signature` is this key's signature of `message`; false for anything but 64 bytes.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let Ok(signature) = <&[u8; SIGNATURE_BYTES]>::try_from(signature) else { return false };
        let signature = ed25519_dalek::Signature::from_bytes(signature);
        self.0.verify_strict(message, &signature).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.to_base64())
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_base64()
    }
}

impl TryFrom<String> for PublicKey {
    type Error = &'static str;
    /// Used for stored documents, whose errors shouldn't mention environment variables.
    fn try_from(text: String) -> Result<Self, &'static str> {
        Self::parse(&text).map_err(|_| "not an Ed25519 public key")
    }
}

/// A private key. It is wiped from memory when dropped, and its `Debug` form doesn't contain it.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Creates a new key from the operating system's random bytes.
    ///
    /// # Errors
    /// Returns [`KeyError::NoRandomness`].
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = [0; KEY_BYTES];
        rand::rngs::SysRng.try_fill_bytes(&mut seed).map_err(|_| KeyError::NoRandomness)?;
        Ok(Self(ed25519_dalek::SigningKey::from_bytes(&seed)))
    }

    /// Parses a configured key: PEM (PKCS#8, recognized by a leading `-----BEGIN`), 32 raw bytes in base64, or their 64
    /// hexadecimal digits, which stores of secrets can generate.
    ///
    /// # Errors
    /// Returns [`KeyError::NotConfigured`] for an empty text, otherwise [`KeyError::InvalidPrivateKey`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(KeyError::NotConfigured);
        }
        if is_pem(text) {
            return ed25519_dalek::SigningKey::from_pkcs8_pem(&pem_lines(text))
                .map(Self)
                .map_err(|_| KeyError::InvalidPrivateKey);
        }
        // The two forms can't be confused: base64 of 32 bytes has 43 or 44 characters.
        let bytes = if text.len() == 2 * KEY_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            hex::decode(text).map_err(|_| KeyError::InvalidPrivateKey)?
        } else {
            BASE64.decode(text).map_err(|_| KeyError::InvalidPrivateKey)?
        };
        let seed = bytes.as_slice().try_into().map_err(|_| KeyError::InvalidPrivateKey)?;
        Ok(Self(ed25519_dalek::SigningKey::from_bytes(seed)))
    }

    /// Parses a configured key pair. A missing or empty public key is derived; otherwise it must belong to the private
    /// key.
    ///
    /// # Errors
    /// Returns [`KeyError`] for the first problem.
    pub fn from_config(private_key: Option<&str>, public_key: Option<&str>) -> Result<Self, KeyError> {
        let key = Self::parse(private_key.unwrap_or_default())?;
        match public_key.map(str::trim).filter(|text| !text.is_empty()) {
            Some(text) if PublicKey::parse(text)? != key.public_key() => Err(KeyError::ForeignPublicKey),
            _ => Ok(key),
        }
    }

    /// Returns the public key.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Returns the raw public key in standard base64.
    #[must_use]
    pub fn public_key_base64(&self) -> String {
        self.public_key().to_base64()
    }

    /// Returns the [`PublicKey::fingerprint`] of the public key.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.public_key().fingerprint()
    }

    /// Signs the exact bytes of `message`.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.0.sign(message).to_bytes()
    }

    /// Returns PKCS#8 in PEM without the public key, a form that every reader supports.
    fn to_pem(&self) -> Result<impl std::ops::Deref<Target = String> + use<>, KeyError> {
        KeypairBytes { secret_key: self.0.to_bytes(), public_key: None }
            .to_pkcs8_pem(Default::default())
            .map_err(|_| KeyError::InvalidPrivateKey)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey(of {})", self.public_key_base64())
    }
}

/// Role of a key in verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyRole {
    /// Signs new archives of this installation.
    Current,
    /// Signed archives of this installation earlier.
    Retired,
    /// Belongs to someone else; the user trusts it.
    Pinned,
    /// Passed for this one verification, such as with `--public-key`.
    Given,
    /// Signed archives of this installation, but someone else may have it: verification rejects its signatures.
    Distrusted,
}

/// A key that verification knows. Its signatures are accepted within its validity, unless the key is
/// [distrusted](KeyRole::Distrusted).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    /// The key.
    pub public_key: PublicKey,
    /// Role of the key.
    pub role: KeyRole,
    /// The user's label of a pinned key.
    pub label: Option<String>,
    /// Time at which it began to sign, if known: an archive with an earlier date isn't valid.
    pub valid_from: Option<Timestamp>,
    /// Time at which it stopped signing, if it did and the time is known: an archive with a later date isn't valid.
    pub valid_until: Option<Timestamp>,
}

impl TrustedKey {
    /// Creates a key for one verification, without further information.
    #[must_use]
    pub fn given(public_key: PublicKey) -> Self {
        Self { public_key, role: KeyRole::Given, label: None, valid_from: None, valid_until: None }
    }
}

fn is_pem(text: &str) -> bool {
    text.starts_with("-----BEGIN")
}

/// Restores line ends, which environment files often write as the two characters `\n`.
fn pem_lines(text: &str) -> String {
    text.replace("\\n", "\n")
}

#[cfg(test)]
mod tests;
