//! Guarantees of the embedded services only: data directory, restarts, faults, observers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, KeysAndAttributes,
    PutRequest, ScalarAttributeType, TimeToLiveSpecification, TransactWriteItem, Update, WriteRequest,
};
use aws_sdk_sqs::types::QueueAttributeName;
use aws_smithy_types::retry::RetryConfig;
use bench_embedded::faults::FaultKind;
use bench_embedded::{Durability, Embedded, EmbeddedError, EmbeddedOptions, Recorder, Service};

type Ddb = aws_sdk_dynamodb::Client;
type Sqs = aws_sdk_sqs::Client;

fn open(dir: &Path, durability: Durability) -> Embedded {
    Embedded::open(EmbeddedOptions::new(dir).durability(durability)).unwrap()
}

fn with_faults(dir: &Path, faults: &str) -> Embedded {
    let options = EmbeddedOptions::new(dir).durability(Durability::Normal).faults(faults.parse().unwrap());
    Embedded::open(options).unwrap()
}

/// Returns clients that report every error instead of retrying.
fn clients_without_retries(embedded: &Embedded) -> (Ddb, Sqs) {
    let config = embedded.sdk_config().into_builder().retry_config(RetryConfig::disabled()).build();
    (Ddb::new(&config), Sqs::new(&config))
}

fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

fn n(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

async fn create_table(ddb: &Ddb) {
    ddb.create_table()
        .table_name("table")
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(
            AttributeDefinition::builder()
                .attribute_name("id")
                .attribute_type(ScalarAttributeType::S)
                .build()
                .unwrap(),
        )
        .key_schema(KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap())
        .send()
        .await
        .unwrap();
}

async fn create_queue(sqs: &Sqs) -> String {
    sqs.create_queue().queue_name("queue").send().await.unwrap().queue_url.unwrap()
}

async fn number(ddb: &Ddb, id: &str) -> Option<String> {
    let got = ddb.get_item().table_name("table").key("id", s(id)).consistent_read(true).send().await.unwrap();
    Some(got.item?.get("n")?.as_n().unwrap().clone())
}

fn add(id: &str) -> Update {
    Update::builder()
        .table_name("table")
        .key("id", s(id))
        .update_expression("ADD n :one")
        .expression_attribute_values(":one", n(1))
        .build()
        .unwrap()
}

async fn everything_survives_a_reopen(durability: Durability) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    let embedded = open(&dir, durability);
    assert_eq!(embedded.epoch(), 1);
    let (ddb, sqs) = (Ddb::new(&embedded.sdk_config()), Sqs::new(&embedded.sdk_config()));
    create_table(&ddb).await;
    let url = create_queue(&sqs).await;
    ddb.put_item().table_name("table").item("id", s("a")).item("n", n(7)).send().await.unwrap();
    for body in ["in flight", "visible"] {
        sqs.send_message().queue_url(&url).message_body(body).send().await.unwrap();
    }
    let held = sqs.receive_message().queue_url(&url).visibility_timeout(43_200).send().await.unwrap();
    assert_eq!(held.messages().len(), 1);
    let opened_twice = Embedded::open(EmbeddedOptions::new(&dir)).unwrap_err();
    assert!(matches!(opened_twice, EmbeddedError::InUse { .. }), "{opened_twice}");
    embedded.close();
    assert!(ddb.list_tables().send().await.is_err(), "closed");

    let embedded = open(&dir, durability);
    assert_eq!(embedded.epoch(), 2);
    let (ddb, sqs) = (Ddb::new(&embedded.sdk_config()), Sqs::new(&embedded.sdk_config()));
    assert_eq!(number(&ddb, "a").await.as_deref(), Some("7"));
    let messages = sqs
        .receive_message()
        .queue_url(&url)
        .max_number_of_messages(10)
        .message_system_attribute_names(
            aws_sdk_sqs::types::MessageSystemAttributeName::ApproximateReceiveCount,
        )
        .send()
        .await
        .unwrap();
    let counts: BTreeMap<_, _> = messages
        .messages()
        .iter()
        .map(|message| {
            (message.body().unwrap(), message.attributes().unwrap().values().next().unwrap().as_str())
        })
        .collect();
    assert_eq!(counts, BTreeMap::from([("in flight", "1"), ("visible", "1")]));
}

#[tokio::test]
async fn everything_survives_a_reopen_full() {
    everything_survives_a_reopen(Durability::Full).await;
}

#[tokio::test]
async fn everything_survives_a_reopen_normal() {
    everything_survives_a_reopen(Durability::Normal).await;
}

