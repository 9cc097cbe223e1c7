//! The table, and how to reach it.

use aws_sdk_dynamodb::Client;
use bench_domain::Timestamp;

/// The state of all runs.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) client: Client,
    pub(crate) table: String,
    pub(crate) epoch: u64,
}

impl State {
    /// A client of `table`.
    ///
    /// `epoch` is the start count of the host: a lease that names another epoch is void. Where hosts
    /// come and go independently, as deployed, it is 0 everywhere.
    pub fn new(config: &aws_types::SdkConfig, table: impl Into<String>, epoch: u64) -> Self {
        Self { client: Client::new(config), table: table.into(), epoch }
    }

    /// The table's name.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The start count of the host.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// DynamoDB removes a record some time after this many seconds since 1970.
pub(crate) fn expires_at(now: Timestamp, seconds: i64) -> i64 {
    now.as_seconds().saturating_add(seconds)
}
