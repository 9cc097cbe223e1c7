//! Calls of tables without HTTP: they have the effects of the SDK's calls, and are recorded and fail like them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemInput;
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::BatchWriteItemInput;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsInput;
use aws_sdk_dynamodb::operation::update_item::UpdateItemInput;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, Delete, DeleteRequest, KeySchemaElement, KeyType,
    KeysAndAttributes, PutRequest, ReturnConsumedCapacity, ReturnValue, ScalarAttributeType,
    TransactWriteItem, Update, WriteRequest,
};
use bench_embedded::{DirectTables, Durability, Embedded, EmbeddedOptions, Faults, Recorder};

struct World {
    client: Client,
    tables: DirectTables,
    calls: Arc<Mutex<Vec<String>>>,
    _embedded: Embedded,
    _directory: tempfile::TempDir,
}

async fn world(faults: &str) -> World {
    let directory = tempfile::tempdir().unwrap();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    let recorder = Recorder::new(move |call| noted.lock().unwrap().push(format!("{call:?}")));
    let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal).recorder(recorder);
    let embedded = Embedded::open(options.faults(faults.parse::<Faults>().unwrap())).unwrap();
    let client = Client::new(&embedded.sdk_config_for("worker"));
    let created = client
        .create_table()
        .table_name("records")
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(
            AttributeDefinition::builder()
                .attribute_name("pk")
                .attribute_type(ScalarAttributeType::S)
                .build()
                .unwrap(),
        )
        .key_schema(
            KeySchemaElement::builder().attribute_name("pk").key_type(KeyType::Hash).build().unwrap(),
        );
    created.send().await.unwrap();
    calls.lock().unwrap().clear();
    let tables = embedded.direct_tables_for("worker").unwrap();
    World { client, tables, calls, _embedded: embedded, _directory: directory }
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn number(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn key(name: &str) -> HashMap<String, AttributeValue> {
    HashMap::from([("pk".to_owned(), text(name))])
}

fn update(name: &str) -> UpdateItemInputBuilder {
    let values = HashMap::from([
        ("s".to_owned(), text("é\"\\\n")),
        ("n".to_owned(), number(-7)),
        ("b".to_owned(), AttributeValue::B(Blob::new([0, 255]))),
        ("t".to_owned(), AttributeValue::Bool(true)),
        ("z".to_owned(), AttributeValue::Null(true)),
        ("l".to_owned(), AttributeValue::L(vec![number(1), text("")])),
    ]);
    UpdateItemInput::builder()
        .table_name("records")
        .set_key(Some(key(name)))
        .update_expression("SET #m = :m, big = :big ADD counted :one REMOVE gone")
        .condition_expression("attribute_not_exists(pk) OR counted < :two")
        .expression_attribute_names("#m", "map")
        .expression_attribute_values(":m", AttributeValue::M(values))
        .expression_attribute_values(":big", AttributeValue::N(u64::MAX.to_string()))
        .expression_attribute_values(":one", number(1))
        .expression_attribute_values(":two", number(2))
        .return_values(ReturnValue::AllNew)
}

fn read(names: &[&str]) -> BatchGetItemInputBuilder {
    let keys = KeysAndAttributes::builder().set_keys(Some(names.iter().map(|name| key(name)).collect()));
    let keys = keys.consistent_read(true).projection_expression("pk, counted").build().unwrap();
    BatchGetItemInput::builder().request_items("records", keys)
}

fn counting(name: &str, below: i64) -> TransactWriteItem {
    let update = Update::builder()
        .table_name("records")
        .set_key(Some(key(name)))
        .update_expression("ADD counted :one")
        .condition_expression("counted < :below")
        .expression_attribute_values(":one", number(1))
        .expression_attribute_values(":below", number(below));
    TransactWriteItem::builder().update(update.build().unwrap()).build()
}

impl World {
    async fn counted(&self, name: &str) -> Option<AttributeValue> {
        let got = self.client.get_item().table_name("records").set_key(Some(key(name))).send().await.unwrap();
        got.item.and_then(|mut item| item.remove("counted"))
    }
}

#[tokio::test]
async fn effects_and_records_are_those_of_the_sdk() {
    let world = world("").await;
    let mut by_sdk = update("a").send_with(&world.client).await.unwrap().attributes.unwrap();
    let mut directly = world.tables.update_item(&update("b")).await.unwrap().attributes.unwrap();
    assert_eq!((by_sdk.remove("pk"), directly.remove("pk")), (Some(text("a")), Some(text("b"))));
    assert_eq!(by_sdk, directly);
    let names = ["a", "b", "missing"];
    let by_sdk = read(&names).send_with(&world.client).await.unwrap().responses.unwrap();
    let directly = world.tables.batch_get_item(&read(&names)).await.unwrap().responses.unwrap();
    assert_eq!(by_sdk, directly);
    assert_eq!(by_sdk["records"].len(), 2);
    let batch = || {
        let put = PutRequest::builder()
            .set_item(Some(HashMap::from([("pk".to_owned(), text("c")), ("counted".to_owned(), number(5))])));
        let delete = DeleteRequest::builder().set_key(Some(key("missing")));
        let put = WriteRequest::builder().put_request(put.build().unwrap()).build();
        let delete = WriteRequest::builder().delete_request(delete.build().unwrap()).build();
        BatchWriteItemInput::builder().request_items("records", vec![put, delete])
    };
    batch().send_with(&world.client).await.unwrap();
    world.tables.batch_write_item(&batch()).await.unwrap();
    let write = || {
        TransactWriteItemsInput::builder().transact_items(counting("a", 9)).transact_items(counting("b", 9))
    };
    write().send_with(&world.client).await.unwrap();
    world.tables.transact_write_items(&write()).await.unwrap();
    let calls = std::mem::take(&mut *world.calls.lock().unwrap());
    assert_eq!(calls.len(), 8);
    assert!(calls.chunks(2).all(|pair| pair[0] == pair[1]), "{calls:?}");
    let counted = [world.counted("a").await, world.counted("b").await, world.counted("c").await];
    assert_eq!(counted, [Some(number(3)), Some(number(3)), Some(number(5))]);
}

#[tokio::test]
async fn failures_change_nothing() {
    let world = world("").await;
    for _ in 0..2 {
        world.tables.update_item(&update("a")).await.unwrap();
    }
    assert!(world.tables.update_item(&update("a")).await.is_none());
    let write =
        TransactWriteItemsInput::builder().transact_items(counting("a", 9)).transact_items(counting("b", 9));
    assert!(world.tables.transact_write_items(&write).await.is_none());
    assert_eq!((world.counted("a").await, world.counted("b").await), (Some(number(2)), None));
}

#[tokio::test]
async fn other_requests_are_not_sent() {
    let world = world("").await;
    let delete = Delete::builder().table_name("records").set_key(Some(key("a"))).build().unwrap();
    let write = TransactWriteItemsInput::builder()
        .transact_items(TransactWriteItem::builder().delete(delete).build());
    assert!(world.tables.transact_write_items(&write).await.is_none());
    let write =
        TransactWriteItemsInput::builder().transact_items(counting("a", 9)).client_request_token("token");
    assert!(world.tables.transact_write_items(&write).await.is_none());
    let sets = update("a").expression_attribute_values(":set", AttributeValue::Ss(vec!["a".to_owned()]));
    assert!(world.tables.update_item(&sets).await.is_none());
    let measured = update("a").return_consumed_capacity(ReturnConsumedCapacity::Total);
    assert!(world.tables.update_item(&measured).await.is_none());
    assert!(world.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn injected_faults_are_failures() {
    let world_of_parts = world("unprocessed@BatchGetItem=1.0").await;
    for name in ["a", "b"] {
        world_of_parts.tables.update_item(&update(name)).await.unwrap();
    }
    let mut some = false;
    for _ in 0..20 {
        some |= world_of_parts.tables.batch_get_item(&read(&["a", "b"])).await.is_none();
    }
    assert!(some, "no part was withheld");
    for (fault, is_written) in [("throttle", false), ("conflict", false), ("lost-response", true)] {
        let world = world(&format!("{fault}@UpdateItem=1")).await;
        assert!(world.tables.update_item(&update("a")).await.is_none(), "{fault}");
        assert_eq!(world.counted("a").await.is_some(), is_written, "{fault}");
    }
}
