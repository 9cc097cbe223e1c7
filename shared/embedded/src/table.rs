//! Calls of the embedded DynamoDB without HTTP.

use std::sync::Arc;

use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsInputBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemOutput;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;

use crate::connector::Services;
use crate::dynamodb::direct;

/// Client of the tables of this process for one function. Calls are recorded and fail like those of the SDK; each returns
/// `None` unless it succeeded, and the SDK then says why.
#[derive(Debug, Clone)]
pub struct DirectTables {
    pub(crate) services: Arc<Services>,
    pub(crate) caller: &'static str,
}

impl DirectTables {
    /// Updates an item.
    pub async fn update_item(&self, input: &UpdateItemInputBuilder) -> Option<UpdateItemOutput> {
        let request = direct::update_item(input)?;
        direct::updated(self.services.run_directly("UpdateItem", request, Some(self.caller)).await?)
    }

    /// Writes several items, or none of them. A transaction of anything but updates isn't sent.
    pub async fn transact_write_items(&self, input: &TransactWriteItemsInputBuilder) -> Option<()> {
        let request = direct::transact_write_items(input)?;
        self.services.run_directly("TransactWriteItems", request, Some(self.caller)).await.map(drop)
    }

    /// Writes or deletes items by their keys. A part that isn't processed is a failure.
    pub async fn batch_write_item(&self, input: &BatchWriteItemInputBuilder) -> Option<()> {
        let request = direct::batch_write_item(input)?;
        direct::batch_written(
            &self.services.run_directly("BatchWriteItem", request, Some(self.caller)).await?,
        )
    }

    /// Reads items by their keys. A part that isn't processed is a failure.
    pub async fn batch_get_item(&self, input: &BatchGetItemInputBuilder) -> Option<BatchGetItemOutput> {
        let request = direct::batch_get_item(input)?;
        direct::batch_got(self.services.run_directly("BatchGetItem", request, Some(self.caller)).await?)
    }
}
