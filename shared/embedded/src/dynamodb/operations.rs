//! The supported DynamoDB operations, each with its typed request and response.
//!
//! Scan isn't one of them: reading a whole table doesn't scale, so the program must not depend on
//! it.

use std::collections::BTreeSet;

use dynoxide::DynoxideError;
use dynoxide::actions::vector_lifecycle::VectorIndexLifecycle;
use dynoxide::actions::{
    batch_get_item, batch_write_item, create_table, delete_item, delete_table, describe_table,
    describe_time_to_live, get_item, list_tables, put_item, query, transact_get_items, transact_write_items,
    update_item, update_time_to_live,
};
use dynoxide::storage::Storage;
use serde::de::DeserializeOwned;

/// State on which the operations run.
pub(super) struct Engine {
    pub(super) storage: Storage,
    /// Required by two operations; vector indexes aren't used.
    lifecycle: VectorIndexLifecycle,
}

impl Engine {
    pub(super) fn new(storage: Storage) -> Self {
        Self { storage, lifecycle: VectorIndexLifecycle::new() }
    }
}

macro_rules! operations {
    ($($name:ident: $request:ty => $response:ty, writes $writes:literal,
       |$engine:ident, $input:ident| $run:expr;)*) => {
        /// A parsed request.
        #[derive(Debug)]
        pub(crate) enum Request { $($name($request),)* }

        /// The response to a request.
        #[derive(Debug)]
        pub(crate) enum Response { $($name($response),)* }

        impl Request {
            pub(super) fn parse(action: &str, body: &[u8]) -> Result<Self, DynoxideError> {
                match action {
                    $(stringify!($name) => parse(body).map(Self::$name),)*
                    other => Err(unsupported(other)),
                }
            }

            /// Returns true if the operation may change the file.
            pub(super) fn writes(&self) -> bool {
                match self { $(Self::$name(_) => $writes,)* }
            }

            pub(super) async fn run(self, engine: &Engine) -> Result<Response, DynoxideError> {
                match self {
                    $(Self::$name($input) => {
                        let $engine = engine;
                        $run.await.map(Response::$name)
                    })*
                }
            }
        }

        impl Response {
            pub(super) fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
                match self { $(Self::$name(response) => serde_json::to_vec(response),)* }
            }
        }
    };
}

operations! {
    CreateTable: create_table::CreateTableRequest => create_table::CreateTableResponse, writes true,
        |engine, request| create_table::execute(&engine.storage, request);
    DescribeTable: describe_table::DescribeTableRequest => describe_table::DescribeTableResponse, writes false,
        |engine, request| describe_table::execute(&engine.storage, request, &engine.lifecycle);
    DeleteTable: delete_table::DeleteTableRequest => delete_table::DeleteTableResponse, writes true,
        |engine, request| delete_table::execute(&engine.storage, request, &engine.lifecycle);
    ListTables: list_tables::ListTablesRequest => list_tables::ListTablesResponse, writes false,
        |engine, request| list_tables::execute(&engine.storage, request);
    UpdateTimeToLive: update_time_to_live::UpdateTimeToLiveRequest
        => update_time_to_live::UpdateTimeToLiveResponse, writes true,
        |engine, request| update_time_to_live::execute(&engine.storage, request);
    DescribeTimeToLive: describe_time_to_live::DescribeTimeToLiveRequest
        => describe_time_to_live::DescribeTimeToLiveResponse, writes false,
        |engine, request| describe_time_to_live::execute(&engine.storage, request);
    PutItem: put_item::PutItemRequest => put_item::PutItemResponse, writes true,
        |engine, request| put_item::execute(&engine.storage, request);
    GetItem: get_item::GetItemRequest => get_item::GetItemResponse, writes false,
        |engine, request| get_item::execute(&engine.storage, request);
    UpdateItem: update_item::UpdateItemRequest => update_item::UpdateItemResponse, writes true,
        |engine, request| update_item::execute(&engine.storage, request);
    DeleteItem: delete_item::DeleteItemRequest => delete_item::DeleteItemResponse, writes true,
        |engine, request| delete_item::execute(&engine.storage, request);
    Query: query::QueryRequest => query::QueryResponse, writes false,
        |engine, request| query::execute(&engine.storage, request);
    BatchGetItem: batch_get_item::BatchGetItemRequest => batch_get_item::BatchGetItemResponse, writes false,
        |engine, request| batch_get_item::execute(&engine.storage, request);
    BatchWriteItem: batch_write_item::BatchWriteItemRequest
        => batch_write_item::BatchWriteItemResponse, writes true,
        |engine, request| batch_write_item::execute(&engine.storage, request);
    TransactWriteItems: transact_write_items::TransactWriteItemsRequest
        => transact_write_items::TransactWriteItemsResponse, writes true,
        |engine, request| transact_write_items::execute(&engine.storage, request);
    TransactGetItems: transact_get_items::TransactGetItemsRequest
        => transact_get_items::TransactGetItemsResponse, writes false,
        |engine, request| transact_get_items::execute(&engine.storage, request);
}

