//! Answers that need a judge.

use bench_domain::body::JudgeReply;
use bench_domain::{Answer, Outcome, Prompt, RunStatus, SampleBody, Stage, Usage};
use bench_pipeline::PipelineConfig;
use bench_queue::QueueName;
use serde_json::json;

use crate::answered::claim;
use crate::provider::{ANSWER_TOKENS, PROMPT_TOKENS, Reply};
use crate::run::{Run, model, source};
use crate::world::{World, handle};

#[tokio::test]
async fn an_answer_is_handed_over_and_its_verdict_committed() {
    let world = World::new(&[Reply::Text("It is gold."), Reply::Text("A")]).await;
    let run = Run::judged(&world, model(&world), json!({})).await;
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    let record = run.record(&world, 0).await;
    assert_eq!((record.stage(), record.finished), (Stage::Judge, None));
    assert_eq!(world.queue_depth(QueueName::Turns).await, (1, 0));
    // A second message for the answer is passed on to the judge's queue.
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    assert_eq!((world.queue_depth(QueueName::Turns).await, world.provider.request_count()), ((2, 0), 1));

    assert!(handle(&pipeline, &run.turn_message(0)).await);
    let finished = run.sample_result(&world, 0).await;
    assert_eq!((finished.verdict.outcome, finished.verdict.score), (Outcome::Correct, Some(1.0)));
    let tokens = Some(Usage::counted(PROMPT_TOKENS, ANSWER_TOKENS, 0));
    assert_eq!((finished.usage, finished.judge_usage), (tokens, tokens));
    let body = finished.body.unwrap();
    let (stored, _) =
        world.blobs.get_body(&run.sample(0), body.attempt, Some(&body.sha256)).await.unwrap().unwrap();
    let judge_reply = stored.judge_reply.unwrap();
    assert_eq!((stored.answer.text.as_str(), judge_reply.reply.text.as_str()), ("It is gold.", "A"));
    assert_eq!(judge_reply.model, "openai-compatible/m");
    assert!(world.provider.requests()[1]["messages"].to_string().contains("It is gold."));
    assert_eq!(world.queue_depth(QueueName::Finishes).await, (1, 0));
    let counts = world.state.shard_counts(run.id, &run.sample(0).benchmark, 1, 1).await.unwrap();
    let each = PROMPT_TOKENS + ANSWER_TOKENS;
    assert_eq!((counts[0].spent().total(), counts[0].judge_spent().total()), (each, each));
}

#[tokio::test]
async fn a_judge_without_a_verdict_is_asked_a_few_times() {
    let world = World::new(&[Reply::Text("It is gold."), Reply::Text("I would rather not say.")]).await;
    let run = Run::judged(&world, model(&world), json!({})).await;
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await);
    for replies in 1..3 {
        assert!(handle(&pipeline, &run.turn_message(0)).await);
        assert_eq!(run.record(&world, 0).await.turn.unwrap().replies, replies);
    }
    assert!(handle(&pipeline, &run.turn_message(0)).await);
    let finished = run.sample_result(&world, 0).await;
    assert_eq!(finished.verdict.outcome, Outcome::InfrastructureError);
    let reason = &finished.verdict.reason;
    assert!(reason.starts_with("the judge openai-compatible/m gave no verdict in 3 replies"), "{reason}");
    assert_eq!(finished.judge_usage.map(Usage::total), Some(3 * (PROMPT_TOKENS + ANSWER_TOKENS)));
    assert_eq!(world.provider.request_count(), 4);
}

#[tokio::test]
async fn killed_after_storing_the_reply_the_judge_is_not_asked_again() {
    let world = World::new(&[Reply::Text("It is gold."), Reply::Text("B")]).await;
    let run = Run::judged(&world, model(&world), json!({})).await;
    assert!(handle(&world.pipeline(), &run.answer_message(0)).await);
    let attempt = claim(&world.state, &run, Stage::Judge).await;
    let judge_reply = JudgeReply {
        model: "openai-compatible/m".to_owned(),
        prompt: Prompt::user("Is it gold?"),
        reply: Answer { usage: Some(Usage::counted(4, 1, 0)), ..Answer::local("A") },
    };
    let answer = Answer::local("It is gold.");
    let body = SampleBody::new("0".to_owned(), Prompt::user("What glitters?"), answer, "gold".to_owned());
    let body = SampleBody { judge_reply: Some(judge_reply), ..body };
    world.blobs.put_body(&run.sample(0), attempt, &body).await.unwrap();

    assert!(handle(&world.pipeline_after(1, PipelineConfig::default()), &run.turn_message(0)).await);
    let finished = run.sample_result(&world, 0).await;
    assert_eq!(finished.verdict.outcome, Outcome::Correct);
    assert_eq!(finished.judge_usage, Some(Usage::counted(4, 1, 0)));
    assert_eq!(finished.body.unwrap().attempt, attempt);
    assert_eq!(world.provider.request_count(), 1, "the model's answer alone");
}

#[tokio::test]
async fn the_oracle_judges_without_a_provider() {
    let world = World::new(&[Reply::Text("It is gold."), Reply::Text("B")]).await;
    let run = Run::judged(&world, source("oracle", None), json!({})).await;
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await && handle(&pipeline, &run.turn_message(0)).await);
    assert_eq!(run.sample_result(&world, 0).await.verdict.outcome, Outcome::Correct);
    assert_eq!(world.provider.request_count(), 1);
}

#[tokio::test]
async fn a_run_without_a_judge_ends_when_one_is_needed() {
    let world = World::new(&[Reply::Text("It is gold.")]).await;
    let run = Run::judged(&world, model(&world), json!({"judge": null})).await;
    let pipeline = world.pipeline();
    assert!(handle(&pipeline, &run.answer_message(0)).await && handle(&pipeline, &run.turn_message(0)).await);
    let found = run.stored_run(&world).await.run;
    assert_eq!(found.state.status(), RunStatus::Failed);
    assert_eq!(found.state.error(), Some("the judge could not be asked: the run has no judge"));
    assert!(run.is_open(&world, 0).await, "its answer is kept for a requeue");
}