#[tokio::test]
async fn the_directory_is_free_when_the_last_user_is_gone() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = open(temp.path(), Durability::Full);
    let config = embedded.sdk_config();
    drop(embedded);
    // A client still works, so the lock is still held.
    Ddb::new(&config).list_tables().send().await.unwrap();
    assert!(matches!(Embedded::open(EmbeddedOptions::new(temp.path())), Err(EmbeddedError::InUse { .. })));
    drop(config);
    open(temp.path(), Durability::Full);
}

#[test]
fn open_errors_are_one_sentence() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = Embedded::open(EmbeddedOptions::new(&file)).unwrap_err().to_string();
    assert!(error.contains("file") && error.ends_with('.') && !error.contains('\n'), "{error}");
    for name in ["dynamodb.sqlite", "sqs.sqlite"] {
        let dir = temp.path().join(format!("for-{name}"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join(name), "this is not a database, and long enough to be looked at ".repeat(40))
            .unwrap();
        let error = Embedded::open(EmbeddedOptions::new(&dir)).unwrap_err();
        assert!(matches!(error, EmbeddedError::Store { .. }), "{error:?}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

/// Concurrent writers with full durability share disk waits; no write may be lost or duplicated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_of_writers_are_exact() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = open(temp.path(), Durability::Full);
    let (ddb, sqs) = (Ddb::new(&embedded.sdk_config()), Sqs::new(&embedded.sdk_config()));
    create_table(&ddb).await;
    let url = create_queue(&sqs).await;
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..16 {
        let (ddb, sqs, url) = (ddb.clone(), sqs.clone(), url.clone());
        tasks.spawn(async move {
            for _ in 0..10 {
                let write = ddb.transact_write_items();
                let write = write.transact_items(TransactWriteItem::builder().update(add("all")).build());
                let own = TransactWriteItem::builder().update(add(&format!("w{writer}"))).build();
                write.transact_items(own).send().await.unwrap();
                sqs.send_message().queue_url(&url).message_body("x").send().await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    embedded.close();
    let embedded = open(temp.path(), Durability::Full);
    let (ddb, sqs) = (Ddb::new(&embedded.sdk_config()), Sqs::new(&embedded.sdk_config()));
    assert_eq!(number(&ddb, "all").await.as_deref(), Some("160"));
    for writer in 0..16 {
        assert_eq!(number(&ddb, &format!("w{writer}")).await.as_deref(), Some("10"));
    }
    let name = QueueAttributeName::ApproximateNumberOfMessages;
    let attributes =
        sqs.get_queue_attributes().queue_url(&url).attribute_names(name.clone()).send().await.unwrap();
    assert_eq!(attributes.attributes().unwrap()[&name], "160");
}

#[tokio::test]
async fn expired_items_are_swept() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = open(temp.path(), Durability::Normal);
    let ddb = Ddb::new(&embedded.sdk_config());
    create_table(&ddb).await;
    let ttl = TimeToLiveSpecification::builder().attribute_name("expires").enabled(true).build().unwrap();
    ddb.update_time_to_live().table_name("table").time_to_live_specification(ttl).send().await.unwrap();
    let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    for (id, expires) in [("old", now_s - 60), ("new", now_s + 3600)] {
        let put = ddb.put_item().table_name("table").item("id", s(id)).item("n", n(1));
        put.item("expires", n(expires)).send().await.unwrap();
    }
    assert_eq!(embedded.sweep_ttl().await.unwrap(), 1);
    assert_eq!(number(&ddb, "old").await, None);
    assert_eq!(number(&ddb, "new").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_closed_service_is_an_error_not_a_wait() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = open(temp.path(), Durability::Normal);
    let (ddb, sqs) = clients_without_retries(&embedded);
    let sweeper = embedded.clone();
    let url = create_queue(&sqs).await;
    embedded.close();
    assert!(ddb.list_tables().send().await.unwrap_err().as_service_error().is_none());
    assert!(sqs.send_message().queue_url(url).message_body("x").send().await.is_err());
    assert!(matches!(sweeper.sweep_ttl().await, Err(EmbeddedError::Closed)));
    assert!(sweeper.s3().is_none());
}

#[tokio::test]
async fn an_aborted_long_poll_loses_no_messages() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = open(temp.path(), Durability::Normal);
    let (_, sqs) = clients_without_retries(&embedded);
    let url = create_queue(&sqs).await;
    for round in 0..20 {
        let waiting = sqs.receive_message().queue_url(&url).wait_time_seconds(20).send();
        let waiting = tokio::spawn(waiting);
        // The abort comes before, while and after the poll waits.
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        sqs.send_message().queue_url(&url).message_body(round.to_string()).send().await.unwrap();
        let received = sqs.receive_message().queue_url(&url).wait_time_seconds(20).send().await.unwrap();
        let message = &received.messages()[0];
        assert_eq!(message.body(), Some(round.to_string().as_str()));
        let delete = sqs.delete_message().queue_url(&url);
        delete.receipt_handle(message.receipt_handle().unwrap()).send().await.unwrap();
    }
}

#[tokio::test]
async fn injected_refusals_are_the_real_errors() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = with_faults(
        temp.path(),
        "seed=3,throttle@GetItem=12,conflict@TransactWriteItems=1,conflict@UpdateItem=1,throttle@ReceiveMessage=1,throttle@HeadBucket=1",
    );
    let (ddb, sqs) = clients_without_retries(&embedded);
    create_table(&ddb).await;
    let url = create_queue(&sqs).await;
    let get = || ddb.get_item().table_name("table").key("id", s("a")).send();
    let mut kinds = [0; 3];
    for _ in 0..12 {
        let error = get().await.unwrap_err().into_service_error();
        kinds[0] += u32::from(error.is_provisioned_throughput_exceeded_exception());
        kinds[1] += u32::from(error.is_request_limit_exceeded());
        kinds[2] += u32::from(error.is_throttling_exception());
    }
    assert!(kinds.iter().all(|kind| *kind > 0) && kinds.iter().sum::<u32>() == 12, "{kinds:?}");
    get().await.unwrap();

    let write = || {
        let items = ["a", "b", "c"].map(|id| TransactWriteItem::builder().update(add(id)).build());
        ddb.transact_write_items().set_transact_items(Some(items.into())).send()
    };
    let error = write().await.unwrap_err().into_service_error();
    let aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException(
        canceled,
    ) = error
    else {
        panic!("{error:?}")
    };
    let codes: Vec<_> = canceled.cancellation_reasons().iter().map(|reason| reason.code().unwrap()).collect();
    assert_eq!(codes.iter().filter(|code| **code == "TransactionConflict").count(), 1);
    assert_eq!(codes.iter().filter(|code| **code == "None").count(), 2);
    assert_eq!(number(&ddb, "a").await, None);
    write().await.unwrap();
    let update = ddb.update_item().table_name("table").key("id", s("a")).update_expression("ADD n :one");
    let error = update.expression_attribute_values(":one", n(1)).send().await.unwrap_err();
    assert!(error.into_service_error().is_transaction_conflict_exception());

    let error = sqs.receive_message().queue_url(&url).send().await.unwrap_err().into_service_error();
    assert!(error.is_request_throttled(), "{error:?}");

    let s3 = aws_sdk_s3::config::Builder::from(&embedded.sdk_config()).force_path_style(true);
    let s3 = aws_sdk_s3::Client::from_conf(s3.retry_config(RetryConfig::disabled()).build());
    let error = s3.head_bucket().bucket("bucket").send().await.unwrap_err();
    assert_eq!(error.raw_response().unwrap().status().as_u16(), 503);
    assert_eq!(embedded.fault_counts().count(FaultKind::Throttle), 14);
    assert_eq!(embedded.fault_counts().count(FaultKind::Conflict), 2);
}

#[tokio::test]
async fn the_sdk_retries_throttled_calls() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = with_faults(temp.path(), "throttle@PutItem=1");
    let ddb = Ddb::new(&embedded.sdk_config());
    create_table(&ddb).await;
    ddb.put_item().table_name("table").item("id", s("a")).item("n", n(1)).send().await.unwrap();
    assert_eq!(embedded.fault_counts().count(FaultKind::Throttle), 1);
}

#[tokio::test]
async fn a_lost_response_leaves_the_effect() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = with_faults(
        temp.path(),
        "lost-response@UpdateItem=1,lost-response@TransactWriteItems=1,lost-response@SendMessage=1",
    );
    let (ddb, sqs) = clients_without_retries(&embedded);
    create_table(&ddb).await;
    let url = create_queue(&sqs).await;
    let update = ddb.update_item().table_name("table").key("id", s("a")).update_expression("ADD n :one");
    let error = update.expression_attribute_values(":one", n(1)).send().await.unwrap_err();
    assert!(
        matches!(error, aws_sdk_dynamodb::error::SdkError::DispatchFailure(ref f) if f.is_io()),
        "{error:?}"
    );
    assert_eq!(number(&ddb, "a").await.as_deref(), Some("1"));
    assert!(sqs.send_message().queue_url(&url).message_body("x").send().await.is_err());
    assert_eq!(sqs.receive_message().queue_url(&url).send().await.unwrap().messages().len(), 1);
    // With retries, the transaction is repeated with the same token, and executed once.
    let retrying = Ddb::new(&embedded.sdk_config());
    let write = retrying.transact_write_items();
    write.transact_items(TransactWriteItem::builder().update(add("b")).build()).send().await.unwrap();
    assert_eq!(number(&ddb, "b").await.as_deref(), Some("1"));
    assert_eq!(embedded.fault_counts().count(FaultKind::LostResponse), 3);
}

#[tokio::test]
async fn part_of_a_batch_is_unprocessed() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = with_faults(temp.path(), "seed=5,unprocessed=1.0");
    let (ddb, _) = clients_without_retries(&embedded);
    create_table(&ddb).await;
    let put = |i: u64| {
        let put = PutRequest::builder().item("id", s(i.to_string())).item("n", n(i)).build().unwrap();
        WriteRequest::builder().put_request(put).build()
    };
    let mut left: Vec<_> = (0..20).map(put).collect();
    let mut rounds = 0;
    while !left.is_empty() {
        let written = ddb.batch_write_item().request_items("table", left.clone()).send().await.unwrap();
        let unprocessed = written.unprocessed_items().and_then(|items| items.get("table")).cloned();
        let unprocessed = unprocessed.unwrap_or_default();
        assert!(unprocessed.len() < left.len());
        assert!(rounds > 0 || !unprocessed.is_empty());
        assert!(unprocessed.iter().all(|request| left.contains(request)));
        for request in left.iter().filter(|request| unprocessed.contains(request)) {
            let id = request.put_request().unwrap().item()["id"].as_s().unwrap();
            assert_eq!(number(&ddb, id).await, None, "unprocessed is not written");
        }
        left = unprocessed;
        rounds += 1;
    }
    for i in 0..20 {
        assert_eq!(number(&ddb, &i.to_string()).await, Some(i.to_string()));
    }
    let mut keys = KeysAndAttributes::builder().projection_expression("n");
    for i in 0..20 {
        keys = keys.keys([("id".to_owned(), s(i.to_string()))].into());
    }
    let read = ddb.batch_get_item().request_items("table", keys.build().unwrap()).send().await.unwrap();
    let found = read.responses().unwrap()["table"].len();
    let rest = read.unprocessed_keys().unwrap()["table"].clone();
    assert_eq!(found + rest.keys().len(), 20);
    assert!(found > 0 && !rest.keys().is_empty());
    assert_eq!(rest.projection_expression(), Some("n"));
}

#[tokio::test]
async fn messages_are_duplicated_and_lost() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = with_faults(temp.path(), "lose=1,duplicate=1.0");
    let sqs = Sqs::new(&embedded.sdk_config());
    let url = create_queue(&sqs).await;
    for body in ["lost", "doubled"] {
        let sent = sqs.send_message().queue_url(&url).message_body(body).send().await.unwrap();
        assert!(sent.message_id().is_some());
    }
    let received = sqs.receive_message().queue_url(&url).max_number_of_messages(10).send().await.unwrap();
    assert_eq!(
        received.messages().iter().map(|m| m.body().unwrap()).collect::<Vec<_>>(),
        ["doubled", "doubled"]
    );
    assert_eq!(embedded.fault_counts().by_name(), BTreeMap::from([("duplicate", 1), ("lose", 1)]));
}

