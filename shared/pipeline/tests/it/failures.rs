//! Effects of a provider's failures on the sample and the run.

use bench_domain::sample::SampleState;
use bench_domain::{Outcome, RunStatus};
use bench_pipeline::PipelineConfig;
use bench_queue::QueueName;
use serde_json::json;

use crate::provider::Reply;
use crate::run::{Run, model};
use crate::world::{World, handle};

#[tokio::test]
async fn a_rate_limit_becomes_a_planned_wait_that_all_samples_share() {
    let world = World::new(&[Reply::Status(429, Some(120)), Reply::Text(r"\boxed{7}")]).await;
    let run = Run::aime(&world, 2, model(&world), json!({})).await;
    let before = bench_clock::now();
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await, "its message is not needed any more");

    let record = run.record(&world, 0).await;
    let SampleState::Open { due_at } = record.state else { panic!("{:?}", record.state) };
    assert!(due_at.since(before).as_secs() >= 120, "{due_at:?}");
    assert_eq!((record.history.waits, record.history.failures), (1, 0), "a wait is no failed attempt");
    assert!(record.history.waiting_since.is_some());
    assert_eq!(world.queue_depth(QueueName::Items).await, (0, 1));

    // The wait applies in this process and in another one.
    assert!(handle(&pipeline, &run.answer_message(1)).await);
    assert_eq!(run.record(&world, 1).await.history.waits, 1);
    let run = Run::aime(&world, 1, model(&world), json!({})).await;
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert_eq!(run.record(&world, 0).await.history.waits, 1);
    assert_eq!(world.provider.request_count(), 1, "nothing is asked while the wait lasts");
    assert_eq!(world.queue_depth(QueueName::Items).await, (0, 3));
}

#[tokio::test]
async fn failed_attempts_are_bounded_by_number() {
    let world = World::new(&[Reply::Status(500, Some(0))]).await;
    let run = Run::aime(&world, 1, model(&world), json!({})).await;
    let config = PipelineConfig { attempts_max: 3, ..PipelineConfig::default() };
    let pipeline = world.pipeline_after(0, config);
    for failures in 1..3 {
        assert!(handle(&pipeline, &run.answer_message(0)).await);
        assert_eq!(run.record(&world, 0).await.history.failures, failures);
    }
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    let verdict = run.sample_result(&world, 0).await.verdict;
    assert_eq!((verdict.outcome, verdict.score), (Outcome::InfrastructureError, None));
    assert!(verdict.reason.contains("after 3 attempts"), "{}", verdict.reason);
    assert_eq!(world.provider.request_count(), 3);
}

#[tokio::test]
async fn a_key_that_the_provider_refuses_ends_the_run() {
    let world = World::new(&[Reply::Status(401, None)]).await;
    let run = Run::aime(&world, 2, model(&world), json!({})).await;
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    assert_eq!(run.stored_run(&world).await.run.state.status(), RunStatus::Failed);
    assert!(run.is_open(&world, 0).await, "the sample is left as it was");
    assert_eq!(world.queue_depth(QueueName::Finishes).await, (0, 1), "the finisher comes a moment later");
    assert!(handle(&pipeline, &run.answer_message(1)).await);
    assert_eq!(world.provider.request_count(), 1, "nothing is asked for a run that is over");
}
