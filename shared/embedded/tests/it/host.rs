//! The Lambda host.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_sqs::types::QueueAttributeName;
use bench_embedded::host::{Host, Mapping, QueueClient};
use bench_embedded::{Durability, Embedded, EmbeddedOptions, Faults};
use tokio::sync::Notify;

/// Time after which a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn handlers_see_that_their_place_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions::new(folder.path()).durability(Durability::Normal);
    let embedded = Embedded::open(options).unwrap();
    let sqs = aws_sdk_sqs::Client::new(&embedded.sdk_config());
    let queue_url = sqs.create_queue().queue_name("q").send().await.unwrap().queue_url.unwrap();
    let (wanted, handled) = (Arc::<AtomicUsize>::default(), Arc::<Notify>::default());
    let (seen, told) = (Arc::clone(&wanted), Arc::clone(&handled));
    let handler = move |_, _| -> bench_embedded::host::HandlerFuture {
        let (seen, told) = (Arc::clone(&seen), Arc::clone(&told));
        Box::pin(async move {
            while seen.load(Ordering::Relaxed) == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            told.notify_one();
            SqsBatchResponse::default()
        })
    };
    let mapping = Mapping {
        name: "test",
        queue_url: queue_url.clone(),
        handler: Arc::new(handler),
        batch_size: 1,
        concurrency: 1,
        adjustable: false,
        timeout: PATIENCE,
        places_wanted: Some(Arc::clone(&wanted)),
    };
    let mut host = Host::start(&embedded.queue_client(sqs.clone()), vec![mapping]);
    let send = async || sqs.send_message().queue_url(&queue_url).message_body("m").send().await.unwrap();
    send().await;
    // Without another message, the handler keeps its place.
    assert!(tokio::time::timeout(Duration::from_millis(500), handled.notified()).await.is_err());
    send().await;
    tokio::time::timeout(PATIENCE, handled.notified()).await.unwrap();
    let is_free = async {
        while wanted.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_free).await.unwrap();
    host.stop(Duration::ZERO).await;
    assert_eq!(wanted.load(Ordering::Relaxed), 0);
}

/// Sends a message to a host, and returns the record that its function got. Checks that the message is deleted then.
async fn received_record(faults: &str, is_direct: bool) -> SqsMessage {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions::new(folder.path()).durability(Durability::Normal);
    let embedded = Embedded::open(options.faults(faults.parse::<Faults>().unwrap())).unwrap();
    let sqs = aws_sdk_sqs::Client::new(&embedded.sdk_config());
    let queue_url = sqs.create_queue().queue_name("q").send().await.unwrap().queue_url.unwrap();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |event: SqsEvent, _| -> bench_embedded::host::HandlerFuture {
        sender.send(event).unwrap();
        Box::pin(async { SqsBatchResponse::default() })
    };
    let mapping = Mapping {
        name: "test",
        queue_url: queue_url.clone(),
        handler: Arc::new(handler),
        batch_size: 10,
        concurrency: 10,
        adjustable: false,
        timeout: PATIENCE,
        places_wanted: None,
    };
    let client = match is_direct {
        true => embedded.queue_client(sqs.clone()),
        false => QueueClient::new(sqs.clone()),
    };
    let mut host = Host::start(&client, vec![mapping]);
    sqs.send_message().queue_url(&queue_url).message_body("é\"\n").send().await.unwrap();
    let mut event = tokio::time::timeout(PATIENCE, receiver.recv()).await.unwrap().unwrap();
    assert!(host.drain(PATIENCE).await);
    let names = [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    ];
    let asked = sqs.get_queue_attributes().queue_url(&queue_url).set_attribute_names(Some(names.into()));
    let left = asked.send().await.unwrap().attributes.unwrap();
    assert!(left.values().all(|count| count == "0"), "{faults}: {left:?}");
    assert_eq!(event.records.len(), 1);
    event.records.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_get_the_same_records_with_and_without_the_sdk() {
    let by_sdk = received_record("", false).await;
    let lost = "lost-response@DeleteMessageBatch=1,throttle@ReceiveMessage=1";
    for faults in ["", "throttle@DeleteMessageBatch=1", lost] {
        let mut directly = received_record(faults, true).await;
        assert!(directly.message_id.is_some() && directly.receipt_handle.is_some());
        assert_eq!(
            directly.attributes.keys().collect::<BTreeSet<_>>(),
            by_sdk.attributes.keys().collect::<BTreeSet<_>>()
        );
        directly.message_id.clone_from(&by_sdk.message_id);
        directly.receipt_handle.clone_from(&by_sdk.receipt_handle);
        directly.attributes.clone_from(&by_sdk.attributes);
        assert_eq!(directly, by_sdk, "{faults}");
    }
}
