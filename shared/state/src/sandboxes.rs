//! Ledger of this system's sandboxes.

use bench_domain::{SampleRef, Timestamp};

use crate::attributes::{Reader, json, number, text};
use crate::client::expires_at;
use crate::keys::key;
use crate::{State, StateError};

/// Partition of the ledger.
const SANDBOXES: &str = "SANDBOXES";
/// Seconds that an entry which isn't removed is kept after the end of its lease.
const KEEP_S: i64 = 14 * 24 * 3_600;

/// Sandbox in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Id of the sandbox at its host.
    pub sandbox: String,
    /// Host that created the sandbox, as passed to [`State::note_sandbox`]. The id is meaningless at other hosts.
    pub host: String,
    /// Sample whose job the sandbox was created for.
    pub sample: SampleRef,
    /// Time until which the job may need the sandbox. After it, any process may end the sandbox.
    pub until: Timestamp,
}

impl State {
    /// Adds a sandbox to the ledger. Safe to repeat.
    ///
    /// # Errors
    /// If the table fails.
    pub async fn note_sandbox(&self, entry: &LedgerEntry) -> Result<(), StateError> {
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(key(SANDBOXES, &entry.sandbox)))
            .item("host", text(&entry.host))
            .item("sample", json("sample", &entry.sample)?)
            .item("until", number(entry.until.as_micros()))
            .item("expires_at", number(expires_at(entry.until, KEEP_S)));
        put.send().await.map(drop).map_err(|error| StateError::sdk("note a sandbox", error))
    }

    /// Removes a sandbox that is gone from the ledger.
    ///
    /// # Errors
    /// If the table fails.
    pub async fn forget_sandbox(&self, sandbox: &str) -> Result<(), StateError> {
        let deleted = self
            .client
            .delete_item()
            .table_name(&self.table)
            .set_key(Some(key(SANDBOXES, sandbox)))
            .send()
            .await;
        deleted.map(drop).map_err(|error| StateError::sdk("forget a sandbox", error))
    }

    /// Returns sandboxes of the ledger whose lease is over, at most `limit` per page.
    ///
    /// # Errors
    /// If the table fails.
    pub async fn overdue_sandboxes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<LedgerEntry>, StateError> {
        let mut found = Vec::new();
        let mut from = None;
        loop {
            let page = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("pk = :sandboxes")
                .filter_expression("#until < :now")
                .expression_attribute_names("#until", "until")
                .expression_attribute_values(":sandboxes", text(SANDBOXES))
                .expression_attribute_values(":now", number(now.as_micros()))
                .set_exclusive_start_key(from.take())
                .send()
                .await
                .map_err(|error| StateError::sdk("read the ledger of sandboxes", error))?;
            for record in page.items() {
                let reader = Reader::new(record);
                found.push(LedgerEntry {
                    sandbox: reader.text("sk")?.to_owned(),
                    host: reader.text("host")?.to_owned(),
                    sample: reader.json("sample")?,
                    until: reader.time("until")?,
                });
            }
            from = page.last_evaluated_key;
            if from.is_none() || found.len() >= limit {
                found.truncate(limit);
                return Ok(found);
            }
        }
    }
}
