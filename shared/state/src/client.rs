//! The table, and how to reach it.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use bench_domain::Timestamp;

/// How often a call is sent at most. More than the SDK's three: a claim or a release that is given up leaves
/// its sample to the end of a lease.
const TRIES_MAX: u32 = 6;

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
        let config = aws_sdk_dynamodb::config::Builder::from(config)
            .retry_config(RetryConfig::standard().with_max_attempts(TRIES_MAX))
            .build();
        Self { client: Client::from_conf(config), table: table.into(), epoch }
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

/// By which a claim whose answer was lost is known again.
pub(crate) fn claim_token() -> u64 {
    rand::random()
}

/// DynamoDB removes a record some time after this many seconds since 1970.
pub(crate) fn expires_at(now: Timestamp, seconds: i64) -> i64 {
    now.as_seconds().saturating_add(seconds)
}