impl Request {
    /// Returns the tables that the request names, without duplicates.
    pub(crate) fn tables(&self) -> BTreeSet<&str> {
        match self {
            Self::CreateTable(r) => BTreeSet::from([r.table_name.as_str()]),
            Self::DescribeTable(r) => BTreeSet::from([r.table_name.as_str()]),
            Self::DeleteTable(r) => BTreeSet::from([r.table_name.as_str()]),
            Self::ListTables(_) => BTreeSet::new(),
            Self::UpdateTimeToLive(r) => BTreeSet::from([r.table_name.as_str()]),
            Self::DescribeTimeToLive(r) => BTreeSet::from([r.table_name.as_str()]),
            Self::PutItem(r) => BTreeSet::from([r.table_name.as_str()]),
            Self::GetItem(r) => BTreeSet::from([r.table_name.as_str()]),
            Self::UpdateItem(r) => BTreeSet::from([r.table_name.as_str()]),
            Self::DeleteItem(r) => BTreeSet::from([r.table_name.as_str()]),
            Self::Query(r) => BTreeSet::from([r.table_name.as_str()]),
            Self::BatchGetItem(r) => r.request_items.keys().map(String::as_str).collect(),
            Self::BatchWriteItem(r) => r.request_items.keys().map(String::as_str).collect(),
            Self::TransactWriteItems(r) => r.transact_items.iter().filter_map(written_table).collect(),
            Self::TransactGetItems(r) => {
                r.transact_items.iter().map(|item| item.get.table_name.as_str()).collect()
            }
        }
    }

    /// Returns the permissions that the request requires: the action without its service, and the
    /// table or index.
    pub(crate) fn permissions(&self) -> BTreeSet<(&'static str, String)> {
        let table = |name: &str| format!("table/{name}");
        let each = |action| self.tables().into_iter().map(|name| (action, table(name))).collect();
        match self {
            Self::TransactWriteItems(r) => {
                let members = r.transact_items.iter().filter_map(|item| {
                    let action = written_by(item)?;
                    written_table(item).map(|name| (action, table(name)))
                });
                members.collect()
            }
            Self::TransactGetItems(_) | Self::GetItem(_) => each("GetItem"),
            Self::Query(r) => {
                let index = r.index_name.as_ref().map(|index| format!("/index/{index}")).unwrap_or_default();
                BTreeSet::from([("Query", table(&r.table_name) + &index)])
            }
            Self::PutItem(_) => each("PutItem"),
            Self::UpdateItem(_) => each("UpdateItem"),
            Self::DeleteItem(_) => each("DeleteItem"),
            Self::BatchGetItem(_) => each("BatchGetItem"),
            Self::BatchWriteItem(_) => each("BatchWriteItem"),
            Self::CreateTable(_) => each("CreateTable"),
            Self::DescribeTable(_) => each("DescribeTable"),
            Self::DeleteTable(_) => each("DeleteTable"),
            Self::ListTables(_) => BTreeSet::from([("ListTables", "*".to_owned())]),
            Self::UpdateTimeToLive(_) => each("UpdateTimeToLive"),
            Self::DescribeTimeToLive(_) => each("DescribeTimeToLive"),
        }
    }

    /// Returns the number of items in a transaction; 0 for other requests.
    pub(crate) fn transaction_items(&self) -> usize {
        match self {
            Self::TransactWriteItems(r) => r.transact_items.len(),
            Self::TransactGetItems(r) => r.transact_items.len(),
            _ => 0,
        }
    }
}

