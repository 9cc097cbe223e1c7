//! Idempotency keys, which identify repeated orders.

use bench_domain::RunId;

use crate::attributes::{Reader, Record, number, text};
use crate::keys::key;
use crate::{State, StateError};

/// Seconds that an idempotency key is remembered.
pub(crate) const REMEMBER_S: i64 = 24 * 3_600;

/// Idempotency key of a caller for one order, with the digest of the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// Owner of the key, as named by [`bench_domain::run::Owner`].
    pub owner: String,
    /// The caller's key.
    pub key: String,
    /// Digest of the order; a different order with the same key is rejected.
    pub digest: String,
}

impl Idempotency {
    fn key(&self) -> Record {
        key(format!("IDEM#{}#{}", self.owner, self.key), "IDEM")
    }

    pub(crate) fn record(&self, run: RunId, expires_at: i64) -> Record {
        let mut record = self.key();
        record.insert("run".to_owned(), text(run.to_string()));
        record.insert("digest".to_owned(), text(&self.digest));
        record.insert("expires_at".to_owned(), number(expires_at));
        record
    }
}

impl State {
    /// Returns the run that was created with this key, and the digest of its order.
    pub async fn run_for_key(&self, key: &Idempotency) -> Result<Option<(RunId, String)>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key.key()))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("look up the idempotency key", error))?;
        let Some(record) = got.item() else { return Ok(None) };
        let reader = Reader::new(record);
        let run = reader.text("run")?.parse().map_err(|error| StateError::damaged(reader.key(), error))?;
        Ok(Some((run, reader.text("digest")?.to_owned())))
    }
}
