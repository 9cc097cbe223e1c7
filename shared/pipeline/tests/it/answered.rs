//! A sample is answered, stored, graded and committed, and never asked for twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bench_domain::{Answer, Outcome, Prompt, SampleBody, Stage, Usage};
use bench_pipeline::PipelineConfig;
use bench_queue::QueueName;
use bench_state::{Claim, State};
use serde_json::json;

use crate::provider::{ANSWER_TOKENS, PROMPT_TOKENS, Reply};
use crate::run::{Run, model, source};
use crate::world::{World, handle, lease_end};

/// Claims a sample as a process would that is killed afterwards. Returns the number of the attempt.
pub(crate) async fn claim(state: &State, run: &Run, stage: Stage) -> u32 {
    let now = bench_clock::now();
    match state.claim(stage, &run.sample(0), now, lease_end()).await.unwrap() {
        Claim::Claimed(claimed) => claimed.attempt,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_answer_is_stored_graded_and_committed() {
    let world = World::new(&[Reply::Text(r"It is \boxed{7}."), Reply::Text(r"It is \boxed{9}.")]).await;
    let run = Run::aime(&world, 2, model(&world), json!({})).await;
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await);

    let finished = run.sample_result(&world, 0).await;
    assert_eq!((finished.verdict.outcome, finished.verdict.score), (Outcome::Correct, Some(1.0)));
    assert_eq!(finished.usage, Some(Usage::counted(PROMPT_TOKENS, ANSWER_TOKENS, 0)));
    assert_eq!(finished.model.as_deref(), Some("m-1"));
    let body = finished.body.unwrap();
    let (stored, _) = world.blobs.get_body(&run.sample(0), 1, Some(&body.sha256)).await.unwrap().unwrap();
    assert_eq!((body.attempt, stored.answer.text.as_str()), (1, r"It is \boxed{7}."));
    assert_eq!((stored.item_id.as_str(), stored.expected.as_str()), ("0", "7"));
    let asked = &world.provider.requests()[0];
    assert_eq!(asked["model"], "m");
    assert!(asked["messages"].to_string().contains("What is 0 + 7?"), "{asked}");
    assert_eq!(world.queue_depth(QueueName::Finishes).await, (0, 0), "one sample is left");

    assert!(handle(&pipeline, &run.answer_message(1)).await);
    let second = run.sample_result(&world, 1).await.verdict;
    assert_eq!((second.outcome, second.score), (Outcome::Incorrect, Some(0.0)));
    assert!(run.stored_run(&world).await.is_complete());
    assert_eq!(
        world.queue_depth(QueueName::Finishes).await,
        (1, 0),
        "the last sample sends for the finisher"
    );
    let counts = world.state.shard_counts(run.id, &run.sample(0).benchmark, 1, 1).await.unwrap();
    let count = counts[0];
    assert_eq!((count.done, count.graded, count.correct), (2, 2, 1));
    assert_eq!(count.spent().total(), 2 * (PROMPT_TOKENS + ANSWER_TOKENS));
}

/// A large item would take memory while a model answers, so it is read again for its grade. The oracle keeps it.
#[tokio::test]
async fn a_large_item_is_read_for_the_question_and_again_for_the_grade() {
    let mut reads = Vec::new();
    for (numbers, is_oracle) in [(10, false), (50_000, false), (10, true), (50_000, true)] {
        let world = World::new(&[Reply::Text(r"\boxed{7}")]).await;
        let model = if is_oracle { source("oracle", None) } else { model(&world) };
        let run = Run::aime_with_column(&world, numbers, model).await;
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        world.hook_before("GetObject", move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
        assert_eq!(run.sample_result(&world, 0).await.verdict.outcome, Outcome::Correct);
        reads.push(count.load(Ordering::Relaxed));
    }
    assert_eq!((reads[1], reads[3]), (reads[0] + 1, reads[2]), "{reads:?}");
}

#[tokio::test]
async fn killed_after_storing_the_answer_it_is_graded_and_not_asked_for_again() {
    let world = World::new(&[Reply::Text(r"\boxed{8}")]).await;
    let run = Run::aime(&world, 1, model(&world), json!({})).await;
    let attempt = claim(&world.state, &run, Stage::Answer).await;
    let answer = Answer { usage: Some(Usage::counted(5, 3, 0)), ..Answer::local(r"\boxed{7}") };
    let body = SampleBody::new("0".to_owned(), Prompt::user("What is 0 + 7?"), answer, "7".to_owned());
    let sha256 = world.blobs.put_body(&run.sample(0), attempt, &body).await.unwrap();

    // The next start of the host voids the leases of earlier starts.
    let pipeline = world.pipeline_after(1, PipelineConfig::default());
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    let finished = run.sample_result(&world, 0).await;
    assert_eq!(finished.verdict.outcome, Outcome::Correct);
    let kept = finished.body.unwrap();
    assert_eq!((kept.attempt, kept.sha256), (attempt, sha256), "the answer of the attempt that was killed");
    assert_eq!(finished.usage, Some(Usage::counted(5, 3, 0)));
    assert_eq!(world.provider.request_count(), 0);
    let counts = world.state.shard_counts(run.id, &run.sample(0).benchmark, 1, 1).await.unwrap();
    assert_eq!(counts[0].spent().total(), 8, "it was paid for");
}

#[tokio::test]
async fn killed_before_storing_anything_it_is_asked_for_again() {
    let world = World::new(&[Reply::Text(r"\boxed{7}")]).await;
    let run = Run::aime(&world, 1, model(&world), json!({})).await;
    claim(&world.state, &run, Stage::Answer).await;
    assert!(handle(&world.pipeline_after(1, PipelineConfig::default()), &run.answer_message(0)).await);
    assert_eq!(run.sample_result(&world, 0).await.body.unwrap().attempt, 2);
    assert_eq!(world.provider.request_count(), 1);
}

#[tokio::test]
async fn a_sample_that_ends_its_process_again_and_again_is_not_tried_without_end() {
    let world = World::new(&[Reply::Text(r"\boxed{7}")]).await;
    let run = Run::aime(&world, 1, model(&world), json!({})).await;
    let lost_max = PipelineConfig::default().lost_max();
    for start in 0..u64::from(lost_max) {
        claim(&world.state_after(start), &run, Stage::Answer).await;
    }
    let pipeline = world.pipeline_after(lost_max.into(), PipelineConfig::default());
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    let verdict = run.sample_result(&world, 0).await.verdict;
    assert_eq!(verdict.outcome, Outcome::InfrastructureError);
    assert!(verdict.reason.contains("cut off by the end of their process"), "{}", verdict.reason);
    assert_eq!(world.provider.request_count(), 0);
}
