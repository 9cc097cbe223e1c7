//! Messages whose sample needs no work now.

use bench_domain::Stage;
use bench_domain::sample::{AttemptHistory, SampleState};
use bench_queue::{Message, QueueName};
use bench_state::{EventKind, NewEvent};
use serde_json::json;
use std::time::Duration;

use crate::answered::claim;
use crate::provider::Reply;
use crate::run::{Run, model};
use crate::world::{World, handle};

async fn world_with_run() -> (World, Run) {
    let world = World::new(&[Reply::Text(r"\boxed{7}")]).await;
    let run = Run::aime(&world, 1, model(&world), json!({})).await;
    (world, run)
}

#[tokio::test]
async fn a_sample_that_is_not_due_is_sent_again_for_later() {
    let (world, run) = world_with_run().await;
    let attempt = claim(&world.state, &run, Stage::Answer).await;
    let due_at = bench_clock::now().plus(Duration::from_secs(600));
    assert!(
        world
            .state
            .release(&run.sample(0), attempt, attempt, due_at, AttemptHistory::default())
            .await
            .unwrap()
    );
    let before = run.record(&world, 0).await;
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert_eq!(run.record(&world, 0).await, before, "waking early costs no attempt");
    assert_eq!(world.queue_depth(QueueName::Items).await, (0, 1));
    assert_eq!(world.provider.request_count(), 0);
}

#[tokio::test]
async fn a_sample_that_another_attempt_holds_is_left_alone() {
    let (world, run) = world_with_run().await;
    claim(&world.state, &run, Stage::Answer).await;
    let before = run.record(&world, 0).await;
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert_eq!(run.record(&world, 0).await, before);
    assert_eq!(world.queue_depth(QueueName::Items).await, (0, 0));
    assert_eq!(world.provider.request_count(), 0);
}

#[tokio::test]
async fn a_sample_that_is_over_is_not_worked_on_again() {
    let (world, run) = world_with_run().await;
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    let before = run.record(&world, 0).await;
    assert!(matches!(before.state, SampleState::Done { .. }));
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    assert_eq!(run.record(&world, 0).await, before);
    assert_eq!(world.provider.request_count(), 1);
    // The attempt that ended it may have been killed before it sent the finisher's message.
    assert_eq!(world.queue_depth(QueueName::Finishes).await, (2, 0));
}

#[tokio::test]
async fn a_sample_of_a_run_that_is_over_is_not_asked() {
    let (world, run) = world_with_run().await;
    let (found, now) = (run.stored_run(&world).await, bench_clock::now());
    let canceled = found.run.state.cancel(now).unwrap();
    let event = NewEvent::new(EventKind::RunCanceled, "canceled");
    world.state.change_run(&found.run, &canceled, 1, &event, now).await.unwrap();
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert!(run.is_open(&world, 0).await);
    assert_eq!(run.record(&world, 0).await.history.attempts, 0);
    assert_eq!(world.provider.request_count(), 0);
}

#[tokio::test]
async fn samples_that_no_plan_has_are_dropped() {
    let (world, run) = world_with_run().await;
    let mut sample = run.sample(0);
    sample.plan = 2;
    let of_another_plan = Message::Sample { sample, generation: 1 };
    let mut sample = run.sample(0);
    sample.benchmark = "mmlu_pro".parse().unwrap();
    let of_another_benchmark = Message::Sample { sample, generation: 1 };
    let unknown = run.answer_message(99);
    let pipeline = world.pipeline();
    for message in [of_another_plan, of_another_benchmark, unknown] {
        assert!(handle(&pipeline, &message).await, "{message:?}");
    }
    assert!(run.is_open(&world, 0).await);
    assert_eq!(world.queue_depth(QueueName::Items).await, (0, 0));
    assert_eq!(world.provider.request_count(), 0);
}
