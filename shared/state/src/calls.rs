//! Calls that go to the table of this process, if it has one, before the SDK makes them.

use aws_sdk_dynamodb::error::{DisplayErrorContext, SdkError};
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_get_item::{BatchGetItemError, BatchGetItemOutput};
use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::{BatchWriteItemError, BatchWriteItemOutput};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsInputBuilder;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};

use crate::State;

impl State {
    /// Updates a record.
    pub(crate) async fn update(
        &self,
        input: UpdateItemInputBuilder,
    ) -> Result<UpdateItemOutput, SdkError<UpdateItemError>> {
        if let Some(table) = &self.direct
            && let Some(output) = table.update_item(&input).await
        {
            return Ok(output);
        }
        input.send_with(&self.client).await
    }

    /// Sends a transaction without retries by the SDK. A caller that retries it treats its own earlier write as success.
    pub(crate) async fn transact_without_retries(
        &self,
        input: TransactWriteItemsInputBuilder,
    ) -> Result<(), SdkError<TransactWriteItemsError>> {
        if let Some(table) = &self.direct
            && table.transact_write_items(&input).await.is_some()
        {
            return Ok(());
        }
        input.send_with(&self.once).await.map(drop)
    }

    /// Sends a transaction once. Returns false if it failed or its outcome is unknown.
    pub(crate) async fn transact_once(&self, input: TransactWriteItemsInputBuilder) -> bool {
        if let Some(table) = &self.direct {
            return table.transact_write_items(&input).await.is_some();
        }
        let sent = input.send_with(&self.once).await;
        if let Err(error) = &sent {
            let error = DisplayErrorContext(error);
            tracing::debug!(%error, "A transaction failed: {error}");
        }
        sent.is_ok()
    }

    /// Writes a batch. The output names what wasn't processed.
    pub(crate) async fn write_part(
        &self,
        input: BatchWriteItemInputBuilder,
    ) -> Result<BatchWriteItemOutput, SdkError<BatchWriteItemError>> {
        if let Some(table) = &self.direct
            && table.batch_write_item(&input).await.is_some()
        {
            return Ok(BatchWriteItemOutput::builder().build());
        }
        input.send_with(&self.client).await
    }

    /// Reads a batch. The output names what wasn't processed.
    pub(crate) async fn read_part(
        &self,
        input: BatchGetItemInputBuilder,
    ) -> Result<BatchGetItemOutput, SdkError<BatchGetItemError>> {
        if let Some(table) = &self.direct
            && let Some(output) = table.batch_get_item(&input).await
        {
            return Ok(output);
        }
        input.send_with(&self.client).await
    }
}
