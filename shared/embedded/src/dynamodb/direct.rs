//! Calls without HTTP, from the SDK's requests to the database's and from its responses to the SDK's.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemOutput;
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsInputBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemOutput;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use dynoxide::actions::batch_get_item::{BatchGetItemRequest, KeysAndAttributes};
use dynoxide::actions::batch_write_item;
use dynoxide::actions::transact_write_items::{self, TransactUpdate, TransactWriteItemsRequest};
use dynoxide::actions::update_item::UpdateItemRequest;
use dynoxide::types as stored;

use super::Request;
use super::operations::Response;

type Record = HashMap<String, AttributeValue>;
type StoredRecord = HashMap<String, stored::AttributeValue>;

/// Returns the request for an update; `None` if it uses a parameter that no caller in this process needs.
pub(crate) fn update_item(input: &UpdateItemInputBuilder) -> Option<Request> {
    let is_plain = input.get_attribute_updates().is_none()
        && input.get_expected().is_none()
        && input.get_conditional_operator().is_none()
        && input.get_return_consumed_capacity().is_none()
        && input.get_return_item_collection_metrics().is_none();
    is_plain.then_some(())?;
    let on_failure = input.get_return_values_on_condition_check_failure().as_ref();
    Some(Request::UpdateItem(UpdateItemRequest {
        table_name: input.get_table_name().clone()?,
        key: to_stored(input.get_key().as_ref()?)?,
        update_expression: input.get_update_expression().clone(),
        condition_expression: input.get_condition_expression().clone(),
        expression_attribute_names: input.get_expression_attribute_names().clone(),
        expression_attribute_values: values(input.get_expression_attribute_values().as_ref())?,
        return_values: input.get_return_values().as_ref().map(|values| values.as_str().to_owned()),
        return_values_on_condition_check_failure: on_failure.map(|values| values.as_str().to_owned()),
        ..UpdateItemRequest::default()
    }))
}

/// Returns the response to an update.
pub(crate) fn updated(response: Response) -> Option<UpdateItemOutput> {
    let Response::UpdateItem(response) = response else { return None };
    let attributes = response.attributes.map(from_stored);
    Some(UpdateItemOutput::builder().set_attributes(attributes).build())
}

/// Returns the request for a transaction; `None` if it is more than updates, or has a token.
pub(crate) fn transact_write_items(input: &TransactWriteItemsInputBuilder) -> Option<Request> {
    let is_plain = input.get_client_request_token().is_none()
        && input.get_return_consumed_capacity().is_none()
        && input.get_return_item_collection_metrics().is_none();
    is_plain.then_some(())?;
    let items = input.get_transact_items().as_deref().unwrap_or_default();
    let transact_items = items.iter().map(transaction_item).collect::<Option<_>>()?;
    Some(Request::TransactWriteItems(TransactWriteItemsRequest {
        transact_items,
        ..TransactWriteItemsRequest::default()
    }))
}

fn transaction_item(item: &TransactWriteItem) -> Option<transact_write_items::TransactWriteItem> {
    let TransactWriteItem { condition_check: None, put: None, delete: None, update: Some(update), .. } = item
    else {
        return None;
    };
    let Update { table_name, key, update_expression, condition_expression, .. } = update;
    let on_failure = update.return_values_on_condition_check_failure.as_ref();
    let update = TransactUpdate {
        table_name: table_name.clone(),
        key: to_stored(key)?,
        update_expression: update_expression.clone(),
        condition_expression: condition_expression.clone(),
        expression_attribute_names: update.expression_attribute_names.clone(),
        expression_attribute_values: values(update.expression_attribute_values.as_ref())?,
        return_values_on_condition_check_failure: on_failure.map(|values| values.as_str().to_owned()),
    };
    Some(transact_write_items::TransactWriteItem { update: Some(update), ..Default::default() })
}

/// Returns the request for a batch of reads.
pub(crate) fn batch_get_item(input: &BatchGetItemInputBuilder) -> Option<Request> {
    input.get_return_consumed_capacity().is_none().then_some(())?;
    let tables = input.get_request_items().as_ref()?.iter().map(|(table, wanted)| {
        let request = KeysAndAttributes {
            keys: wanted.keys.iter().map(to_stored).collect::<Option<_>>()?,
            projection_expression: wanted.projection_expression.clone(),
            expression_attribute_names: wanted.expression_attribute_names.clone(),
            consistent_read: wanted.consistent_read,
            attributes_to_get: wanted.attributes_to_get.clone(),
        };
        Some((table.clone(), request))
    });
    let request_items = tables.collect::<Option<_>>()?;
    Some(Request::BatchGetItem(BatchGetItemRequest { request_items, return_consumed_capacity: None }))
}

