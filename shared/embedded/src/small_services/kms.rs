//! KMS: encryption with one key and an encryption context.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use serde::Deserialize;
use serde_json::json;

use super::{error, read};
use crate::service_response::ServiceResponse;
use crate::{ACCOUNT_ID, REGION};

/// Id of the key that every data directory has.
pub const KMS_KEY_ID: &str = "bench-runner";
/// Maximum plaintext size of KMS, in bytes.
const PLAINTEXT_BYTES_MAX: usize = 4_096;
/// Maximum ciphertext size of KMS, in bytes.
const CIPHERTEXT_BYTES_MAX: usize = 6_144;

#[derive(Debug)]
pub(super) struct Kms {
    key: Option<LessSafeKey>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Encrypt {
    key_id: String,
    plaintext: String,
    #[serde(default)]
    encryption_context: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Decrypt {
    key_id: Option<String>,
    ciphertext_blob: String,
    #[serde(default)]
    encryption_context: BTreeMap<String, String>,
}

/// Returns the key id from the forms that callers may use: id, ARN or alias.
pub(super) fn id_of(text: &str) -> &str {
    let text = text.rsplit(':').next().unwrap_or(text);
    text.strip_prefix("key/").or_else(|| text.strip_prefix("alias/")).unwrap_or(text)
}

fn arn() -> String {
    format!("arn:aws:kms:{REGION}:{ACCOUNT_ID}:key/{KMS_KEY_ID}")
}

impl Kms {
    pub(super) fn new(material: &[u8]) -> Self {
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, material), b"embedded kms key v1");
        let key = UnboundKey::new(&AES_256_GCM, derived.as_ref()).ok().map(LessSafeKey::new);
        Self { key }
    }

    fn key(&self) -> Result<&LessSafeKey, ServiceResponse> {
        self.key.as_ref().ok_or_else(|| error("KMSInternalException", "The key could not be made."))
    }

    pub(super) fn encrypt(&self, body: &Bytes) -> Result<ServiceResponse, ServiceResponse> {
        let request: Encrypt = read(body)?;
        check_key(&request.key_id)?;
        let mut sealed = decode("plaintext", &request.plaintext, PLAINTEXT_BYTES_MAX)?;
        let nonce: [u8; NONCE_LEN] = rand::random();
        let sealing = Nonce::assume_unique_for_key(nonce);
        self.key()?
            .seal_in_place_append_tag(sealing, aad(&request.encryption_context), &mut sealed)
            .map_err(|_| error("KMSInternalException", "Encryption failed."))?;
        Ok(super::json(&json!({
            "CiphertextBlob": STANDARD.encode([&nonce[..], &sealed].concat()),
            "KeyId": arn(),
            "EncryptionAlgorithm": "SYMMETRIC_DEFAULT",
        })))
    }

    pub(super) fn decrypt(&self, body: &Bytes) -> Result<ServiceResponse, ServiceResponse> {
        let request: Decrypt = read(body)?;
        if let Some(key_id) = &request.key_id {
            check_key(key_id)?;
        }
        // As on AWS, the error doesn't say whether context, key or bytes are wrong.
        let invalid = || ServiceResponse::json_error(400, "InvalidCiphertextException", "");
        let sealed = decode("ciphertextBlob", &request.ciphertext_blob, CIPHERTEXT_BYTES_MAX)?;
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN).ok_or_else(invalid)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| invalid())?;
        let mut buffer = sealed.to_vec();
        let clear = self.key()?.open_in_place(nonce, aad(&request.encryption_context), &mut buffer);
        let clear = clear.map_err(|_| invalid())?;
        Ok(super::json(&json!({
            "Plaintext": STANDARD.encode(clear),
            "KeyId": arn(),
            "EncryptionAlgorithm": "SYMMETRIC_DEFAULT",
        })))
    }
}

fn check_key(key_id: &str) -> Result<(), ServiceResponse> {
    let is_ours = !key_id.starts_with("arn:") || key_id == arn();
    if is_ours && id_of(key_id) == KMS_KEY_ID {
        return Ok(());
    }
    let arn_or_name =
        if key_id.starts_with("arn:") { key_id.to_owned() } else { arn().replace(KMS_KEY_ID, key_id) };
    Err(error("NotFoundException", &format!("Key '{arn_or_name}' does not exist")))
}

fn decode(name: &str, text: &str, bytes_max: usize) -> Result<Vec<u8>, ServiceResponse> {
    let bytes =
        STANDARD.decode(text).map_err(|problem| error("SerializationException", &problem.to_string()))?;
    if (1..=bytes_max).contains(&bytes.len()) {
        return Ok(bytes);
    }
    let message = format!("1 validation error detected: '{name}' must have from 1 to {bytes_max} bytes");
    Err(error("ValidationException", &message))
}

/// Encodes the context as bytes: sorted and with lengths, so that different contexts have different
/// bytes.
fn aad(context: &BTreeMap<String, String>) -> Aad<Vec<u8>> {
    let mut bytes = Vec::new();
    for text in context.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    Aad::from(bytes)
}
