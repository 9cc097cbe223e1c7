//! Callers' data keys under a KMS key, which replaces the master key file of a single machine.

use aws_sdk_kms::Client;
use aws_sdk_kms::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_kms::operation::decrypt::DecryptError;
use aws_sdk_kms::primitives::Blob;
use aws_types::SdkConfig;
use bench_state::StateError;
use bench_state::credentials::{KEY_BYTES, KeyWrapper, WrapFuture};

/// Name in the encryption context of the purpose of a data key: the id of a run or a schedule.
pub const CONTEXT_NAME: &str = "bench:for";

/// Wraps data keys with a KMS key.
///
/// KMS authenticates the context and logs it, so a data key opens only for its purpose, and every use is visible.
#[derive(Debug, Clone)]
pub struct KmsKey {
    client: Client,
    key_id: String,
}

impl KmsKey {
    /// Uses the key with this id or ARN.
    pub fn new(config: &SdkConfig, key_id: impl Into<String>) -> Self {
        Self { client: Client::new(config), key_id: key_id.into() }
    }
}

impl KeyWrapper for KmsKey {
    fn wrap<'a>(&'a self, data_key: &'a [u8; KEY_BYTES], context: &'a str) -> WrapFuture<'a> {
        Box::pin(async move {
            let encrypt =
                self.client.encrypt().key_id(&self.key_id).plaintext(Blob::new(data_key.as_slice()));
            let encrypted = encrypt.encryption_context(CONTEXT_NAME, context).send().await;
            let encrypted = encrypted.map_err(|error| StateError::Service {
                verb: "encrypt a caller's key (kms:Encrypt)",
                problem: service_error_text(error),
            })?;
            encrypted.ciphertext_blob.map(Blob::into_inner).ok_or_else(|| StateError::Secret {
                verb: "sealed",
                problem: "KMS returned no data".to_owned(),
            })
        })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a [u8], context: &'a str) -> WrapFuture<'a> {
        Box::pin(async move {
            let decrypt = self.client.decrypt().key_id(&self.key_id).ciphertext_blob(Blob::new(wrapped));
            let decrypted = decrypt.encryption_context(CONTEXT_NAME, context).send().await;
            let decrypted = decrypted.map_err(|error| {
                // These errors are permanent. All others may be transient.
                let is_final = matches!(
                    error.as_service_error(),
                    Some(
                        DecryptError::InvalidCiphertextException(_) | DecryptError::IncorrectKeyException(_)
                    )
                );
                if is_final {
                    let problem = format!(
                        "it was sealed for another run, with another key, or is damaged ({})",
                        service_error_text(error)
                    );
                    StateError::Secret { verb: "opened", problem }
                } else {
                    StateError::Service {
                        verb: "decrypt a caller's key (kms:Decrypt)",
                        problem: service_error_text(error),
                    }
                }
            })?;
            decrypted.plaintext.map(Blob::into_inner).ok_or_else(|| StateError::Secret {
                verb: "opened",
                problem: "KMS returned no data".to_owned(),
            })
        })
    }
}

/// Extracts code and message from a service's error.
fn service_error_text<E>(error: SdkError<E>) -> String
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
{
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => DisplayErrorContext(error).to_string(),
    }
}
