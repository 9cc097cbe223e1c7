//! A role without a permission: every error names the missing permission.

use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use bench_blobs::Blobs;
use bench_domain::RunId;
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
use bench_lambda::handle_batch;
use bench_queue::{Message, QueueName, QueueSettings, Queues};
use bench_state::{State, WaitKey, WaitKind};
use bytes::Bytes;

struct Role {
    embedded: Embedded,
    state: State,
    queues: Queues,
    blobs: Blobs,
    _dir: tempfile::TempDir,
}

/// Sets up a role without permission for `action`. Another role created table, queues and bucket.
async fn role_without(action: &str) -> Role {
    let dir = tempfile::tempdir().unwrap();
    let open = |faults: &str| {
        let options = EmbeddedOptions::new(dir.path()).durability(Durability::Normal);
        Embedded::open(options.faults(faults.parse().unwrap())).unwrap()
    };
    let made = open("");
    State::new(&made.sdk_config(), "runs", 1).ensure_table().await.unwrap();
    let queues = Queues::create(&made.sdk_config(), "bench-", QueueSettings::default()).await.unwrap();
    let urls = QueueName::ALL.map(|name| (name, queues.url(name).unwrap().to_owned()));
    Blobs::new(&made.sdk_config(), "bodies").ensure_bucket().await.unwrap();
    made.close();
    let embedded = open(&format!("deny@{action}=1.0"));
    let aws = embedded.sdk_config();
    Role {
        state: State::new(&aws, "runs", 1),
        queues: Queues::new(&aws, urls.into()),
        blobs: Blobs::new(&aws, "bodies"),
        embedded,
        _dir: dir,
    }
}

fn assert_names<E: std::fmt::Display>(error: E, right: &str) {
    let error = error.to_string();
    assert!(error.contains("AccessDenied") && error.contains(right), "{right}: {error}");
}

#[tokio::test]
async fn dynamodb() {
    let run = RunId::random();
    let role = role_without("GetItem").await;
    let error = role.state.run(run).await.unwrap_err();
    assert!(error.is_transient(), "a role can be mended");
    assert_names(error, "dynamodb:GetItem");
    // No retries: waiting doesn't grant permissions.
    assert_eq!(role.embedded.fault_counts().by_name().get("deny"), Some(&1));
    let role = role_without("Query").await;
    assert_names(role.state.run_with_benchmarks(run).await.unwrap_err(), "dynamodb:Query");
    let role = role_without("UpdateItem").await;
    let (shared, now) =
        (WaitKey { credential: "system".to_owned(), model: "m".to_owned() }, bench_clock::now());
    let wait = role.state.extend_wait(&shared, now, WaitKind::RateLimited, now);
    assert_names(wait.await.unwrap_err(), "dynamodb:UpdateItem");
}

#[tokio::test]
async fn sqs() {
    let message = Message::Plan { run: RunId::random(), generation: 1 };
    let role = role_without("SendMessageBatch").await;
    assert_names(role.queues.send(&message, Duration::ZERO).await.unwrap_err(), "sqs:SendMessageBatch");
    let role = role_without("GetQueueAttributes").await;
    assert_names(role.queues.depth(QueueName::Items).await.unwrap_err(), "sqs:GetQueueAttributes");
    let role = role_without("ChangeMessageVisibility").await;
    let again = role.queues.retry_later(QueueName::Items, false, "receipt", 1).await;
    assert_names(again.unwrap_err(), "sqs:ChangeMessageVisibility");
}

#[tokio::test]
async fn s3() {
    let put = |role: &Role| {
        let blobs = role.blobs.clone();
        async move { blobs.put("k", Bytes::from_static(b"x"), "text/plain").await }
    };
    let role = role_without("PutObject").await;
    assert_names(put(&role).await.unwrap_err(), "s3:PutObject");
    let role = role_without("GetObject").await;
    put(&role).await.unwrap();
    assert_names(role.blobs.get("k").await.unwrap_err(), "s3:GetObject");
    // Responses to HEAD have no text.
    let role = role_without("HeadObject").await;
    assert_names(role.blobs.head("k").await.unwrap_err(), "s3:GetObject");
    let role = role_without("ListObjectsV2").await;
    assert_names(role.blobs.delete_prefix("runs/").await.unwrap_err(), "s3:ListObjectsV2");
}

#[tokio::test]
async fn a_message_that_fails_for_it_comes_again() {
    let role = role_without("GetItem").await;
    let run = RunId::random();
    let mut record = SqsMessage::default();
    record.message_id = Some("m-1".to_owned());
    record.body = Some(Message::Plan { run, generation: 1 }.to_body());
    let mut event = SqsEvent::default();
    event.records = vec![record];
    let answer = handle_batch(event, QueueName::Plans, &role.queues, |message| {
        let state = role.state.clone();
        async move { state.run(message.run()).await.map(drop) }
    })
    .await;
    let failed: Vec<_> = answer.batch_item_failures.iter().map(|failure| &*failure.item_identifier).collect();
    assert_eq!(failed, ["m-1"]);
}
