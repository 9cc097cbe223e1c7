//! Ledger of this system's sandboxes.

use bench_domain::{RunId, SampleRef, Timestamp};

use crate::attributes::{Reader, json, number, text};
use crate::client::{condition_held, expires_at};
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
    /// True if the sandbox has a container engine, at which the sample may have containers.
    pub has_engine: bool,
}

impl State {
    /// Adds a sandbox to the ledger. Safe to repeat.
    ///
    /// # Errors
    /// If the table fails.
    pub async fn note_sandbox(&self, entry: &LedgerEntry) -> Result<(), StateError> {
        let mut put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(key(SANDBOXES, &entry.sandbox)))
            .item("host", text(&entry.host))
            .item("sample", json("sample", &entry.sample)?)
            .item("until", number(entry.until.as_micros()))
            .item("expires_at", number(expires_at(entry.until, KEEP_S)));
        if entry.has_engine {
            put = put.item("has_engine", number(1));
        }
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

    /// Ends the lease of a sandbox that is still in the ledger.
    ///
    /// # Errors
    /// If the table fails.
    pub async fn end_sandbox_lease(&self, sandbox: &str, now: Timestamp) -> Result<(), StateError> {
        let updated = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(SANDBOXES, sandbox)))
            .update_expression("SET #until = :now")
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_names("#until", "until")
            .expression_attribute_values(":now", number(now.as_micros()))
            .send()
            .await;
        condition_held("end the lease of a sandbox", updated).map(drop)
    }

    /// Returns sandboxes of the ledger whose lease is over, at most `limit`.
    ///
    /// # Errors
    /// If the table fails.
    pub async fn overdue_sandboxes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<LedgerEntry>, StateError> {
        self.sandboxes(|entry| entry.until < now, limit).await
    }

    /// Returns the sandboxes that a run has in the ledger.
    ///
    /// # Errors
    /// If the table fails.
    pub async fn sandboxes_of(&self, run: RunId) -> Result<Vec<LedgerEntry>, StateError> {
        self.sandboxes(|entry| entry.sample.run == run, usize::MAX).await
    }

    async fn sandboxes(
        &self,
        is_wanted: impl Fn(&LedgerEntry) -> bool,
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
                .expression_attribute_values(":sandboxes", text(SANDBOXES))
                .set_exclusive_start_key(from.take())
                .send()
                .await
                .map_err(|error| StateError::sdk("read the ledger of sandboxes", error))?;
            for record in page.items() {
                let reader = Reader::new(record);
                let entry = LedgerEntry {
                    sandbox: reader.text("sk")?.to_owned(),
                    host: reader.text("host")?.to_owned(),
                    sample: reader.json("sample")?,
                    until: reader.time("until")?,
                    has_engine: reader.count_or("has_engine", 0)? > 0,
                };
                if is_wanted(&entry) {
                    found.push(entry);
                }
            }
            from = page.last_evaluated_key;
            if from.is_none() || found.len() >= limit {
                found.truncate(limit);
                return Ok(found);
            }
        }
    }
}
