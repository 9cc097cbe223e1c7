//! Retries of transactions that conflict with others or get no response.

use std::time::Duration;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::{TransactWriteItemsError, TransactWriteItemsInput};
use aws_sdk_dynamodb::types::{CancellationReason, TransactWriteItem};

use crate::attributes::Record;
use crate::{State, StateError};

/// Maximum number of retries of a transaction that conflicted with another, was throttled or got no response.
const RESENDS_MAX: u32 = 12;

/// Reasons why a transaction was canceled, one for each item in order.
#[derive(Debug)]
pub(crate) struct Canceled {
    reasons: Vec<CancellationReason>,
}

impl Canceled {
    /// Returns true if the condition of this item didn't hold.
    pub(crate) fn condition_failed(&self, index: usize) -> bool {
        self.reasons.get(index).and_then(CancellationReason::code) == Some("ConditionalCheckFailed")
    }

    /// Returns the current record, if the request asked for it.
    pub(crate) fn record(&self, index: usize) -> Option<&Record> {
        self.reasons.get(index).and_then(CancellationReason::item).filter(|record| !record.is_empty())
    }
}

impl State {
    /// Runs a transaction. `Ok(Err(_))` means that a condition didn't hold and nothing was written.
    ///
    /// Retries conflicts, throttling and lost responses with increasing, jittered waits. Since a retry may find that
    /// the first try succeeded, callers treat a write that already happened as success.
    pub(crate) async fn transact(
        &self,
        verb: &'static str,
        items: Vec<TransactWriteItem>,
    ) -> Result<Result<(), Canceled>, StateError> {
        let mut resends = 0;
        loop {
            let input = TransactWriteItemsInput::builder().set_transact_items(Some(items.clone()));
            let error = match self.transact_without_retries(input).await {
                Ok(()) => return Ok(Ok(())),
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

/// Waits before the n-th retry: a random time of up to 10, 20, 40 … 1000 ms.
pub(crate) async fn pause(repeat: u32) {
    let ceiling_ms = 10_u64.saturating_mul(1 << repeat.min(8)).min(1_000);
    tokio::time::sleep(Duration::from_millis(rand::random_range(1..=ceiling_ms))).await;
}
