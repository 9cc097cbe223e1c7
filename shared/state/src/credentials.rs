//! Callers' keys, encrypted in a separate table and deleted when the run is over. A schedule's own key is kept until
//! the schedule is deleted.
//!
//! A key is sealed with AES-256-GCM under its own data key, with the id of the run or schedule as associated data. A
//! [`KeyWrapper`] wraps the data key: a local key file, or KMS if available. A stored key can be opened only for the
//! run that it was stored for. Each model that a run asks has a slot of its own.

mod grants;
mod owners;
mod roles;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, Delete, KeySchemaElement, KeyType, Put, ScalarAttributeType,
    TransactWriteItem,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bench_domain::{RunId, ScheduleId, Secret};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use crate::StateError;
use crate::attributes::{Reader, Record, number, text};
use crate::client::condition_held;

pub use grants::Grant;
pub use owners::{OWNER_TEXT_BYTES_MIN, OwnerKey};

/// Length of a data key and of a master key in bytes.
pub const KEY_BYTES: usize = 32;

/// Future result of a [`KeyWrapper`].
pub type WrapFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, StateError>> + Send + 'a>>;

/// Wraps and unwraps data keys: the outer half of envelope encryption.
pub trait KeyWrapper: Send + Sync + fmt::Debug {
    /// Encrypts a data key for `context`.
    fn wrap<'a>(&'a self, data_key: &'a [u8; KEY_BYTES], context: &'a str) -> WrapFuture<'a>;

    /// Decrypts a result of [`KeyWrapper::wrap`] for the same context.
    fn unwrap<'a>(&'a self, wrapped: &'a [u8], context: &'a str) -> WrapFuture<'a>;
}

/// Master key in memory, read from a file or a variable.
pub struct LocalKey {
    key: LessSafeKey,
}

impl fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKey(***)")
    }
}

impl LocalKey {
    /// Creates a wrapper with this master key.
    pub fn new(master: &[u8; KEY_BYTES]) -> Result<Self, StateError> {
        Ok(Self { key: aead_key(master)? })
    }

    /// Generates random bytes for a new master key.
    pub fn generate() -> Result<[u8; KEY_BYTES], StateError> {
        random()
    }
}

impl KeyWrapper for LocalKey {
    fn wrap<'a>(&'a self, data_key: &'a [u8; KEY_BYTES], context: &'a str) -> WrapFuture<'a> {
        Box::pin(async move { seal(&self.key, data_key, context) })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a [u8], context: &'a str) -> WrapFuture<'a> {
        Box::pin(async move { open(&self.key, wrapped, context) })
    }
}

/// Wrapper for processes that only remove callers' keys: every call fails.
#[derive(Debug, Clone, Copy)]
pub struct DeleteOnlyWrapper;

impl KeyWrapper for DeleteOnlyWrapper {
    fn wrap<'a>(&'a self, _: &'a [u8; KEY_BYTES], _: &'a str) -> WrapFuture<'a> {
        Box::pin(async { Err(secret("sealed", "this function has no key to protect it with")) })
    }

    fn unwrap<'a>(&'a self, _: &'a [u8], _: &'a str) -> WrapFuture<'a> {
        Box::pin(async { Err(secret("opened", "this function has no key that opens it")) })
    }
}

/// One or more related keys of a caller, encrypted and not yet stored.
#[derive(Debug, Clone)]
pub struct SealedKey(pub(crate) Vec<TransactWriteItem>);

/// Removal of a schedule's own keys that hasn't been carried out yet.
#[derive(Debug, Clone)]
pub struct RemovedKey(pub(crate) Vec<TransactWriteItem>);

/// Table of callers' keys.
#[derive(Debug, Clone)]
pub struct Credentials {
    client: Client,
    table: String,
    wrapper: Arc<dyn KeyWrapper>,
}

