//! Dead letters, on the embedded AWS services.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bench_dead_letters::{DeadLetters, Drained};
use bench_domain::sample::SampleState;
use bench_domain::{BenchmarkName, Code, Position, RunId, RunStatus, SampleRef, Stage, Timestamp, testing};
use bench_embedded::{Durability, Embedded, EmbeddedOptions, Recorder};
use bench_lambda::{Deadline, SqsEvent, SqsMessage};
use bench_queue::{Depth, MESSAGE_VERSION, Message, QueueName, QueueSettings, Queues, RECEIVES_MAX};
use bench_state::{Claim, EventKind, NewEvent, PlannedSample, State};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

/// Name under which the function's calls are recorded.
const FUNCTION: &str = "dead-letters";

/// The embedded services with their table and queues.
struct World {
    embedded: Embedded,
    state: State,
    queues: Queues,
    _directory: tempfile::TempDir,
}

impl World {
    async fn new(change: impl FnOnce(EmbeddedOptions) -> EmbeddedOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let embedded = Embedded::open(change(EmbeddedOptions::new(directory.path()))).unwrap();
        let state = State::new(&embedded.sdk_config(), "bench", embedded.epoch());
        state.ensure_table().await.unwrap();
        let queues =
            Queues::create(&embedded.sdk_config(), "bench-", QueueSettings::default()).await.unwrap();
        Self { embedded, state, queues, _directory: directory }
    }

    async fn create_run(&self) -> RunId {
        let run = RunId::random();
        let spec = testing::spec(run, testing::template("openrouter/acme/model", "mmlu_pro"));
        let created = NewEvent::new(EventKind::RunCreated, "created");
        assert!(self.state.create_run(&spec, &created, None, bench_clock::now()).await.unwrap());
        run
    }
}

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
    let world = World::new(|options| options.durability(Durability::Normal).recorder(recorder)).await;
    let World { embedded, state, queues, .. } = &world;
    let run = world.create_run().await;
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

/// Sends a text to a dead-letter queue.
async fn send_dead(queues: &Queues, queue: QueueName, body: &str) {
    let url = queues.dead_letter_url(queue).unwrap();
    let send = queues.client().send_message().queue_url(url).message_body(body);
    send.message_group_id("dead").send().await.unwrap();
}