/// Returns the response to a batch of reads; `None` if a part wasn't processed.
pub(crate) fn batch_got(response: Response) -> Option<BatchGetItemOutput> {
    let Response::BatchGetItem(response) = response else { return None };
    response.unprocessed_keys.is_empty().then_some(())?;
    let found = response.responses.into_iter();
    let found = found.map(|(table, records)| (table, records.into_iter().map(from_stored).collect()));
    Some(BatchGetItemOutput::builder().set_responses(Some(found.collect())).build())
}

/// Returns the request for a batch of writes.
pub(crate) fn batch_write_item(input: &BatchWriteItemInputBuilder) -> Option<Request> {
    let is_plain = input.get_return_consumed_capacity().is_none()
        && input.get_return_item_collection_metrics().is_none();
    is_plain.then_some(())?;
    let tables = input.get_request_items().as_ref()?.iter().map(|(table, requests)| {
        let requests = requests.iter().map(|request| {
            let put = request.put_request.as_ref().map(|put| to_stored(&put.item));
            let delete = request.delete_request.as_ref().map(|delete| to_stored(&delete.key));
            Some(batch_write_item::WriteRequest {
                put_request: all_of(put)?.map(|item| batch_write_item::PutRequest { item }),
                delete_request: all_of(delete)?.map(|key| batch_write_item::DeleteRequest { key }),
            })
        });
        Some((table.clone(), requests.collect::<Option<_>>()?))
    });
    let request_items = tables.collect::<Option<_>>()?;
    Some(Request::BatchWriteItem(batch_write_item::BatchWriteItemRequest {
        request_items,
        ..Default::default()
    }))
}

/// Returns `None` if a part of a batch of writes wasn't processed.
pub(crate) fn batch_written(response: &Response) -> Option<()> {
    let Response::BatchWriteItem(response) = response else { return None };
    response.unprocessed_items.is_empty().then_some(())
}

fn values(values: Option<&Record>) -> Option<Option<StoredRecord>> {
    all_of(values.map(to_stored))
}

/// Returns `None` if there is a value that couldn't be converted.
fn all_of<T>(converted: Option<Option<T>>) -> Option<Option<T>> {
    converted.map_or(Some(None), |converted| converted.map(Some))
}

fn to_stored(record: &Record) -> Option<StoredRecord> {
    record.iter().map(|(name, value)| Some((name.clone(), to_stored_value(value)?))).collect()
}

/// Returns `None` for sets, whose rules the parser of requests checks, and for unknown types. Numbers aren't checked before they
/// are stored.
fn to_stored_value(value: &AttributeValue) -> Option<stored::AttributeValue> {
    use stored::AttributeValue as Stored;
    Some(match value {
        AttributeValue::S(text) => Stored::S(text.clone()),
        AttributeValue::N(number) => Stored::N(number.clone()),
        AttributeValue::B(bytes) => Stored::B(bytes.as_ref().to_vec()),
        AttributeValue::Bool(value) => Stored::BOOL(*value),
        AttributeValue::Null(value) => Stored::NULL(*value),
        AttributeValue::L(values) => Stored::L(values.iter().map(to_stored_value).collect::<Option<_>>()?),
        AttributeValue::M(values) => Stored::M(to_stored(values)?),
        _ => return None,
    })
}

fn from_stored(record: StoredRecord) -> Record {
    record.into_iter().map(|(name, value)| (name, from_stored_value(value))).collect()
}

fn from_stored_value(value: stored::AttributeValue) -> AttributeValue {
    use stored::AttributeValue as Stored;
    match value {
        Stored::S(text) => AttributeValue::S(text),
        Stored::N(number) => AttributeValue::N(number),
        Stored::B(bytes) => AttributeValue::B(Blob::new(bytes)),
        Stored::BOOL(value) => AttributeValue::Bool(value),
        Stored::NULL(value) => AttributeValue::Null(value),
        Stored::SS(texts) => AttributeValue::Ss(texts),
        Stored::NS(numbers) => AttributeValue::Ns(numbers),
        Stored::BS(values) => AttributeValue::Bs(values.into_iter().map(Blob::new).collect()),
        Stored::L(values) => AttributeValue::L(values.into_iter().map(from_stored_value).collect()),
        Stored::M(values) => AttributeValue::M(from_stored(values)),
    }
}
