//! Conformance tests of DynamoDB, which run on the embedded service and on other implementations.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, ConditionCheck, Delete, DeleteRequest, Get,
    GlobalSecondaryIndex, KeySchemaElement, KeyType, KeysAndAttributes, Projection, ProjectionType, Put,
    PutRequest, ReturnValue, ReturnValuesOnConditionCheckFailure, ScalarAttributeType, TransactGetItem,
    TransactWriteItem, Update, WriteRequest,
};

use super::Stack;

struct Table {
    client: Client,
    name: String,
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn n(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn key(name: &str, kind: KeyType) -> KeySchemaElement {
    KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap()
}

fn attribute(name: &str, kind: ScalarAttributeType) -> AttributeDefinition {
    AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build().unwrap()
}

/// Creates a table with partition key `pk`, sort key `sk` and an index by `owner`.
async fn table(stack: &Stack) -> Table {
    let client = Client::new(&stack.config);
    let name = stack.name("table");
    let index = GlobalSecondaryIndex::builder()
        .index_name("by-owner")
        .key_schema(key("owner", KeyType::Hash))
        .key_schema(key("sk", KeyType::Range))
        .projection(Projection::builder().projection_type(ProjectionType::All).build())
        .build()
        .unwrap();
    client
        .create_table()
        .table_name(&name)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(attribute("pk", ScalarAttributeType::S))
        .attribute_definitions(attribute("sk", ScalarAttributeType::N))
        .attribute_definitions(attribute("owner", ScalarAttributeType::S))
        .key_schema(key("pk", KeyType::Hash))
        .key_schema(key("sk", KeyType::Range))
        .global_secondary_indexes(index)
        .send()
        .await
        .unwrap();
    Table { client, name }
}

impl Table {
    async fn put(&self, pk: &str, sk: i64, owner: &str) {
        let put = self.client.put_item().table_name(&self.name);
        put.item("pk", s(pk)).item("sk", n(sk)).item("owner", s(owner)).send().await.unwrap();
    }

    async fn get(&self, pk: &str, sk: i64) -> Option<std::collections::HashMap<String, AttributeValue>> {
        let get = self.client.get_item().table_name(&self.name).consistent_read(true);
        get.key("pk", s(pk)).key("sk", n(sk)).send().await.unwrap().item
    }

    fn update(
        &self,
        pk: &str,
        sk: i64,
        expression: &str,
    ) -> aws_sdk_dynamodb::types::builders::UpdateBuilder {
        Update::builder()
            .table_name(&self.name)
            .key("pk", s(pk))
            .key("sk", n(sk))
            .update_expression(expression)
    }
}

fn update_item(update: aws_sdk_dynamodb::types::builders::UpdateBuilder) -> TransactWriteItem {
    TransactWriteItem::builder().update(update.build().unwrap()).build()
}

pub(crate) async fn items_are_written_read_and_deleted(stack: &Stack) {
    let t = table(stack).await;
    let bytes = AttributeValue::B(aws_sdk_dynamodb::primitives::Blob::new(vec![0, 1, 255]));
    let item = [
        ("pk", s("a")),
        ("sk", n(1)),
        ("text", s("1.0 \u{1F600}\n")),
        ("number", AttributeValue::N("0.1".to_owned())),
        ("flag", AttributeValue::Bool(true)),
        ("nothing", AttributeValue::Null(true)),
        ("bytes", bytes),
        ("list", AttributeValue::L(vec![s("x"), n(2)])),
        ("map", AttributeValue::M([("k".to_owned(), s("v"))].into())),
        ("set", AttributeValue::Ss(vec!["one".to_owned()])),
    ];
    let item: std::collections::HashMap<_, _> = item.map(|(k, v)| (k.to_owned(), v)).into();
    t.client.put_item().table_name(&t.name).set_item(Some(item.clone())).send().await.unwrap();
    assert_eq!(t.get("a", 1).await, Some(item.clone()));
    assert_eq!(t.get("a", 2).await, None);
    let delete = t.client.delete_item().table_name(&t.name).key("pk", s("a")).key("sk", n(1));
    let deleted = delete.return_values(ReturnValue::AllOld).send().await.unwrap();
    assert_eq!(deleted.attributes, Some(item));
    assert_eq!(t.get("a", 1).await, None);
}

pub(crate) async fn failed_conditions_carry_the_item(stack: &Stack) {
    let t = table(stack).await;
    t.put("a", 1, "first").await;
    let put = t.client.put_item().table_name(&t.name).item("pk", s("a")).item("sk", n(1));
    let error = put
        .condition_expression("attribute_not_exists(pk)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .send()
        .await
        .unwrap_err()
        .into_service_error();
    let aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException(failed) = error
    else {
        panic!("{error:?}")
    };
    assert_eq!(failed.item.unwrap()["owner"], s("first"));
}

pub(crate) async fn updates_compute_on_the_stored_item(stack: &Stack) {
    let t = table(stack).await;
    for expected in 1..=3 {
        let update = t.client.update_item().table_name(&t.name).key("pk", s("a")).key("sk", n(1));
        let updated = update
            .update_expression(
                "ADD done :one SET #log = list_append(if_not_exists(#log, :none), :entry), made = if_not_exists(made, :entry)",
            )
            .expression_attribute_names("#log", "log")
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":none", AttributeValue::L(vec![]))
            .expression_attribute_values(":entry", AttributeValue::L(vec![n(expected)]))
            .return_values(ReturnValue::AllNew)
            .send()
            .await
            .unwrap()
            .attributes
            .unwrap();
        assert_eq!(updated["done"], n(expected));
        assert_eq!(updated["log"], AttributeValue::L((1..=expected).map(n).collect()));
        assert_eq!(updated["made"], AttributeValue::L(vec![n(1)]));
    }
    let update = t.client.update_item().table_name(&t.name).key("pk", s("a")).key("sk", n(1));
    let error = update
        .update_expression("SET done = :x")
        .condition_expression("done < :limit")
        .expression_attribute_values(":x", n(9))
        .expression_attribute_values(":limit", n(3))
        .send()
        .await
        .unwrap_err()
        .into_service_error();
    assert!(matches!(error, UpdateItemError::ConditionalCheckFailedException(_)), "{error:?}");
}

pub(crate) async fn transactions_are_all_or_nothing(stack: &Stack) {
    let t = table(stack).await;
    t.put("counter", 0, "me").await;
    let add =
        || update_item(t.update("counter", 0, "ADD done :one").expression_attribute_values(":one", n(1)));
    let put = Put::builder().table_name(&t.name).item("pk", s("a")).item("sk", n(1)).build().unwrap();
    let put = TransactWriteItem::builder().put(put).build();
    t.client.transact_write_items().transact_items(put).transact_items(add()).send().await.unwrap();
    assert_eq!(t.get("counter", 0).await.unwrap()["done"], n(1));

    let check = ConditionCheck::builder()
        .table_name(&t.name)
        .key("pk", s("a"))
        .key("sk", n(1))
        .condition_expression("attribute_not_exists(pk)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build()
        .unwrap();
    let check = TransactWriteItem::builder().condition_check(check).build();
    let refused = t.client.transact_write_items().transact_items(add()).transact_items(check).send().await;
    let error = refused.unwrap_err().into_service_error();
    let aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException(
        canceled,
    ) = error
    else {
        panic!("{error:?}")
    };
    let reasons = canceled.cancellation_reasons();
    assert_eq!(
        reasons.iter().map(|r| r.code().unwrap()).collect::<Vec<_>>(),
        ["None", "ConditionalCheckFailed"]
    );
    assert_eq!(reasons[1].item().unwrap()["pk"], s("a"));
    assert_eq!(t.get("counter", 0).await.unwrap()["done"], n(1));

    let twice = t.client.transact_write_items().transact_items(add()).transact_items(add()).send().await;
    assert_eq!(twice.unwrap_err().code(), Some("ValidationException"));

    let delete = Delete::builder().table_name(&t.name).key("pk", s("a")).key("sk", n(1)).build().unwrap();
    let delete = TransactWriteItem::builder().delete(delete).build();
    t.client.transact_write_items().transact_items(delete).transact_items(add()).send().await.unwrap();
    let get = |pk: &str, sk| {
        let get = Get::builder().table_name(&t.name).key("pk", s(pk)).key("sk", n(sk)).build().unwrap();
        TransactGetItem::builder().get(get).build()
    };
    let read = t.client.transact_get_items().transact_items(get("counter", 0)).transact_items(get("a", 1));
    let read = read.send().await.unwrap();
    assert_eq!(read.responses()[0].item().unwrap()["done"], n(2));
    assert_eq!(read.responses()[1].item(), None);
}

pub(crate) async fn a_repeated_transaction_token_is_done_once(stack: &Stack) {
    let t = table(stack).await;
    let token = uuid::Uuid::new_v4().simple().to_string();
    let send = |by: i64| {
        let update = t.update("counter", 0, "ADD done :n, seen :m");
        let update = update.expression_attribute_values(":n", n(by)).expression_attribute_values(":m", n(1));
        let write = t.client.transact_write_items().transact_items(update_item(update));
        write.client_request_token(&token).send()
    };
    for _ in 0..3 {
        send(1).await.unwrap();
    }
    assert_eq!(t.get("counter", 0).await.unwrap()["done"], n(1));
    let error = send(2).await.unwrap_err();
    assert_eq!(error.code(), Some("IdempotentParameterMismatchException"));
}

pub(crate) async fn batches_write_and_read(stack: &Stack) {
    let t = table(stack).await;
    let put = |sk| {
        let put =
            PutRequest::builder().item("pk", s("a")).item("sk", n(sk)).item("v", n(sk * 2)).build().unwrap();
        WriteRequest::builder().put_request(put).build()
    };
    let write = |requests| t.client.batch_write_item().request_items(&t.name, requests).send();
    let written = write((0..25).map(put).collect()).await.unwrap();
    assert!(written.unprocessed_items().is_none_or(|items| items.is_empty()));
    assert_eq!(write((0..26).map(put).collect()).await.unwrap_err().code(), Some("ValidationException"));
    let delete = DeleteRequest::builder().key("pk", s("a")).key("sk", n(0)).build().unwrap();
    write(vec![WriteRequest::builder().delete_request(delete).build()]).await.unwrap();

    let mut keys = KeysAndAttributes::builder().projection_expression("v");
    for sk in [0, 3, 24, 99] {
        keys = keys.keys([("pk".to_owned(), s("a")), ("sk".to_owned(), n(sk))].into());
    }
    let read = t.client.batch_get_item().request_items(&t.name, keys.build().unwrap()).send().await.unwrap();
    let mut values: Vec<_> =
        read.responses().unwrap()[&t.name].iter().map(|item| item["v"].clone()).collect();
    values.sort_by_key(|value| value.as_n().unwrap().parse::<i64>().unwrap());
    assert_eq!(values, [n(6), n(48)]);
}

pub(crate) async fn queries_page_filter_and_reverse(stack: &Stack) {
    let t = table(stack).await;
    for sk in 0..10 {
        t.put("a", sk, if sk % 2 == 0 { "even" } else { "odd" }).await;
    }
    t.put("b", 0, "even").await;
    let query = || {
        let query = t.client.query().table_name(&t.name).key_condition_expression("pk = :pk");
        query.expression_attribute_values(":pk", s("a"))
    };
    let numbers = |items: &[std::collections::HashMap<String, AttributeValue>]| {
        items.iter().map(|item| item["sk"].as_n().unwrap().parse::<i64>().unwrap()).collect::<Vec<_>>()
    };
    let first = query().limit(4).scan_index_forward(false).send().await.unwrap();
    assert_eq!(numbers(first.items()), [9, 8, 7, 6]);
    let next = query().limit(4).scan_index_forward(false);
    let next = next.set_exclusive_start_key(first.last_evaluated_key).send().await.unwrap();
    assert_eq!(numbers(next.items()), [5, 4, 3, 2]);
    let range = t.client.query().table_name(&t.name);
    let range = range.key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to");
    let range = range.filter_expression("#o = :even").expression_attribute_names("#o", "owner");
    let range =
        range.expression_attribute_values(":pk", s("a")).expression_attribute_values(":even", s("even"));
    let range = range.expression_attribute_values(":from", n(3)).expression_attribute_values(":to", n(7));
    let found = range.send().await.unwrap();
    assert_eq!((numbers(found.items()), found.scanned_count()), (vec![4, 6], 5));
    let mut pages = query().into_paginator().page_size(3).send();
    let mut all = Vec::new();
    while let Some(page) = pages.next().await {
        all.extend(numbers(page.unwrap().items()));
    }
    assert_eq!(all, (0..10).collect::<Vec<_>>());
}

pub(crate) async fn an_index_is_queried(stack: &Stack) {
    let t = table(stack).await;
    for (pk, sk, owner) in [("a", 2, "me"), ("b", 1, "me"), ("c", 3, "you")] {
        t.put(pk, sk, owner).await;
    }
    let query = t.client.query().table_name(&t.name).index_name("by-owner");
    let query = query.key_condition_expression("#o = :me").expression_attribute_names("#o", "owner");
    let found = query.expression_attribute_values(":me", s("me")).send().await.unwrap();
    let pks: Vec<_> = found.items().iter().map(|item| item["pk"].clone()).collect();
    assert_eq!(pks, [s("b"), s("a")]);
}

pub(crate) async fn mistakes_are_typed_errors(stack: &Stack) {
    let t = table(stack).await;
    let absent = t.client.get_item().table_name(stack.name("absent")).key("pk", s("a")).key("sk", n(1));
    let error = absent.send().await.unwrap_err().into_service_error();
    assert!(error.is_resource_not_found_exception(), "{error:?}");
    let describe = t.client.describe_table().table_name(stack.name("absent")).send().await;
    assert!(describe.unwrap_err().into_service_error().is_resource_not_found_exception());

    let without_sort_key = t.client.get_item().table_name(&t.name).key("pk", s("a")).send().await;
    assert_eq!(without_sort_key.unwrap_err().code(), Some("ValidationException"));
    let update = |expression: &str| {
        let update = t.client.update_item().table_name(&t.name).key("pk", s("a")).key("sk", n(1));
        update.update_expression(expression).expression_attribute_values(":v", n(1)).send()
    };
    for wrong in ["SET status = :v", "SET a = :unknown", "SET b = b", "SET sk = :v", "ADD"] {
        assert_eq!(update(wrong).await.unwrap_err().code(), Some("ValidationException"), "{wrong}");
    }
    let empty_key = t.client.put_item().table_name(&t.name).item("pk", s("")).item("sk", n(1)).send().await;
    assert_eq!(empty_key.unwrap_err().code(), Some("ValidationException"));
    let again = t.client.delete_table().table_name(stack.name("absent")).send().await;
    assert!(again.unwrap_err().into_service_error().is_resource_not_found_exception());
    if stack.is_embedded() {
        assert_eq!(
            t.client.scan().table_name(&t.name).send().await.unwrap_err().code(),
            Some("ValidationException")
        );
    }
}

pub(crate) async fn large_items_are_refused(stack: &Stack) {
    let t = table(stack).await;
    let put = |bytes: usize| {
        let put = t.client.put_item().table_name(&t.name).item("pk", s("a")).item("sk", n(1));
        put.item("v", s(&"x".repeat(bytes))).send()
    };
    put(400 * 1024 - 100).await.unwrap();
    assert_eq!(put(400 * 1024).await.unwrap_err().code(), Some("ValidationException"));
}
