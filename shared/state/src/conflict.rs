//! Transactions that meet others, and answers that do not come.

use std::time::Duration;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{CancellationReason, TransactWriteItem};

use crate::attributes::Record;
use crate::{State, StateError};

/// How often a transaction that met another one, was throttled or got no answer is sent again.
const RESENDS_MAX: u32 = 12;

/// Why a transaction was not carried out, per item in its order.
#[derive(Debug)]
pub(crate) struct Canceled {
    reasons: Vec<CancellationReason>,
}

impl Canceled {
    /// Whether the condition of this item did not hold.
    pub(crate) fn condition_failed(&self, index: usize) -> bool {
        self.reasons.get(index).and_then(CancellationReason::code) == Some("ConditionalCheckFailed")
    }

    /// The record as it is, when the request asked for it.
    pub(crate) fn record(&self, index: usize) -> Option<&Record> {
        self.reasons.get(index).and_then(CancellationReason::item).filter(|record| !record.is_empty())
    }
}

impl State {
    /// Carries out a transaction. `Ok(Err(_))`: a condition did not hold, nothing was written.
    ///
    /// Conflicts, throttling and lost answers are repeated here with growing, jittered waits. Since a
    /// repeat may find that the first try had worked, callers take "already so" for success.
    pub(crate) async fn transact(
        &self,
        verb: &'static str,
        items: Vec<TransactWriteItem>,
    ) -> Result<Result<(), Canceled>, StateError> {
        let mut resends = 0;
        loop {
            let sent = self.once.transact_write_items().set_transact_items(Some(items.clone())).send().await;
            let error = match sent {
                Ok(_) => return Ok(Ok(())),
                Err(error) => error,
            };
            if let Some(TransactWriteItemsError::TransactionCanceledException(canceled)) =
                error.as_service_error()
            {
                let reasons = canceled.cancellation_reasons().to_vec();
                let code_is = |code: &str| reasons.iter().any(|reason| reason.code() == Some(code));
                if code_is("ConditionalCheckFailed") {
                    return Ok(Err(Canceled { reasons }));
                }
                let repeatable = ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];
                if !repeatable.into_iter().any(code_is) {
                    return Err(StateError::sdk(verb, error));
                }
            } else if !is_repeatable(&error) {
                return Err(StateError::sdk(verb, error));
            }
            resends += 1;
            if resends > RESENDS_MAX {
                return Err(StateError::sdk(verb, error));
            }
            pause(resends).await;
        }
    }
}

fn is_repeatable(error: &SdkError<TransactWriteItemsError>) -> bool {
    match error {
        SdkError::ServiceError(service) => {
            service.raw().status().as_u16() >= 500
                || matches!(
                    service.err(),
                    TransactWriteItemsError::ProvisionedThroughputExceededException(_)
                        | TransactWriteItemsError::RequestLimitExceeded(_)
                        | TransactWriteItemsError::TransactionInProgressException(_)
                        | TransactWriteItemsError::InternalServerError(_)
                )
                || aws_sdk_dynamodb::error::ProvideErrorMetadata::code(service.err())
                    .is_some_and(|code| code.contains("Throttl"))
        }
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => true,
        _ => false,
    }
}

/// Waits before the n-th repeat: up to 10, 20, 40 … 1000 ms, anywhere in that range.
pub(crate) async fn pause(repeat: u32) {
    let ceiling_ms = 10_u64.saturating_mul(1 << repeat.min(8)).min(1_000);
    tokio::time::sleep(Duration::from_millis(rand::random_range(1..=ceiling_ms))).await;
}