/// As deployed, where a schedule invokes the function.
#[tokio::test]
async fn a_schedule_empties_all_queues_but_for_messages_of_other_versions() {
    let world = World::new(|options| options).await;
    let World { state, queues, .. } = &world;
    let run = world.create_run().await;

    // More than one batch of runs that are gone, a run that can't be planned, and what no version wrote.
    for _ in 0..12 {
        let gone = Message::Finish { run: RunId::random(), generation: 1 };
        send_dead(queues, QueueName::Finishes, &gone.to_body()).await;
    }
    send_dead(queues, QueueName::Plans, &Message::Plan { run, generation: 1 }.to_body()).await;
    send_dead(queues, QueueName::Items, "{").await;
    let newer = format!(r#"{{"v":{},"kind":"dream"}}"#, MESSAGE_VERSION + 1);
    send_dead(queues, QueueName::Turns, &newer).await;

    let dead_letters =
        DeadLetters { state: state.clone(), queues: queues.clone(), after_outage: Duration::ZERO };
    let deadline = Deadline::after(Duration::from_secs(240));
    let drained = dead_letters.drain(&json!({"task": "drain"}), deadline).await.unwrap();
    assert_eq!(drained, Drained { handled: 14, left: 1 });
    let found = state.run(run).await.unwrap().unwrap();
    assert_eq!((found.state.status(), found.state.error_code()), (RunStatus::Failed, Some(Code::PlanFailed)));
    let unreadable = state.unreadable(10).await.unwrap();
    assert_eq!((unreadable.len(), unreadable[0].queue.as_str()), (1, "items"));
    assert!(unreadable[0].sent_at > Timestamp::from_micros(0), "the time at which it was sent");
    for queue in QueueName::ALL {
        let left = u64::from(queue == QueueName::Turns);
        let expected = Depth { visible: 0, in_flight: left, delayed: 0 };
        assert_eq!(queues.dead_depth(queue).await.unwrap(), expected, "{queue:?}");
    }
    let again = dead_letters.drain(&json!({"task": "drain"}), deadline).await.unwrap();
    assert_eq!(again, Drained::default(), "it is hidden for a minute");

    // Without time nothing is received.
    send_dead(queues, QueueName::Plans, "{").await;
    let late = Deadline::after(Duration::from_secs(20));
    assert_eq!(dead_letters.drain(&json!({"task": "drain"}), late).await.unwrap(), Drained::default());
    assert_eq!(queues.dead_depth(QueueName::Plans).await.unwrap().visible, 1);
    let unknown = dead_letters.drain(&json!({"Records": []}), deadline).await.unwrap_err();
    assert!(unknown.to_string().contains("drain"), "{unknown}");
}

#[tokio::test]
async fn a_queue_that_cannot_be_read_does_not_hold_up_the_others() {
    let world = World::new(|options| options).await;
    let World { embedded, state, queues, .. } = &world;
    send_dead(queues, QueueName::Finishes, "{").await;
    let mut urls = BTreeMap::new();
    for queue in QueueName::ALL {
        urls.insert(queue, queues.url(queue).unwrap().to_owned());
    }
    urls.insert(QueueName::Plans, format!("{}-gone", queues.url(QueueName::Plans).unwrap()));
    let with_one_missing = Queues::new(&embedded.sdk_config(), urls);
    let dead_letters =
        DeadLetters { state: state.clone(), queues: with_one_missing, after_outage: Duration::ZERO };
    let deadline = Deadline::after(Duration::from_secs(240));
    let error = dead_letters.drain(&json!({"task": "drain"}), deadline).await.unwrap_err().to_string();
    assert!(error.contains("could not receive dead letters of queue `plans`"), "{error}");
    assert_eq!(state.unreadable(10).await.unwrap().len(), 1);
    assert_eq!(queues.dead_depth(QueueName::Finishes).await.unwrap(), Depth::default());
}

#[tokio::test]
async fn samples_of_a_run_that_is_over_stay_as_they_are() {
    let world = World::new(|options| options).await;
    let state = &world.state;
    let run = world.create_run().await;
    let benchmark: BenchmarkName = "mmlu_pro".parse().unwrap();
    let (plan, now) = (testing::plan(1, 1), bench_clock::now());
    let item = PlannedSample { item_id: "0".to_owned(), source_id: None, group: None, offset: 0, length: 1 };
    state.write_plan(run, &benchmark, &plan, &[item], now).await.unwrap();
    let found = state.run_with_benchmarks(run).await.unwrap().unwrap();
    let running = found.benchmarks[0].state.start(now).unwrap();
    state.change_benchmark(run, &found.benchmarks[0], &running, Some(&plan), None, now).await.unwrap();
    let sample = SampleRef {
        run,
        benchmark,
        plan: plan.attempt,
        shards: plan.shards,
        position: Position { item: 0, sample: 0 },
    };
    for _ in 0..RECEIVES_MAX {
        let lease = now.plus(Duration::from_secs(60));
        let claim = state.claim(Stage::Answer, &sample, bench_clock::now(), lease).await.unwrap();
        let Claim::Claimed(claimed) = claim else { panic!("{claim:?}") };
        let (attempt, record) = (claimed.attempt, claimed.record);
        assert!(state.release(&sample, attempt, record.cleared, now, record.history).await.unwrap());
    }
    let failed = found.run.state.fail(now, Code::BudgetReached, "stopped").unwrap();
    let event = NewEvent::new(EventKind::RunFailed, "stopped");
    state.change_run(&found.run, &failed, 1, &event, now).await.unwrap();

    let dead_letters =
        DeadLetters { state: state.clone(), queues: world.queues.clone(), after_outage: Duration::ZERO };
    assert!(handle(&dead_letters, &Message::Sample { sample: sample.clone(), generation: 1 }).await);
    let record = state.sample(&sample).await.unwrap().unwrap();
    assert!(matches!(record.state, SampleState::Open { .. }), "{:?}", record.state);
}
