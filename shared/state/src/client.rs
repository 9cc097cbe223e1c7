//! The table, and how to reach it.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::InterceptorContext;
use aws_sdk_dynamodb::config::retry::{ClassifyRetry, RetryAction, RetryConfig};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use bench_domain::Timestamp;

use crate::{Origin, StateError};

/// How often a call is sent at most. More than the SDK's three: a claim or a release that is given up leaves
/// its sample to the end of a lease.
const TRIES_MAX: u32 = 6;

/// The runs that a process works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All runs of the table, as the deployed functions.
    #[default]
    All,
    /// The runs that were ordered or resumed at a server of this data directory, by this process or an earlier one.
    Server,
    /// The runs that this process ordered or resumed.
    Foreground,
}

/// The state of all runs.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) client: Client,
    /// Repeats nothing by itself: transactions are repeated here, and would be with both.
    pub(crate) once: Client,
    pub(crate) table: String,
    pub(crate) epoch: u64,
    pub(crate) scope: Scope,
}

impl State {
    /// A client of `table`.
    ///
    /// `epoch` is the start count of the host: a lease that names another epoch is void. Where hosts
    /// come and go independently, as deployed, it is 0 everywhere.
    pub fn new(config: &aws_types::SdkConfig, table: impl Into<String>, epoch: u64) -> Self {
        let client = |retries| {
            let config = aws_sdk_dynamodb::config::Builder::from(config).retry_config(retries);
            Client::from_conf(config.retry_classifier(Conflicts).build())
        };
        Self {
            client: client(RetryConfig::standard().with_max_attempts(TRIES_MAX)),
            once: client(RetryConfig::disabled()),
            table: table.into(),
            epoch,
            scope: Scope::All,
        }
    }

    /// The same state for a process that works on these runs only.
    #[must_use]
    pub fn scoped(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// The origin of runs that this process orders or resumes.
    pub(crate) const fn own_origin(&self) -> Origin {
        match self.scope {
            Scope::All | Scope::Server => Origin::Server,
            Scope::Foreground => Origin::Foreground { start: self.epoch },
        }
    }

    /// The table's name.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Asks DynamoDB for a record that is not there: the cheapest call, to open a connection.
    pub async fn touch(&self) -> Result<(), StateError> {
        let nothing = crate::keys::key("NOTHING", "NOTHING");
        let got = self.client.get_item().table_name(&self.table).set_key(Some(nothing)).send().await;
        got.map(drop).map_err(|error| StateError::sdk("reach the table", error))
    }

    /// The start count of the host.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// A write of one record that meets a transaction is done again. The SDK does not do so by itself.
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

/// Whether the condition of a write held. Any other refusal is an error.
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

/// By which a claim whose answer was lost is known again.
pub(crate) fn claim_token() -> u64 {
    rand::random()
}

/// DynamoDB removes a record some time after this many seconds since 1970.
pub(crate) fn expires_at(now: Timestamp, seconds: i64) -> i64 {
    now.as_seconds().saturating_add(seconds)
}
