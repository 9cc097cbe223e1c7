//! All kinds of replies that a judge can give.

use std::time::Duration;

use bench_domain::{Outcome, RunStatus, Verdict};
use bench_tests::model_server::Reply;
use serde_json::json;

use super::{NAME, TOKENS, judge_question_count, last_message, question_counts, stored_samples};
use crate::support::{Expected, Order, Settings, World, check, data, runtime};

fn text_reply(reply: &str) -> Reply {
    Reply::Text(reply.to_owned())
}

#[test]
fn a_verdict_is_a_turn_of_its_own() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), |request| {
            match (request.is_judge, data::number(&request.item)) {
                (false, _) => Reply::Text(data::right_answer(&request.item)),
                (true, 2) => text_reply("B"),
                (true, 3) => text_reply("C"),
                (true, 4) => text_reply("D"),
                (true, number) => {
                    // The judge gets the question, the gold answer, the answer, and the settings of the order.
                    let shown = last_message(request);
                    assert!(
                        shown.contains(&format!("gold {number}")) && shown.contains("It is gold"),
                        "{shown}"
                    );
                    assert_eq!(request.body["seed"], json!(7));
                    text_reply("A")
                }
            }
        })
        .await;
        let run = Order::aa_omniscience(10, &world).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let stored = check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(question_counts(&world), (10, 10));
        let found = world.stored_run(run).await;
        let plan = found.benchmarks[0].plan.as_ref().unwrap();
        let judge = plan.judge.as_ref().unwrap();
        assert_eq!((judge.model.as_str(), judge.version), ("openai-compatible/judge", 1));
        assert_eq!((judge.prompt_source.as_str(), judge.prompt_digest.len()), ("own", 64));
        let report = found.benchmarks[0].state.report().unwrap();
        // Seven correct, one incorrect, one partial, one not attempted.
        assert_eq!(report.score, Some(0.6));
        assert_eq!(report.outcomes.get(Outcome::Partial), 1);
        assert_eq!(report.usage.total(), 10 * TOKENS);
        assert_eq!(report.judge_usage.unwrap().total(), 10 * TOKENS);
        for sample in &stored[NAME] {
            let finished = sample.finished.as_ref().unwrap();
            assert_eq!(finished.model.as_deref(), Some("m"));
            assert_eq!(finished.judge_model.as_deref(), Some("judge"));
            assert_eq!(finished.judge_usage.unwrap().total(), TOKENS);
            assert!(finished.judge_latency_ms.is_some() && finished.latency_ms.is_some());
            let address = World::sample_ref(&found, NAME, sample.position);
            let body = finished.body.as_ref().unwrap();
            let (body, _) = world
                .stack
                .blobs
                .get_body(&address, body.attempt, Some(&body.sha256))
                .await
                .unwrap()
                .unwrap();
            let judge_reply = body.judge_reply.unwrap();
            assert_eq!(judge_reply.model, "openai-compatible/judge");
            assert_eq!(judge_reply.reply.text.len(), 1);
            assert!(body.answer.text.starts_with("It is gold"));
        }
    });
}

/// Replies as the judge of an item, chosen by the item's number.
fn judge_reply_of_item(request: &bench_tests::model_server::ModelRequest) -> Reply {
    let status = |status, body: &str| Reply::Status(status, body.to_owned(), vec![]);
    match (data::number(&request.item), request.before) {
        (1, 0) => text_reply("I would say that the answer is right, so I give it an A."),
        (2, _) => text_reply(""),
        (3, _) => text_reply(r#"{"grade": "#),
        (4, 0) => Reply::Status(429, "{}".into(), vec![("retry-after", "1".into())]),
        (5, _) => status(500, r#"{"error":{"message":"out of order"}}"#),
        (6, _) => Reply::Later(Duration::from_millis(700), "A".into()),
        (7, 0) => Reply::Garbage,
        (8, _) => status(400, r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#),
        (9, 0) => Reply::HalfStream("A".into()),
        (10, 0) => status(500, "{}"),
        _ => text_reply("A"),
    }
}

#[test]
fn a_reply_without_a_verdict_is_never_a_verdict() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), |request| match request.is_judge {
            false => Reply::Text(data::right_answer(&request.item)),
            true => judge_reply_of_item(request),
        })
        .await;
        let run = Order::aa_omniscience(11, &world).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        let stored = check(&world, run, Expected::FAILED).await;
        let verdicts: Vec<&Verdict> =
            stored[NAME].iter().map(|sample| &sample.finished.as_ref().unwrap().verdict).collect();
        for (item, verdict) in verdicts.iter().enumerate() {
            let expected = match item {
                2 | 3 | 5 | 8 => Outcome::InfrastructureError,
                _ => Outcome::Correct,
            };
            assert_eq!(verdict.outcome, expected, "{item}: {verdict:?}");
            assert!(verdict.reason.chars().count() < 1_200, "{}", verdict.reason);
        }
        let reason = |item: usize| verdicts[item].reason.as_str();
        assert!(
            reason(2).contains("gave no verdict in 3 replies") && reason(2).contains("empty"),
            "{}",
            reason(2)
        );
        assert!(
            reason(3).contains("gave no verdict in 3 replies") && reason(3).contains("grade"),
            "{}",
            reason(3)
        );
        assert!(
            reason(5).contains("the judge could not be asked") && reason(5).contains("500"),
            "{}",
            reason(5)
        );
        assert!(
            reason(8).contains("the judge could not be asked") && reason(8).contains("too long"),
            "{}",
            reason(8)
        );
        // The model is asked once per item, whatever its judge does.
        assert_eq!(question_counts(&world).0, 11);
        let times: Vec<u64> = (0..11).map(|item| judge_question_count(&world, item)).collect();
        assert_eq!(times, [1, 2, 3, 3, 2, 3, 1, 2, 1, 2, 2]);
        // The record counts all replies, including those without a verdict, and keeps each answer.
        for (item, sample) in stored[NAME].iter().enumerate() {
            let finished = sample.finished.as_ref().unwrap();
            let replies = match item {
                1 => 2,
                2 | 3 => 3,
                5 | 8 => 0,
                _ => 1,
            };
            assert_eq!(finished.judge_usage.map_or(0, |usage| usage.total()), replies * TOKENS, "{item}");
            assert_eq!(finished.usage.unwrap().total(), TOKENS);
            assert!(finished.body.is_some() && sample.turn.is_some());
        }
    });
}