impl Credentials {
    /// Creates a client of `table`.
    pub fn new(
        config: &aws_types::SdkConfig,
        table: impl Into<String>,
        wrapper: Arc<dyn KeyWrapper>,
    ) -> Self {
        Self { client: Client::new(config), table: table.into(), wrapper }
    }

    /// Creates the table if it doesn't exist. For the embedded stack.
    pub async fn ensure_table(&self) -> Result<(), StateError> {
        if self.client.describe_table().table_name(&self.table).send().await.is_ok() {
            return Ok(());
        }
        let damaged = |error| StateError::damaged("credentials table", error);
        let key = KeySchemaElement::builder()
            .attribute_name("pk")
            .key_type(KeyType::Hash)
            .build()
            .map_err(damaged)?;
        let attribute =
            AttributeDefinition::builder().attribute_name("pk").attribute_type(ScalarAttributeType::S);
        let created = self
            .client
            .create_table()
            .table_name(&self.table)
            .billing_mode(BillingMode::PayPerRequest)
            .key_schema(key)
            .attribute_definitions(attribute.build().map_err(damaged)?)
            .send()
            .await;
        match created {
            Ok(_) => Ok(()),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_in_use_exception()) => {
                Ok(())
            }
            Err(error) => Err(StateError::sdk("create the credentials table", error)),
        }
    }

    async fn seal_record(
        &self,
        record: Record,
        context: &str,
        api_key: &Secret,
    ) -> Result<SealedKey, StateError> {
        let record = self.sealed(record, context, api_key).await?;
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(record))
            .build()
            .map_err(|error| StateError::damaged(format!("credentials of {context}"), error))?;
        Ok(SealedKey(vec![TransactWriteItem::builder().put(put).build()]))
    }

    /// Adds a sealed secret to a record.
    async fn sealed(
        &self,
        mut record: Record,
        context: &str,
        api_key: &Secret,
    ) -> Result<Record, StateError> {
        let data_key = random()?;
        let wrapped = self.wrapper.wrap(&data_key, context).await?;
        let sealed = seal(&aead_key(&data_key)?, api_key.expose().as_bytes(), context)?;
        record.insert("data_key".to_owned(), text(STANDARD.encode(wrapped)));
        record.insert("sealed".to_owned(), text(STANDARD.encode(sealed)));
        Ok(record)
    }

    /// Removes a schedule's own keys, with or without the schedule itself. Does nothing if it has none.
    pub fn removal_for_schedule(&self, schedule: ScheduleId) -> Result<RemovedKey, StateError> {
        let deletes = roles::schedule_keys(schedule).into_iter().map(|slot| {
            let delete = Delete::builder().table_name(&self.table).set_key(Some(slot)).build();
            let delete =
                delete.map_err(|error| StateError::damaged(format!("credentials of {schedule}"), error))?;
            Ok(TransactWriteItem::builder().delete(delete).build())
        });
        deletes.collect::<Result<_, StateError>>().map(RemovedKey)
    }

    /// Returns true if a key of the run is stored. Opens none.
    pub async fn has(&self, run: RunId) -> Result<bool, StateError> {
        for slot in roles::run_keys(run) {
            let got = self
                .client
                .get_item()
                .table_name(&self.table)
                .set_key(Some(slot))
                .projection_expression("pk")
                .consistent_read(true)
                .send()
                .await;
            if got.map_err(|error| StateError::sdk("look for the caller's key", error))?.item.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn open_record(&self, key: Record, context: &str) -> Result<Option<Secret>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the caller's key", error))?;
        let Some(record) = got.item() else { return Ok(None) };
        self.open_sealed(record, context).await
    }

    /// Opens the secret in a record.
    async fn open_sealed(&self, record: &Record, context: &str) -> Result<Option<Secret>, StateError> {
        let reader = Reader::new(record);
        let bytes = |name| {
            let decoded = STANDARD.decode(reader.text_or_empty(name));
            decoded.map_err(|error| StateError::damaged(format!("credentials of {context}"), error))
        };
        let data_key = self.wrapper.unwrap(&bytes("data_key")?, context).await?;
        let data_key: [u8; KEY_BYTES] =
            data_key.try_into().map_err(|_| secret("opened", "its data key has the wrong length"))?;
        let clear = open(&aead_key(&data_key)?, &bytes("sealed")?, context)?;
        String::from_utf8(clear).map(Secret::new).map_err(|_| secret("opened", "it is not UTF-8"))
    }

    /// Removes the caller's keys of a run, unless they were stored for a later generation: a run
    /// may get new keys while its last generation is still being settled. Safe to repeat.
    pub async fn delete_up_to_generation(&self, run: RunId, generation: u32) -> Result<(), StateError> {
        for slot in roles::run_keys(run) {
            let deleted = self
                .client
                .delete_item()
                .table_name(&self.table)
                .set_key(Some(slot))
                .condition_expression("attribute_not_exists(generation) OR generation <= :generation")
                .expression_attribute_values(":generation", number(generation))
                .send()
                .await;
            condition_held("remove the caller's key", deleted)?;
        }
        Ok(())
    }

    /// Removes the caller's keys of a run. Safe to repeat.
    pub async fn delete(&self, run: RunId) -> Result<(), StateError> {
        for slot in roles::run_keys(run) {
            let deleted = self.client.delete_item().table_name(&self.table).set_key(Some(slot)).send().await;
            deleted.map_err(|error| StateError::sdk("remove the caller's key", error))?;
        }
        Ok(())
    }
}

