//! Waits that a provider asked for: who may ask meanwhile.

use std::ops::RangeInclusive;
use std::time::Duration;

use bench_domain::run::{AuthMode, ModelRef, Owner};
use bench_domain::{ModelRole, Spending, Timestamp};
use bench_state::{EventKind, NewEvent, Renewal, Resumption, SharedWait, WaitKey, WaitKind};
use serde_json::json;
use tokio::task::block_in_place;

use crate::provider::Reply;
use crate::run::{Run, model};
use crate::world::{World, handle};

const HOUR: Duration = Duration::from_secs(3_600);

fn key(world: &World) -> WaitKey {
    let model: ModelRef = serde_json::from_value(model(world)).unwrap();
    WaitKey::new(&model, ModelRole::Model, AuthMode::System, &Owner::Local)
}

fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_micros(bench_clock::now().as_micros() - seconds * 1_000_000)
}

/// Creates a world with a run of three samples, and a wait of an hour whose latest request was `asked_ago_s` seconds ago.
async fn world_that_waits(replies: &[Reply], asked_ago_s: i64) -> (World, Run) {
    let world = World::new(replies).await;
    let run = Run::aime(&world, 3, model(&world), json!({})).await;
    let until = bench_clock::now().plus(HOUR);
    world.state.extend_wait(&key(&world), until, WaitKind::RateLimited, ago(asked_ago_s)).await.unwrap();
    (world, run)
}

async fn shared_wait(world: &World) -> SharedWait {
    world.state.shared_wait(&key(world)).await.unwrap().unwrap()
}

/// Returns the seconds from now for which a sample is put off.
async fn put_off_for(world: &World, run: &Run, item: u32) -> u64 {
    run.record(world, item).await.due_at.since(bench_clock::now()).as_secs()
}

fn assert_within(seconds: u64, expected: RangeInclusive<u64>) {
    assert!(expected.contains(&seconds), "{seconds} s, not {expected:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_sample_asks_while_another_reads_the_wait() {
    let (world, run) = world_that_waits(&[Reply::Text(r"\boxed{7}")], 0).await;
    world.hook_before("GetItem", || block_in_place(|| std::thread::sleep(Duration::from_millis(300))));
    let pipeline = world.pipeline();
    let messages = [0, 1, 2].map(|item| run.answer_message(item));
    let [first, second, third] = messages.each_ref().map(|message| handle(&pipeline, message));
    assert_eq!(tokio::join!(first, second, third), (true, true, true));
    assert_eq!(world.provider.request_count(), 0);
}

#[tokio::test]
async fn the_answer_to_a_probe_ends_the_wait() {
    let (world, run) = world_that_waits(&[Reply::Text(r"\boxed{7}")], 601).await;
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    assert_eq!(world.provider.request_count(), 1);
    let wait = shared_wait(&world).await;
    assert!(wait.until <= bench_clock::now() && !wait.is_probing, "{wait:?}");
    assert!(handle(&pipeline, &run.answer_message(1)).await);
    assert_eq!(world.provider.request_count(), 2);
}

#[tokio::test]
async fn samples_wait_shortly_for_the_response_to_a_probe() {
    let (world, run) = world_that_waits(&[Reply::Text(r"\boxed{7}")], 601).await;
    let wait = shared_wait(&world).await;
    assert!(world.state.take_probe(&key(&world), &wait, bench_clock::now()).await.unwrap());
    assert!(!world.state.take_probe(&key(&world), &wait, bench_clock::now()).await.unwrap(), "there is one");
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert_eq!(world.provider.request_count(), 0);
    assert_within(put_off_for(&world, &run, 0).await, 3..=13);
    assert_eq!(run.stored_run(&world).await.run.provider_wait, None, "a request is under way");
}

#[tokio::test]
async fn a_refused_probe_sets_the_end_of_the_wait() {
    let (world, run) = world_that_waits(&[Reply::Status(429, Some(120))], 601).await;
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    let wait = shared_wait(&world).await;
    assert_within(wait.until.since(bench_clock::now()).as_secs(), 115..=120);
    assert!(!wait.is_probing);
    assert!(handle(&pipeline, &run.answer_message(1)).await);
    assert_eq!(world.provider.request_count(), 1);
    assert_within(put_off_for(&world, &run, 1).await, 110..=135);
}

#[tokio::test]
async fn a_failed_probe_leaves_the_wait_as_it_is() {
    let (world, run) = world_that_waits(&[Reply::Status(500, None)], 601).await;
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    let wait = shared_wait(&world).await;
    assert!(wait.until > bench_clock::now().plus(HOUR / 2) && !wait.is_probing, "{wait:?}");
    assert!(handle(&pipeline, &run.answer_message(1)).await);
    assert_eq!(world.provider.request_count(), 1);
    assert_within(put_off_for(&world, &run, 1).await, 590..=616);
}

#[tokio::test]
async fn a_new_run_probes_unless_the_provider_was_just_asked() {
    let (world, run) = world_that_waits(&[Reply::Text(r"\boxed{7}")], 60).await;
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert_eq!(world.provider.request_count(), 1);

    let (world, run) = world_that_waits(&[Reply::Text(r"\boxed{7}")], 10).await;
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert_eq!(world.provider.request_count(), 0);
    assert_within(put_off_for(&world, &run, 0).await, 15..=26);
}

/// A resumed run doesn't wait for what it waited for before, and asks again soon.
#[tokio::test]
async fn a_resumed_run_ends_the_waits_of_its_samples() {
    let world = World::new(&[Reply::Status(429, Some(3_600))]).await;
    let run = Run::aime(&world, 1, model(&world), json!({})).await;
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert_within(put_off_for(&world, &run, 0).await, 590..=616);
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert_within(put_off_for(&world, &run, 0).await, 590..=616);

    let (record, now) = (run.stored_run(&world).await.run, bench_clock::now());
    let renewal =
        Renewal { resumption: Some(Resumption::new(Spending::default(), now)), ..Renewal::default() };
    let resumed = NewEvent::new(EventKind::RunResumed, "resumed");
    assert!(record.provider_wait.is_some());
    world.state.change_run_with(&record, &record.state, 1, &resumed, now, renewal).await.unwrap();
    assert_eq!(run.stored_run(&world).await.run.provider_wait, None);
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert_within(put_off_for(&world, &run, 0).await, 20..=37);
    assert_eq!(world.provider.request_count(), 1);
}