/// A requeue judges stored answers again without asking the model.
#[test]
fn a_requeue_asks_the_judge_and_not_the_model() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    runtime().block_on(async {
        let better = Arc::new(AtomicBool::new(false));
        let improved = Arc::clone(&better);
        let world = World::start(Settings::default(), move |request| match request.is_judge {
            false => Reply::Text(data::right_answer(&request.item)),
            true if improved.load(Ordering::SeqCst) || data::number(&request.item) > 1 => text_reply("A"),
            true => text_reply("Well."),
        })
        .await;
        let run = Order::aa_omniscience(4, &world).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        assert_eq!(question_counts(&world), (4, 8));
        better.store(true, Ordering::SeqCst);
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let stored = check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        assert_eq!(question_counts(&world), (4, 10), "nothing stored is asked for again");
        // Three replies without a verdict were paid for, and the one with a verdict.
        assert_eq!(stored[NAME][0].finished.as_ref().unwrap().judge_usage.unwrap().total(), 4 * TOKENS);
        assert_eq!(world.stored_run(run).await.benchmarks[0].state.report().unwrap().score, Some(1.0));
    });
}

/// A judge that can't be asked at all ends the run. The model's answers are kept for the next generation.
#[test]
fn a_judge_that_refuses_the_key_fails_the_run_and_no_answer() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    runtime().block_on(async {
        let paid = Arc::new(AtomicBool::new(false));
        let pays = Arc::clone(&paid);
        let settings = Settings { concurrency: 1, ..Settings::default() };
        let world = World::start(settings, move |request| match request.is_judge {
            false => Reply::Text(data::right_answer(&request.item)),
            true if pays.load(Ordering::SeqCst) => text_reply("A"),
            true => Reply::Status(401, r#"{"error":{"message":"bad key"}}"#.into(), vec![]),
        })
        .await;
        let run = Order::aa_omniscience(6, &world).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let error = world.stored_run(run).await.run.state.error().unwrap().to_owned();
        assert!(error.contains("the judge could not be asked") && error.contains("401"), "{error}");
        let (model, judge) = question_counts(&world);
        assert!(judge >= 1 && model >= 1);
        let handed_over =
            stored_samples(&world, run).await.iter().filter(|sample| sample.turn.is_some()).count();
        assert!(handed_over >= 1);
        assert!(stored_samples(&world, run).await.iter().all(|sample| sample.finished.is_none()));
        paid.store(true, Ordering::SeqCst);
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        assert_eq!(question_counts(&world), (6, judge + 6), "each answer is asked for once");
    });
}

#[test]
fn the_oracle_judges_without_a_model() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), |request| match data::number(&request.item) {
            0 => text_reply("It is something else."),
            _ => Reply::Text(data::right_answer(&request.item)),
        })
        .await;
        let run = Order::aa_omniscience(5, &world).with_oracle_judge().place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let stored = check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(question_counts(&world), (5, 0));
        assert_eq!(stored[NAME][0].finished.as_ref().unwrap().verdict.outcome, Outcome::Incorrect);
        let report = world.stored_run(run).await.benchmarks[0].state.report().unwrap().clone();
        // Four correct and one incorrect: an index of 60.
        assert_eq!((report.score, report.judge_usage, report.judge_cost), (Some(0.6), None, None));
    });
}

#[test]
fn a_judged_benchmark_without_a_judge_says_what_to_set() {
    runtime().block_on(async {
        let world =
            World::start(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::aa_omniscience(3, &world).without_judge().place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let error = world.stored_run(run).await.benchmarks[0].state.error().unwrap().to_owned();
        assert!(error.contains("--judge-model") && error.contains("BENCH_JUDGE_MODEL"), "{error}");
        assert_eq!(world.model.total(), 0);
    });
}
