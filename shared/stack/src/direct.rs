//! Direct calls of the table from the functions of this process.

use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsInputBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemOutput;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;
use bench_embedded::DirectTables;
use bench_state::DirectTable;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// The embedded tables as the state calls them.
#[derive(Debug)]
pub(crate) struct EmbeddedTable(pub(crate) DirectTables);

impl DirectTable for EmbeddedTable {
    fn update_item<'a>(
        &'a self,
        input: &'a UpdateItemInputBuilder,
    ) -> BoxFuture<'a, Option<UpdateItemOutput>> {
        self.0.update_item(input).boxed()
    }

    fn transact_write_items<'a>(
        &'a self,
        input: &'a TransactWriteItemsInputBuilder,
    ) -> BoxFuture<'a, Option<()>> {
        self.0.transact_write_items(input).boxed()
    }

    fn batch_write_item<'a>(&'a self, input: &'a BatchWriteItemInputBuilder) -> BoxFuture<'a, Option<()>> {
        self.0.batch_write_item(input).boxed()
    }

    fn batch_get_item<'a>(
        &'a self,
        input: &'a BatchGetItemInputBuilder,
    ) -> BoxFuture<'a, Option<BatchGetItemOutput>> {
        self.0.batch_get_item(input).boxed()
    }
}
