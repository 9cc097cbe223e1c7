//! The part of a batch that fault injection withholds from the database and returns as unprocessed,
//! as DynamoDB does under load.

use std::collections::{BTreeMap, HashMap};

use dynoxide::actions::batch_get_item::KeysAndAttributes;
use dynoxide::actions::batch_write_item::WriteRequest;
use serde_json::{Map, Value, json};

use super::operations::{Request, Response};

/// Requests taken out of a batch.
#[derive(Debug, Default)]
pub(crate) enum WithheldRequests {
    /// No requests.
    #[default]
    Nothing,
    /// Writes by table.
    Writes(HashMap<String, Vec<WriteRequest>>),
    /// Reads by table.
    Reads(HashMap<String, KeysAndAttributes>),
}

impl WithheldRequests {
    /// Takes those requests out of a batch for which `withhold` returns true. At least one stays, since
    /// DynamoDB returns an error if it can't process any.
    pub(crate) fn take_from(request: &mut Request, mut withhold: impl FnMut() -> bool) -> Self {
        match request {
            Request::BatchWriteItem(write) => {
                let mut left = write.request_items.values().map(Vec::len).sum::<usize>();
                let mut withheld: HashMap<String, Vec<WriteRequest>> = HashMap::new();
                for (table, requests) in sorted_by_name(&mut write.request_items) {
                    let taken = withhold_some(requests, &mut left, &mut withhold);
                    if !taken.is_empty() {
                        withheld.insert(table.clone(), taken);
                    }
                }
                write.request_items.retain(|_, requests| !requests.is_empty());
                if withheld.is_empty() { Self::Nothing } else { Self::Writes(withheld) }
            }
            Request::BatchGetItem(read) => {
                let mut left = read.request_items.values().map(|table| table.keys.len()).sum::<usize>();
                let mut withheld = HashMap::new();
                for (table, request) in sorted_by_name(&mut read.request_items) {
                    let keys = withhold_some(&mut request.keys, &mut left, &mut withhold);
                    if !keys.is_empty() {
                        let rest = KeysAndAttributes {
                            keys,
                            projection_expression: request.projection_expression.clone(),
                            expression_attribute_names: request.expression_attribute_names.clone(),
                            consistent_read: request.consistent_read,
                            attributes_to_get: request.attributes_to_get.clone(),
                        };
                        withheld.insert(table.clone(), rest);
                    }
                }
                read.request_items.retain(|_, request| !request.keys.is_empty());
                if withheld.is_empty() { Self::Nothing } else { Self::Reads(withheld) }
            }
            _ => Self::Nothing,
        }
    }

    /// Adds the withheld requests to the response as unprocessed.
    pub(super) fn add_unprocessed(self, response: &mut Response) {
        match (self, response) {
            (Self::Writes(withheld), Response::BatchWriteItem(response)) => {
                for (table, requests) in withheld {
                    let requests = requests.iter().map(write_json).collect();
                    response.unprocessed_items.insert(table, Value::Array(requests));
                }
            }
            (Self::Reads(withheld), Response::BatchGetItem(response)) => {
                for (table, request) in withheld {
                    response.unprocessed_keys.insert(table, read_json(&request));
                }
            }
            _ => {}
        }
    }
}

/// Sorts tables by name, so that the selection doesn't depend on the order of a hash map.
fn sorted_by_name<T>(tables: &mut HashMap<String, T>) -> BTreeMap<&String, &mut T> {
    tables.iter_mut().collect()
}

fn withhold_some<T>(items: &mut Vec<T>, left: &mut usize, withhold: &mut impl FnMut() -> bool) -> Vec<T> {
    let (mut kept, mut taken) = (Vec::new(), Vec::new());
    for item in items.drain(..) {
        if *left > 1 && withhold() {
            *left -= 1;
            taken.push(item);
        } else {
            kept.push(item);
        }
    }
    *items = kept;
    taken
}

fn write_json(request: &WriteRequest) -> Value {
    let mut json = Map::new();
    if let Some(put) = &request.put_request {
        json.insert("PutRequest".to_owned(), json!({ "Item": put.item }));
    }
    if let Some(delete) = &request.delete_request {
        json.insert("DeleteRequest".to_owned(), json!({ "Key": delete.key }));
    }
    Value::Object(json)
}

fn read_json(request: &KeysAndAttributes) -> Value {
    let mut json = Map::new();
    json.insert("Keys".to_owned(), json!(request.keys));
    if let Some(projection) = &request.projection_expression {
        json.insert("ProjectionExpression".to_owned(), json!(projection));
    }
    if let Some(names) = &request.expression_attribute_names {
        json.insert("ExpressionAttributeNames".to_owned(), json!(names));
    }
    if let Some(consistent) = request.consistent_read {
        json.insert("ConsistentRead".to_owned(), json!(consistent));
    }
    if let Some(attributes) = &request.attributes_to_get {
        json.insert("AttributesToGet".to_owned(), json!(attributes));
    }
    Value::Object(json)
}
