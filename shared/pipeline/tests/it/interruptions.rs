//! Services that fail at the worst time, and runs that change meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use bench_domain::sample::SampleState;
use bench_domain::{RunStatus, Stage};
use bench_lambda::Deadline;
use bench_pipeline::PipelineConfig;
use bench_queue::QueueName;
use bench_state::{EventKind, NewEvent};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::log;
use crate::provider::{ANSWER_TOKENS, PROMPT_TOKENS, Reply};
use crate::run::{Run, model};
use crate::world::{World, handle, handle_from};

#[tokio::test]
async fn a_sample_is_counted_once_when_the_finisher_cannot_be_sent_for() {
    let world = World::new(&[Reply::Text(r"\boxed{7}")]).await;
    let run = Run::aime(&world, 1, model(&world), json!({})).await;
    let tokens = async || {
        let hours = world.state.tokens_by_hour(bench_clock::now(), 1).await.unwrap();
        hours.iter().map(|(_, sum)| sum.input_tokens + sum.output_tokens).sum::<u64>()
    };
    let progress = async || {
        let events = world.state.events(run.id, 0, 100).await.unwrap();
        let of_kind = events.into_iter().filter(|event| event.event_type == EventKind::BenchmarkProgress);
        of_kind.map(|event| event.data.unwrap()["completed"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let pipeline = world.pipeline_with_queues(&[QueueName::Items, QueueName::Turns]);
    assert!(!handle(&pipeline, &run.answer_message(0)).await, "its message is delivered again");
    pipeline.flush().await;
    assert!(run.record(&world, 0).await.finished.is_some());
    assert_eq!((tokens().await, progress().await), (PROMPT_TOKENS + ANSWER_TOKENS, vec![1]));

    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    pipeline.flush().await;
    assert_eq!(world.queue_depth(QueueName::Finishes).await, (1, 0));
    assert_eq!((tokens().await, progress().await), (PROMPT_TOKENS + ANSWER_TOKENS, vec![1]));
    assert_eq!(world.provider.request_count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_an_attempt_is_reported_when_its_sample_cannot_be_given_back() {
    log::watch();
    let world = World::new(&[Reply::Text(r"\boxed{7}")]).await;
    let run = Run::aime(&world, 1, model(&world), json!({})).await;
    let client = Client::new(&world.embedded.sdk_config());
    let is_gone = AtomicBool::new(false);
    world.hook_before("PutObject", move || {
        if !is_gone.swap(true, Ordering::Relaxed) {
            let delete = async {
                client.delete_table().table_name("bench").send().await.unwrap();
            };
            block_in_place(|| Handle::current().block_on(delete));
        }
    });
    assert!(!handle(&world.pipeline(), &run.answer_message(0)).await);
    let logged = |text: &str| log::lines_with(&run.id.to_string(), text).len();
    assert_eq!(logged("comes again: could not commit the sample"), 1);
    assert_eq!(logged("could not be given back: could not give the sample back"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_others_keep_changing_is_failed_by_the_next_delivery() {
    let world = World::new(&[Reply::Status(401, None)]).await;
    let run = Run::aime(&world, 1, model(&world), json!({})).await;
    let changes = Arc::new(AtomicUsize::new(0));
    let (state, id, counted) = (world.state.clone(), run.id, Arc::clone(&changes));
    world.hook_before("TransactWriteItems", move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let change = async {
            let found = state.run(id).await.unwrap().unwrap();
            let event = NewEvent::new(EventKind::RunStarted, "changed");
            let (next, generation) = (found.state.clone(), found.generation);
            state.change_run(&found, &next, generation, &event, bench_clock::now()).await.unwrap();
        };
        block_in_place(|| Handle::current().block_on(change));
    });
    let pipeline = world.pipeline();
    assert!(!handle(&pipeline, &run.answer_message(0)).await, "its message is delivered again");
    assert!(changes.load(Ordering::Relaxed) >= 20);
    assert_eq!(run.stored_run(&world).await.run.state.status(), RunStatus::Running);
    assert!(run.is_open(&world, 0).await);

    world.remove_hook();
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    assert_eq!(run.stored_run(&world).await.run.state.status(), RunStatus::Failed);
    assert_eq!(world.queue_depth(QueueName::Finishes).await, (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invocation_that_ends_does_not_wait_for_the_budgets_accounts() {
    let world = World::new(&[Reply::Text(r"\boxed{7}")]).await;
    let budget = json!({"budget": {"tokens": PROMPT_TOKENS + ANSWER_TOKENS}});
    let run = Run::aime(&world, 2, model(&world), budget).await;
    let pipeline = Arc::new(world.pipeline());
    // The first answer has arrived but isn't stored yet. Only its commit shows whether the budget is reached.
    let (arrived, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (at_store, released) = (Arc::clone(&arrived), Arc::clone(&go_on));
    world.hook_before("PutObject", move || {
        at_store.store(true, Ordering::Relaxed);
        block_in_place(|| {
            while !released.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    });
    let (first, message) = (Arc::clone(&pipeline), run.answer_message(0));
    let first = tokio::spawn(async move { handle(&first, &message).await });
    while !arrived.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let before = bench_clock::now();
    let deadline = Deadline::after(PipelineConfig::default().reserve);
    let message = run.answer_message(1);
    let second = handle_from(&pipeline, QueueName::Items, &message, deadline);
    let second = tokio::time::timeout(Duration::from_secs(120), second).await;
    go_on.store(true, Ordering::Relaxed);
    assert_eq!(second, Ok(true), "it waited for the first one");
    let record = run.record(&world, 1).await;
    let SampleState::Open { due_at } = record.state else { panic!("{:?}", record.state) };
    assert!(due_at > before && record.stage() == Stage::Answer, "{record:?}");
    assert_eq!((record.history.failures, record.history.waits), (0, 0));
    assert_eq!(world.queue_depth(QueueName::Items).await, (0, 1));
    assert_eq!(run.stored_run(&world).await.run.state.status(), RunStatus::Running);
    assert!(first.await.unwrap());
    assert_eq!(world.provider.request_count(), 1);
}
