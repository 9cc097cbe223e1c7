//! The caller's key is never stored in plain text, is sent only to its own provider, and is deleted with its run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench_domain::{ModelRole, RunId, RunStatus};
use bench_state::{EventKind, NewEvent};
use bench_tests::files::files_with;
use bench_tests::model_server::Reply;

use crate::support::{Expected, Order, Settings, World, check, data, runtime};

const KEY: &str = "sk-caller-3f9a1c77d2e84b06";
const OTHER_KEY: &str = "sk-caller-b80d15e6a9c34f72";
const OPERATORS_KEY: &str = "sk-operator-51c0e2";

async fn assert_stored(world: &World, run: RunId, stored: bool) {
    assert_eq!(world.stack.credentials.get(run, ModelRole::Model).await.unwrap().is_some(), stored);
    for key in [KEY, OTHER_KEY] {
        assert_eq!(files_with(&world.data_dir(), key), Vec::<String>::new());
    }
    // Proves that the search finds plain text, including in the write-ahead logs.
    assert!(!files_with(&world.data_dir(), &run.to_string()).is_empty());
}

fn kms_settings() -> Settings {
    Settings { vars: &[("OPENAI_COMPATIBLE_API_KEY", OPERATORS_KEY)], concurrency: 4, ..Settings::default() }
}

/// Asserts that every question came with this key and no other.
fn assert_sent(world: &World, key: Option<&str>) {
    let log = world.model.log();
    assert!(!log.is_empty());
    assert!(log.iter().all(|request| request.key.as_deref() == key));
}

#[test]
fn gone_when_the_run_succeeded() {
    runtime().block_on(async {
        let settings = Settings { latency: Duration::from_millis(20), ..kms_settings() };
        let world = World::start(settings, |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(40).with_key(KEY).place(&world).await;
        world.wait_until("some progress", || async { world.model.total() > 8 }).await;
        assert_stored(&world, run, true).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED).await;
        assert_stored(&world, run, false).await;
        assert_sent(&world, Some(KEY));
    });
}

/// Tests a provider that repeats the key in its answers and errors.
#[test]
fn gone_when_the_run_failed() {
    runtime().block_on(async {
        let world = World::start(kms_settings(), |request| {
            let key = request.key.clone().unwrap_or_default();
            Reply::Status(401, format!(r#"{{"error":{{"message":"bad key {key}"}}}}"#), vec![])
        })
        .await;
        let run = Order::mmlu_pro(40).with_key(KEY).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let error = world.stored_run(run).await.run.state.error().unwrap().to_owned();
        assert!(error.contains("bad key [redacted]"), "{error}");
        assert_stored(&world, run, false).await;
        assert_sent(&world, Some(KEY));
    });
}

#[test]
fn gone_when_the_run_is_canceled_and_taken_anew_by_requeue() {
    runtime().block_on(async {
        let open = Arc::new(AtomicBool::new(false));
        let is_open = Arc::clone(&open);
        let world = World::start(kms_settings(), move |request| match is_open.load(Ordering::SeqCst) {
            true => Reply::Text(data::right_answer(&request.item)),
            false => Reply::Hang(Duration::from_secs(600)),
        })
        .await;
        let run = Order::mmlu_pro(12).with_key(KEY).place(&world).await;
        world.wait_until("calls in flight", || async { world.model.in_flight() == 4 }).await;
        assert_stored(&world, run, true).await;
        world.cancel(run).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Canceled);
        world.wait_until("aborted calls", || async { world.model.disconnects() == 4 }).await;
        check(&world, run, Expected::CANCELED).await;
        assert_stored(&world, run, false).await;
        assert_sent(&world, Some(KEY));

        assert!(bench_api::requeue_run(&world.stack.api, run, None).await.is_err(), "the key was not kept");
        open.store(true, Ordering::SeqCst);
        let before = world.model.log().len();
        world.requeue(run, Some(OTHER_KEY)).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        assert_stored(&world, run, false).await;
        let log = world.model.log();
        assert_eq!(log.len(), before + 12);
        assert!(log[before..].iter().all(|request| request.key.as_deref() == Some(OTHER_KEY)));
    });
}

/// A late message of the previous generation must not delete the key of the next one.
#[test]
fn clearing_up_an_older_generation_leaves_the_new_key() {
    runtime().block_on(async {
        let world =
            World::open(kms_settings(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(3).with_key(KEY).place(&world).await;
        let credentials = &world.stack.credentials;
        let key = bench_domain::Secret::new(OTHER_KEY).unwrap();
        let sealed = credentials.seal(run, ModelRole::Model, 2, &key).await.unwrap();
        let state = &world.stack.state;
        for (generation, sealed) in [(1, None), (2, Some(&sealed))] {
            let record = state.run(run).await.unwrap().unwrap();
            let now = bench_clock::now();
            let next = match sealed {
                None => record.state.cancel(now).unwrap(),
                Some(_) => record.state.requeue().unwrap(),
            };
            let event = NewEvent::new(EventKind::RunRequeued, "Changed");
            let renewal = bench_state::Renewal { key: sealed, ..Default::default() };
            state.change_run_with(&record, &next, generation, &event, now, renewal).await.unwrap();
        }
        credentials.delete_up_to_generation(run, 1).await.unwrap();
        assert_eq!(credentials.get(run, ModelRole::Model).await.unwrap(), Some(key));
        credentials.delete_up_to_generation(run, 2).await.unwrap();
        assert_eq!(credentials.get(run, ModelRole::Model).await.unwrap(), None);
    });
}

/// An address given on the command line must never receive the operator's key, which is for another address.
#[test]
fn the_operators_key_is_not_sent_to_another_address() {
    runtime().block_on(async {
        let world =
            World::start(kms_settings(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(5).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        assert_sent(&world, None);
        assert_eq!(files_with(&world.data_dir(), OPERATORS_KEY), Vec::<String>::new());
    });
}
