//! Dead letters, on the embedded AWS services.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bench_dead_letters::DeadLetters;
use bench_domain::{Code, RunId, RunStatus, testing};
use bench_embedded::{Durability, Embedded, EmbeddedOptions, Recorder};
use bench_lambda::{Deadline, SqsEvent, SqsMessage};
use bench_queue::{Message, QueueName, QueueSettings, Queues};
use bench_state::{EventKind, NewEvent, State};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

/// Name under which the function's calls are recorded.
const FUNCTION: &str = "dead-letters";

/// Handles one message from the dead-letter queue of its kind. Returns `false` if it was reported as failed.
async fn handle(dead_letters: &DeadLetters, message: &Message) -> bool {
    let mut record = SqsMessage::default();
    record.message_id = Some("1".to_owned());
    record.body = Some(message.to_body());
    record.event_source_arn =
        Some(format!("arn:aws:sqs:eu-west-1:123456789012:bench-{}-dead", message.queue().as_str()));
    let mut event = SqsEvent::default();
    event.records = vec![record];
    let response = dead_letters.handle(event, Deadline::after(Duration::from_secs(60))).await;
    response.batch_item_failures.is_empty()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_others_keep_changing_is_failed_by_the_next_delivery() {
    let directory = tempfile::tempdir().unwrap();
    // `others`: true if another writer changes the run before each write of the function. `changes`: their number.
    let (others, changes) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let change: Arc<std::sync::OnceLock<Box<dyn Fn() + Send + Sync>>> = Arc::default();
    let recorder = {
        let (others, changes, change) = (Arc::clone(&others), Arc::clone(&changes), Arc::clone(&change));
        Recorder::new(move |call| {
            let is_change = call.caller == Some(FUNCTION) && call.action == "TransactWriteItems";
            if is_change && others.load(Ordering::Relaxed) {
                changes.fetch_add(1, Ordering::Relaxed);
                change.get().unwrap()();
            }
        })
    };
    let options = EmbeddedOptions::new(directory.path()).durability(Durability::Normal).recorder(recorder);
    let embedded = Embedded::open(options).unwrap();
    let state = State::new(&embedded.sdk_config(), "bench", embedded.epoch());
    state.ensure_table().await.unwrap();
    let queues = Queues::create(&embedded.sdk_config(), "bench-", QueueSettings::default()).await.unwrap();
    let run = RunId::random();
    let spec = testing::spec(run, testing::template("openrouter/acme/model", "mmlu_pro"));
    let created = NewEvent::new(EventKind::RunCreated, "created");
    assert!(state.create_run(&spec, &created, None, bench_clock::now()).await.unwrap());
    let changing = state.clone();
    let set = change.set(Box::new(move || {
        let change = async {
            let found = changing.run(run).await.unwrap().unwrap();
            let event = NewEvent::new(EventKind::RunStarted, "changed");
            let (next, generation) = (found.state.clone(), found.generation);
            changing.change_run(&found, &next, generation, &event, bench_clock::now()).await.unwrap();
        };
        block_in_place(|| Handle::current().block_on(change));
    }));
    assert!(set.is_ok());

    let dead_letters = DeadLetters {
        state: State::new(&embedded.sdk_config_for(FUNCTION), "bench", embedded.epoch()),
        queues: queues.clone(),
        after_outage: Duration::ZERO,
    };
    let message = Message::Plan { run, generation: 1 };
    assert!(!handle(&dead_letters, &message).await, "it stays in the dead-letter queue");
    assert!(changes.load(Ordering::Relaxed) >= 20);
    assert!(state.run(run).await.unwrap().unwrap().state.status().is_open());

    others.store(false, Ordering::Relaxed);
    assert!(handle(&dead_letters, &message).await);
    let found = state.run(run).await.unwrap().unwrap();
    assert_eq!(found.state.status(), RunStatus::Failed);
    assert_eq!(found.state.error_code(), Some(Code::PlanFailed));
    assert_eq!(queues.depth(QueueName::Finishes).await.unwrap().visible, 1);
}