fn secret(verb: &'static str, problem: &str) -> StateError {
    StateError::Secret { verb, problem: problem.to_owned() }
}

fn random<const N: usize>() -> Result<[u8; N], StateError> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| secret("sealed", "the system provides no random numbers"))?;
    Ok(bytes)
}

fn aead_key(bytes: &[u8; KEY_BYTES]) -> Result<LessSafeKey, StateError> {
    let key =
        UnboundKey::new(&AES_256_GCM, bytes).map_err(|_| secret("sealed", "the key has the wrong length"))?;
    Ok(LessSafeKey::new(key))
}

/// Returns the nonce, followed by the ciphertext with its tag. A random nonce is safe, because a key seals few values.
fn seal(key: &LessSafeKey, clear: &[u8], context: &str) -> Result<Vec<u8>, StateError> {
    let nonce: [u8; NONCE_LEN] = random()?;
    let mut sealed = clear.to_vec();
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut sealed)
        .map_err(|_| secret("sealed", "encryption failed"))?;
    Ok([&nonce[..], &sealed].concat())
}

fn open(key: &LessSafeKey, sealed: &[u8], context: &str) -> Result<Vec<u8>, StateError> {
    let failed = || secret("opened", "it was sealed for another run, with another master key, or is damaged");
    let (nonce, ciphertext) = sealed.split_at_checked(NONCE_LEN).ok_or_else(failed)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| failed())?;
    let mut buffer = ciphertext.to_vec();
    let clear = key.open_in_place(nonce, Aad::from(context), &mut buffer).map_err(|_| failed())?;
    Ok(clear.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_only_in_its_context() {
        let key = aead_key(&[7; KEY_BYTES]).unwrap();
        let sealed = seal(&key, b"sk-secret", "run-1").unwrap();
        assert!(!sealed.windows(9).any(|window| window == b"sk-secret"));
        assert_eq!(open(&key, &sealed, "run-1").unwrap(), b"sk-secret");
        assert!(open(&key, &sealed, "run-2").is_err());
        assert!(open(&aead_key(&[8; KEY_BYTES]).unwrap(), &sealed, "run-1").is_err());
        for length in 0..sealed.len() {
            assert!(open(&key, &sealed[..length], "run-1").is_err());
        }
    }

    #[test]
    fn a_key_does_not_show_itself() {
        assert_eq!(format!("{:?}", Secret::new("sk-secret").unwrap()), "***");
    }
}
