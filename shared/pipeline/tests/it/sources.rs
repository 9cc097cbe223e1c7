//! Answer sources other than a provider.

use bench_domain::{Outcome, RunStatus, Usage};
use bench_queue::QueueName;
use serde_json::json;

use crate::provider::Reply;
use crate::run::{Run, model, source};
use crate::world::{World, handle};

#[tokio::test]
async fn the_oracle_answers_from_the_item() {
    let world = World::new(&[Reply::Text("nothing")]).await;
    let run = Run::aime(&world, 1, source("oracle", None), json!({})).await;
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    let finished = run.sample_result(&world, 0).await;
    assert_eq!(finished.verdict.outcome, Outcome::Correct);
    assert_eq!(finished.usage, None);
    assert_eq!(world.provider.request_count(), 0);
}

#[tokio::test]
async fn recorded_responses_answer_by_the_items_own_id_or_its_row() {
    let world = World::new(&[Reply::Text("nothing")]).await;
    let lines = [
        json!({"item_id": "I-0", "response": r"\boxed{7}"}),
        json!({"item_id": "#1", "response": r"\boxed{1}"}),
    ];
    let file: String = lines.iter().map(|line| format!("{line}\n")).collect();
    world.blobs.put_json("uploads/a", &file).await.unwrap();
    let run = Run::aime(&world, 3, source("replay", Some("uploads/a")), json!({})).await;
    let pipeline = world.pipeline();
    for item in 0..3 {
        assert!(handle(&pipeline, &run.answer_message(item)).await);
    }
    assert_eq!(run.sample_result(&world, 0).await.verdict.outcome, Outcome::Correct);
    assert_eq!(run.sample_result(&world, 1).await.verdict.outcome, Outcome::Incorrect);
    let missing = run.sample_result(&world, 2).await.verdict;
    assert_eq!(missing.outcome, Outcome::InfrastructureError);
    assert_eq!(missing.reason, "no stored response for item `I-2`, sample 0");
    let counts = world.state.shard_counts(run.id, &run.sample(0).benchmark, 1, 1).await.unwrap();
    assert_eq!(counts[0].spent(), Usage::ZERO, "no provider was asked");
    assert_eq!(world.provider.request_count(), 0);
}

#[tokio::test]
async fn recorded_responses_that_are_gone_end_the_run() {
    let world = World::new(&[Reply::Text("nothing")]).await;
    let run = Run::aime(&world, 1, source("replay", Some("uploads/none")), json!({})).await;
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    let found = run.stored_run(&world).await.run;
    assert_eq!(found.state.status(), RunStatus::Failed);
    assert_eq!(found.state.error(), Some("the stored responses of this run are gone"));
    assert!(run.is_open(&world, 0).await);
}

#[tokio::test]
async fn an_earlier_run_gives_its_answers_and_its_errors() {
    let world = World::new(&[Reply::Text(r"\boxed{7}"), Reply::Status(400, None)]).await;
    let earlier = Run::aime(&world, 2, model(&world), json!({})).await;
    let pipeline = world.pipeline();
    assert!(
        handle(&pipeline, &earlier.answer_message(0)).await
            && handle(&pipeline, &earlier.answer_message(1)).await
    );
    let refused = earlier.sample_result(&world, 1).await.verdict;
    assert_eq!((world.provider.request_count(), refused.outcome), (2, Outcome::InfrastructureError));

    let again = json!({"rejudges": {"run": earlier.id, "version": 2}});
    let run = Run::aime(&world, 3, model(&world), again).await;
    let pipeline = world.pipeline();
    for item in 0..3 {
        assert!(handle(&pipeline, &run.answer_message(item)).await);
    }
    let finished = run.sample_result(&world, 0).await;
    assert_eq!(finished.verdict.outcome, Outcome::Correct);
    assert_eq!(finished.usage, Some(Usage::default()), "the run that asked the model has paid for it");
    let body = finished.body.unwrap();
    let stored = world.blobs.get_body(&run.sample(0), body.attempt, Some(&body.sha256)).await.unwrap();
    assert_eq!(stored.unwrap().0.answer.text, r"\boxed{7}", "a copy of its own");
    assert_eq!(run.sample_result(&world, 1).await.verdict, refused, "it ends as it did there");
    let missing = run.sample_result(&world, 2).await.verdict;
    assert_eq!(missing.reason, format!("run {} has no such sample", earlier.id));
    assert_eq!(world.provider.request_count(), 2, "the model is not asked again");
    assert_eq!(world.queue_depth(QueueName::Finishes).await, (2, 0), "one for each run");
}

#[tokio::test]
async fn an_earlier_run_that_is_gone_ends_the_run() {
    let world = World::new(&[Reply::Text("nothing")]).await;
    let gone = bench_domain::RunId::random();
    let run = Run::aime(&world, 1, model(&world), json!({"rejudges": {"run": gone, "version": 2}})).await;
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    let error = run.stored_run(&world).await.run.state.error().unwrap().to_owned();
    assert_eq!(error, format!("run {gone}, whose answers were to be judged, is gone"));
    assert_eq!(world.provider.request_count(), 0);
}
