//! A table in the same process, for the requests that every sample or turn makes.
//!
//! The SDK resolves an endpoint, signs, serializes and parses for each request, which takes more CPU time than the request
//! itself if the table is in this process.

use std::fmt::Debug;

use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsInputBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemOutput;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;
use futures_util::future::BoxFuture;

/// A table that can be called without HTTP.
///
/// Each method returns `None` unless the call succeeded. The caller then sends the same request with the SDK, which repeats
/// it if necessary and returns the error, so a request must be repeatable after a lost response.
pub trait DirectTable: Debug + Send + Sync {
    /// Updates a record.
    fn update_item<'a>(
        &'a self,
        input: &'a UpdateItemInputBuilder,
    ) -> BoxFuture<'a, Option<UpdateItemOutput>>;

    /// Writes several records, or none of them.
    fn transact_write_items<'a>(
        &'a self,
        input: &'a TransactWriteItemsInputBuilder,
    ) -> BoxFuture<'a, Option<()>>;

    /// Writes or deletes up to 25 records.
    fn batch_write_item<'a>(&'a self, input: &'a BatchWriteItemInputBuilder) -> BoxFuture<'a, Option<()>>;

    /// Reads up to 100 records.
    fn batch_get_item<'a>(
        &'a self,
        input: &'a BatchGetItemInputBuilder,
    ) -> BoxFuture<'a, Option<BatchGetItemOutput>>;
}
