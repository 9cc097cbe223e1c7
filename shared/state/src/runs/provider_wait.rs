//! Waits of runs for providers that answer no requests, for views and events.
//!
//! A wait is part of the run's record, which views and workers read anyway, so a run that doesn't wait costs nothing
//! more. It only informs: workers decide by the shared record of `waits.rs`.

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::ReturnValue;
use bench_domain::{ModelRole, RunId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::attributes::{Reader, json, time};
use crate::client::condition_held;
use crate::{State, StateError, keys};

/// Attribute with the wait as JSON.
pub(super) const PROVIDER_WAIT: &str = "provider_wait";
/// Attribute with the end of the wait, for conditions.
pub(super) const PROVIDER_WAIT_UNTIL: &str = "provider_wait_until";

/// Reason why a provider gets no requests for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// The provider refused a request with 429.
    RateLimited,
    /// The provider answered with 503 or 529, or its requests fail one after the other.
    Unavailable,
}

impl WaitKind {
    /// Returns the stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Wait of a run for a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredWait")]
pub struct ProviderWait {
    /// Reason for the wait.
    pub kind: WaitKind,
    /// Role of the model whose provider is waited for.
    pub role: ModelRole,
    /// Time at which the run began to wait.
    pub since: Timestamp,
    /// Earliest time of the next request.
    pub until: Timestamp,
    /// End of the wait in the last event about it.
    pub announced_until: Timestamp,
    /// What the provider said, without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Wait in a record of any version.
#[derive(Deserialize)]
struct StoredWait {
    kind: WaitKind,
    #[serde(default)]
    role: ModelRole,
    /// True in records of an older version, which had no roles, if the judge is waited for.
    #[serde(default)]
    judge: bool,
    since: Timestamp,
    until: Timestamp,
    announced_until: Timestamp,
    #[serde(default)]
    message: Option<String>,
}

impl From<StoredWait> for ProviderWait {
    fn from(stored: StoredWait) -> Self {
        let StoredWait { kind, role, judge, since, until, announced_until, message } = stored;
        let role = if judge { ModelRole::Judge } else { role };
        Self { kind, role, since, until, announced_until, message }
    }
}

/// Result of noting a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitNoted {
    /// The run's record has this wait now. Contains the wait that it replaced, if any.
    Noted(Option<ProviderWait>),
    /// The run already waits at least as long.
    Known,
}

impl State {
    /// Notes in the record of a run that it waits, unless it already waits at least as long.
    pub async fn note_provider_wait(&self, run: RunId, wait: &ProviderWait) -> Result<WaitNoted, StateError> {
        let noted = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::run(run)))
            .update_expression("SET #wait = :wait, #until = :until")
            .condition_expression(
                "attribute_exists(pk) AND (attribute_not_exists(#until) OR #until < :until)",
            )
            .expression_attribute_names("#wait", PROVIDER_WAIT)
            .expression_attribute_names("#until", PROVIDER_WAIT_UNTIL)
            .expression_attribute_values(":wait", json("run", wait)?)
            .expression_attribute_values(":until", time(wait.until))
            .return_values(ReturnValue::UpdatedOld)
            .send()
            .await;
        match noted {
            Ok(noted) => {
                let old = noted.attributes.unwrap_or_default();
                Ok(WaitNoted::Noted(Reader::new(&old).maybe_json(PROVIDER_WAIT)?))
            }
            Err(error)
                if matches!(
                    error.as_service_error(),
                    Some(UpdateItemError::ConditionalCheckFailedException(_))
                ) =>
            {
                Ok(WaitNoted::Known)
            }
            Err(error) => Err(StateError::sdk("note the run's wait", error)),
        }
    }

    /// Removes a wait from the record of its run. Returns false if it was removed or extended meanwhile.
    pub async fn end_provider_wait(&self, run: RunId, wait: &ProviderWait) -> Result<bool, StateError> {
        let ended = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(keys::run(run)))
            .update_expression("REMOVE #wait, #until")
            .condition_expression("#until = :until")
            .expression_attribute_names("#wait", PROVIDER_WAIT)
            .expression_attribute_names("#until", PROVIDER_WAIT_UNTIL)
            .expression_attribute_values(":until", time(wait.until))
            .send()
            .await;
        condition_held("end the run's wait", ended)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn records_of_every_version_are_read() {
        let role = |extra: Value| {
            let mut stored = json!({ "kind": "unavailable", "since": "2026-01-02T03:04:05Z", "until": "2026-01-02T03:05:05Z",
                "announced_until": "2026-01-02T03:05:05Z" });
            for (name, value) in extra.as_object().unwrap() {
                stored[name] = value.clone();
            }
            let read: ProviderWait = serde_json::from_value(stored).unwrap();
            let again = serde_json::from_value(serde_json::to_value(&read).unwrap());
            assert_eq!(read, again.unwrap());
            read.role
        };
        assert_eq!(role(json!({})), ModelRole::Model);
        assert_eq!(role(json!({ "judge": true })), ModelRole::Judge);
        for known in ModelRole::ALL {
            assert_eq!(role(json!({ "role": known })), known);
        }
    }
}
