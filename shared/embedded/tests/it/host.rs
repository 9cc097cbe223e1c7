//! The Lambda host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lambda_events::event::sqs::SqsBatchResponse;
use bench_embedded::host::{Host, Mapping};
use bench_embedded::{Durability, Embedded, EmbeddedOptions};
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