fn written_table(item: &transact_write_items::TransactWriteItem) -> Option<&str> {
    None.or_else(|| item.put.as_ref().map(|put| put.table_name.as_str()))
        .or_else(|| item.update.as_ref().map(|update| update.table_name.as_str()))
        .or_else(|| item.delete.as_ref().map(|delete| delete.table_name.as_str()))
        .or_else(|| item.condition_check.as_ref().map(|check| check.table_name.as_str()))
}

fn written_by(item: &transact_write_items::TransactWriteItem) -> Option<&'static str> {
    None.or_else(|| item.put.as_ref().map(|_| "PutItem"))
        .or_else(|| item.update.as_ref().map(|_| "UpdateItem"))
        .or_else(|| item.delete.as_ref().map(|_| "DeleteItem"))
        .or_else(|| item.condition_check.as_ref().map(|_| "ConditionCheckItem"))
}

fn unsupported(action: &str) -> DynoxideError {
    DynoxideError::ValidationException(if action == "Scan" {
        "Scan is refused here: this program must not read whole tables".to_owned()
    } else {
        format!("{action} is not served by the embedded DynamoDB")
    })
}

/// Parses a request. `dynoxide` marks the class of an invalid value by a prefix of serde's message.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, DynoxideError> {
    serde_json::from_slice(body).map_err(|error| {
        let text = error.to_string();
        let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
        for marker in ["VALIDATION_REQUEST:", "VALIDATION_AS_READ:", "VALIDATION:"] {
            if let Some(message) = text.strip_prefix(marker) {
                return DynoxideError::ValidationException(message.to_owned());
            }
        }
        for marker in ["SERIALIZATION_AS_READ:", "SERIALIZATION:"] {
            if let Some(message) = text.strip_prefix(marker) {
                return DynoxideError::SerializationException(message.to_owned());
            }
        }
        if text.contains("missing field")
            || text.contains("unknown variant")
            || text.contains("AttributeValue")
        {
            DynoxideError::ValidationException(text.to_owned())
        } else {
            DynoxideError::SerializationException(text.to_owned())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scan_and_unknown_operations_are_refused() {
        for action in ["Scan", "ExecuteStatement", "Nonsense"] {
            let error = Request::parse(action, b"{}").unwrap_err();
            assert!(error.to_string().contains(action), "{error}");
            assert_eq!(error.status_code(), 400);
        }
    }

    #[test]
    fn no_marker_reaches_the_caller() {
        for body in
            [&b"{}"[..], b"{", b"[]", br#"{"TableName":1}"#, br#"{"TableName":"ab","Key":{"a":{"N":"x"}}}"#]
        {
            for action in ["GetItem", "PutItem", "UpdateItem", "TransactWriteItems", "Query", "CreateTable"] {
                if let Err(error) = Request::parse(action, body) {
                    let text = error.to_string();
                    assert!(
                        !text.contains("VALIDATION") && !text.contains("SERIALIZATION"),
                        "{action}: {text}"
                    );
                }
            }
        }
    }

    #[test]
    fn tables_of_a_transaction() {
        let body = br#"{"TransactItems":[
            {"Put":{"TableName":"one","Item":{"id":{"S":"a"}}}},
            {"Delete":{"TableName":"two","Key":{"id":{"S":"a"}}}},
            {"Delete":{"TableName":"one","Key":{"id":{"S":"b"}}}}]}"#;
        let request = Request::parse("TransactWriteItems", body).unwrap();
        assert_eq!(request.tables().into_iter().collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(request.transaction_items(), 3);
        let permission = |action, name: &str| (action, format!("table/{name}"));
        let permissions =
            [permission("DeleteItem", "one"), permission("DeleteItem", "two"), permission("PutItem", "one")];
        assert_eq!(request.permissions().into_iter().collect::<Vec<_>>(), permissions);
    }

    #[test]
    fn a_query_of_an_index_needs_the_index() {
        let body = br#"{"TableName":"one","IndexName":"by-time","KeyConditionExpression":"a = :a"}"#;
        let request = Request::parse("Query", body).unwrap();
        let right = ("Query", "table/one/index/by-time".to_owned());
        assert_eq!(request.permissions().into_iter().collect::<Vec<_>>(), [right]);
    }
}
