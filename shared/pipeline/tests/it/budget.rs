//! Runs with a budget.

use bench_domain::{FailureReason, RunStatus};
use bench_queue::QueueName;
use serde_json::json;

use crate::provider::{ANSWER_TOKENS, PROMPT_TOKENS, Reply};
use crate::run::{Run, model};
use crate::world::{World, handle};

const EACH: u64 = PROMPT_TOKENS + ANSWER_TOKENS;

#[tokio::test]
async fn a_run_is_stopped_before_the_question_that_its_budget_does_not_allow() {
    let world = World::new(&[Reply::Text(r"\boxed{7}")]).await;
    let run = Run::aime(&world, 4, model(&world), json!({"budget": {"tokens": 2 * EACH}})).await;
    let pipeline = world.pipeline();
    for item in 0..4 {
        assert!(handle(&pipeline, &run.answer_message(item)).await);
    }
    assert_eq!(world.provider.request_count(), 2);
    let found = run.stored_run(&world).await.run;
    assert_eq!(found.state.status(), RunStatus::Failed);
    assert_eq!(found.state.failure_reason(), Some(FailureReason::Budget));
    let error = found.state.error().unwrap();
    assert!(error.starts_with("stopped: ") && error.ends_with("2 of 4 samples done"), "{error}");
    assert!(run.is_open(&world, 2).await && run.is_open(&world, 3).await);
    assert_eq!(run.record(&world, 2).await.history.failures, 0);
    // The finisher's message is delayed until pending answers are counted.
    assert_eq!(world.queue_depth(QueueName::Finishes).await, (0, 1));
}

#[tokio::test]
async fn what_a_judge_costs_counts_too() {
    let world = World::new(&[Reply::Text("It is gold."), Reply::Text("no letter")]).await;
    let run = Run::judged(&world, model(&world), json!({"budget": {"tokens": 2 * EACH}})).await;
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    assert!(handle(&pipeline, &run.turn_message(0)).await, "asked, without a verdict");
    assert!(handle(&pipeline, &run.turn_message(0)).await);
    assert_eq!(world.provider.request_count(), 2, "the judge is not asked again");
    assert_eq!(run.stored_run(&world).await.run.state.failure_reason(), Some(FailureReason::Budget));
}

#[tokio::test]
async fn a_process_that_starts_anew_knows_what_was_spent() {
    let world = World::new(&[Reply::Text(r"\boxed{7}")]).await;
    let run = Run::aime(&world, 2, model(&world), json!({"budget": {"tokens": EACH}})).await;
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert!(handle(&world.pipeline(), &run.answer_message(1)).await);
    assert_eq!(world.provider.request_count(), 1);
    assert_eq!(run.stored_run(&world).await.run.state.status(), RunStatus::Failed);
}

#[tokio::test]
async fn answers_that_cannot_be_stored_count_too() {
    let world = World::new(&[Reply::Text(r"\boxed{7}")]).await;
    let run = Run::aime(&world, 2, model(&world), json!({"budget": {"tokens": EACH}})).await;
    let world = world.reopen("deny@PutObject=1.0").await;
    assert!(!handle(&world.pipeline(), &run.answer_message(0)).await, "its message is delivered again");
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    assert_eq!(world.provider.request_count(), 1);
    assert_eq!(run.stored_run(&world).await.run.state.failure_reason(), Some(FailureReason::Budget));
}