#[tokio::test]
async fn calls_are_observed() {
    let temp = tempfile::tempdir().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let recorder = Recorder::new(move |call| {
        let resource = call.resource.map(str::to_owned);
        log.lock().unwrap().push((call.service, call.action.to_owned(), resource));
    });
    let options = EmbeddedOptions::new(temp.path()).durability(Durability::Normal).recorder(recorder);
    let embedded = Embedded::open(options).unwrap();
    let (ddb, sqs) = clients_without_retries(&embedded);
    create_table(&ddb).await;
    let url = create_queue(&sqs).await;
    sqs.send_message().queue_url(&url).message_body("x").send().await.unwrap();
    let s3 = aws_sdk_s3::config::Builder::from(&embedded.sdk_config()).force_path_style(true).build();
    let s3 = aws_sdk_s3::Client::from_conf(s3);
    s3.create_bucket().bucket("bucket").send().await.unwrap();
    s3.put_object().bucket("bucket").key("a/b").body(Vec::from(*b"x").into()).send().await.unwrap();
    let of = |service, action: &str, resource: &str| (service, action.to_owned(), Some(resource.to_owned()));
    assert_eq!(
        *seen.lock().unwrap(),
        [
            of(Service::DynamoDb, "CreateTable", "table"),
            of(Service::Sqs, "CreateQueue", "queue"),
            of(Service::Sqs, "SendMessage", "queue"),
            of(Service::S3, "CreateBucket", "bucket"),
            of(Service::S3, "PutObject", "bucket"),
        ]
    );
}

#[tokio::test]
async fn errors_name_the_table() {
    let temp = tempfile::tempdir().unwrap();
    let embedded = open(temp.path(), Durability::Normal);
    let (ddb, _) = clients_without_retries(&embedded);
    let error = ddb.get_item().table_name("absent").key("id", s("a")).send().await.unwrap_err();
    assert_eq!(error.code(), Some("ResourceNotFoundException"));
}
