//! Client of the table.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::InterceptorContext;
use aws_sdk_dynamodb::config::retry::{ClassifyRetry, RetryAction, RetryConfig};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use bench_domain::Timestamp;

use crate::{DirectTable, Origin, StateError};

/// Maximum number of tries of a call. It's higher than the SDK's three, because after a failed claim or release the
/// sample waits for the end of a lease.
const TRIES_MAX: u32 = 6;

/// Runs that a process works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All runs of the table; used by the deployed functions.
    #[default]
    All,
    /// Runs that were ordered or resumed at a server of this data directory, by this process or an earlier one.
    Server,
    /// Runs that this process ordered or resumed.
    Foreground,
}

/// Client of the state of all runs.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) client: Client,
    /// Client without retries, for transactions: this crate retries them itself, and both together would multiply.
    pub(crate) once: Client,
    /// The same table, if it is in this process.
    pub(crate) direct: Option<Arc<dyn DirectTable>>,
    pub(crate) table: String,
    pub(crate) epoch: u64,
    pub(crate) scope: Scope,
    /// Origin of the runs that this process orders or resumes.
    pub(crate) own_origin: Origin,
    /// Concurrency of the runs that this process orders or resumes; `None` at servers.
    pub(crate) own_concurrency: Option<u32>,
}

impl State {
    /// Creates a client of `table`.
    ///
    /// `epoch` is the start count of the host: leases with another epoch are void. In deployments, where hosts start
    /// and stop independently, it is always 0.
    pub fn new(config: &aws_types::SdkConfig, table: impl Into<String>, epoch: u64) -> Self {
        let client = |retries| {
            let config = aws_sdk_dynamodb::config::Builder::from(config).retry_config(retries);
            Client::from_conf(config.retry_classifier(Conflicts).build())
        };
        Self {
            client: client(RetryConfig::standard().with_max_attempts(TRIES_MAX)),
            once: client(RetryConfig::disabled()),
            direct: None,
            table: table.into(),
            epoch,
            scope: Scope::All,
            own_origin: Origin::Server,
            own_concurrency: None,
        }
    }

    /// Returns the same state for a process that works only on runs in `scope`. Runs that it orders or resumes are in
    /// that scope.
    #[must_use]
    pub fn scoped(self, scope: Scope) -> Self {
        let own_origin = match scope {
            Scope::All | Scope::Server => Origin::Server,
            Scope::Foreground => Origin::Foreground { start: self.epoch },
        };
        Self { scope, own_origin, ..self }
    }

    /// Returns the same state for a process whose runs get this origin instead of the scope's.
    #[must_use]
    pub fn with_origin(self, own_origin: Origin) -> Self {
        Self { own_origin, ..self }
    }

    /// Returns the same state for a process that has the table, and calls it without HTTP where every sample does.
    #[must_use]
    pub fn with_direct_table(self, table: Arc<dyn DirectTable>) -> Self {
        Self { direct: Some(table), ..self }
    }

    /// Returns the origin of runs that this process orders or resumes.
    pub const fn own_origin(&self) -> Origin {
        self.own_origin
    }

    /// Returns the same state for a command whose runs have at most this many samples in progress at once. It is stored with
    /// the runs that it orders or resumes.
    #[must_use]
    pub fn with_concurrency(self, concurrency: u32) -> Self {
        Self { own_concurrency: Some(concurrency), ..self }
    }

    /// Returns the concurrency of runs that this process orders or resumes; `None` at servers.
    pub const fn own_concurrency(&self) -> Option<u32> {
        self.own_concurrency
    }

    /// Returns the table's name.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Requests a record that doesn't exist, which is the cheapest call that opens a connection.
    pub async fn touch(&self) -> Result<(), StateError> {
        let nothing = crate::keys::key("NOTHING", "NOTHING");
        let got = self.client.get_item().table_name(&self.table).set_key(Some(nothing)).send().await;
        got.map(drop).map_err(|error| StateError::sdk("reach the table", error))
    }

    /// Returns the start count of the host.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// Retries a write of one record that conflicts with a transaction. The SDK doesn't do so by itself.
#[derive(Debug)]
struct Conflicts;

impl ClassifyRetry for Conflicts {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let error = context.output_or_error().and_then(Result::err);
        let Some(error) = error.and_then(|error| error.as_operation_error()) else {
            return RetryAction::NoActionIndicated;
        };
        let conflicts = error.downcast_ref().is_some_and(UpdateItemError::is_transaction_conflict_exception)
            || error.downcast_ref().is_some_and(PutItemError::is_transaction_conflict_exception)
            || error.downcast_ref().is_some_and(DeleteItemError::is_transaction_conflict_exception);
        if conflicts { RetryAction::transient_error() } else { RetryAction::NoActionIndicated }
    }

    fn name(&self) -> &'static str {
        "conflicts with transactions"
    }
}

/// Returns true if the condition of a write held. Any other failure is an error.
pub(crate) fn condition_held<T, E>(
    verb: &'static str,
    written: Result<T, SdkError<E>>,
) -> Result<bool, StateError>
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    match written {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(false),
        Err(error) => Err(StateError::sdk(verb, error)),
    }
}

/// Generates a token that identifies a claim if its response was lost.
pub(crate) fn claim_token() -> u64 {
    rand::random()
}

/// Returns the expiry time in seconds since 1970, after which DynamoDB removes a record.
pub(crate) fn expires_at(now: Timestamp, seconds: i64) -> i64 {
    now.as_seconds().saturating_add(seconds)
}
