//! A killed process loses no write that was acknowledged.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, Put, ScalarAttributeType,
    TransactWriteItem, Update,
};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};

const DIR_VARIABLE: &str = "BENCH_EMBEDDED_KILL_TEST_DIR";
/// Number of lines to wait for before the kill.
const ACKNOWLEDGED_MIN: usize = 100;

fn open(dir: &Path, durability: Durability) -> Embedded {
    Embedded::open(EmbeddedOptions::new(dir).durability(durability)).unwrap()
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// The writing process: prints each acknowledged write until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the other tests as a process of its own"]
async fn writer() {
    let Ok(dir) = std::env::var(DIR_VARIABLE) else { return };
    let (dir, durability) = dir.split_once('|').unwrap();
    let durability = if durability == "full" { Durability::Full } else { Durability::Normal };
    let config = open(Path::new(dir), durability).sdk_config();
    let (ddb, sqs) = (aws_sdk_dynamodb::Client::new(&config), aws_sdk_sqs::Client::new(&config));
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
    let url = sqs.create_queue().queue_name("queue").send().await.unwrap().queue_url.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let (ddb, sqs, url) = (ddb.clone(), sqs.clone(), url.clone());
        writers.spawn(async move {
            for n in 0.. {
                let id = format!("{writer}-{n}");
                let put = Put::builder().table_name("table").item("id", s(&id)).build().unwrap();
                let add = Update::builder().table_name("table").key("id", s("total"));
                let add = add.update_expression("ADD n :one");
                let add = add.expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
                ddb.transact_write_items()
                    .transact_items(TransactWriteItem::builder().put(put).build())
                    .transact_items(TransactWriteItem::builder().update(add.build().unwrap()).build())
                    .send()
                    .await
                    .unwrap();
                println!("item {id}");
                sqs.send_message().queue_url(&url).message_body(&id).send().await.unwrap();
                println!("message {id}");
            }
        });
    }
    writers.join_next().await;
}

async fn survives_a_kill(durability: Durability, name: &str) {
    let temp = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::writer", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIR_VARIABLE, format!("{}|{name}", temp.path().display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = Vec::new();
    while acknowledged.len() < ACKNOWLEDGED_MIN {
        acknowledged.push(lines.next().unwrap().unwrap());
    }
    child.kill().unwrap();
    // Lines written before the kill that are still in the pipe count too; the last line may be
    // incomplete.
    acknowledged.extend(lines.map_while(Result::ok));
    child.wait().unwrap();
    acknowledged.pop();
    let of = |kind: &str| {
        let ids = acknowledged.iter().filter_map(|line| line.strip_prefix(kind));
        ids.map(str::to_owned).collect::<BTreeSet<_>>()
    };

    let embedded = open(temp.path(), durability);
    assert_eq!(embedded.epoch(), 2);
    let config = embedded.sdk_config();
    let (ddb, sqs) = (aws_sdk_dynamodb::Client::new(&config), aws_sdk_sqs::Client::new(&config));
    let get = |id: String| ddb.get_item().table_name("table").key("id", s(&id)).send();
    let mut found = 0;
    for id in of("item ") {
        assert!(get(id.clone()).await.unwrap().item.is_some(), "item {id} is lost");
        found += 1;
    }
    let total =
        get("total".to_owned()).await.unwrap().item.unwrap()["n"].as_n().unwrap().parse::<usize>().unwrap();
    // At most one transaction of each of the eight writers was executed but not yet reported.
    assert!((found..=found + 9).contains(&total), "{found} items acknowledged, {total} counted");
    let url = sqs.get_queue_url().queue_name("queue").send().await.unwrap().queue_url.unwrap();
    let mut bodies = BTreeSet::new();
    loop {
        let received = sqs.receive_message().queue_url(&url).max_number_of_messages(10).send().await.unwrap();
        if received.messages().is_empty() {
            break;
        }
        bodies.extend(received.messages().iter().map(|message| message.body().unwrap().to_owned()));
    }
    let lost: Vec<_> = of("message ").difference(&bodies).cloned().collect();
    assert!(lost.is_empty(), "messages lost: {lost:?}");
}

#[tokio::test]
async fn full_durability() {
    survives_a_kill(Durability::Full, "full").await;
}

#[tokio::test]
async fn normal_durability() {
    survives_a_kill(Durability::Normal, "normal").await;
}
