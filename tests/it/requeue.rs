//! A requeued run asks only for missing answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench_api::{ChosenSample, Requeue};
use bench_domain::{Outcome, Position, RunStatus};
use bench_tests::model_server::Reply;

use crate::support::{Expected, Order, Settings, World, check, data, runtime};

const ITEMS: usize = 40;

fn fails(item: &str) -> bool {
    !item.starts_with('a') && data::number(item) < 10
}

#[test]
fn requeue_after_a_failure_asks_only_for_what_is_missing() {
    runtime().block_on(async {
        let well = Arc::new(AtomicBool::new(false));
        let is_well = Arc::clone(&well);
        let world = World::start(Settings::default(), move |request| match is_well.load(Ordering::SeqCst) {
            false if fails(&request.item) => Reply::Status(413, String::new(), vec![]),
            _ => Reply::Text(data::mostly_right_answer(request)),
        })
        .await;
        let run = Order::mmlu_pro(ITEMS).with_aime(1).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        let first = check(&world, run, Expected::FAILED).await;
        let aime = world.stored_run(run).await.benchmarks[1].clone();

        well.store(true, Ordering::SeqCst);
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let second = check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        for (before, after) in first["mmlu_pro"].iter().zip(&second["mmlu_pro"]) {
            if before.finished.as_ref().unwrap().verdict.outcome == Outcome::TooLong {
                assert!(after.finished.as_ref().unwrap().verdict.outcome.is_graded());
            } else {
                assert_eq!(before, after, "what was graded is left alone");
            }
        }
        assert_eq!(second["aime_2025"], first["aime_2025"]);
        assert_eq!(world.stored_run(run).await.benchmarks[1], aime, "what succeeded is left alone");
        for (item, times) in world.model.question_counts() {
            let expected = match &item {
                item if item.starts_with('a') => 4,
                item if fails(item) => 2,
                _ => 1,
            };
            assert_eq!(times, expected, "item {item}");
        }
        let refused = bench_api::requeue_run(&world.stack.api, run, None).await;
        assert!(refused.is_err(), "a run that succeeded is not requeued");
    });
}

/// Canceled with calls in flight, and requeued when idle: only unanswered samples are asked.
#[test]
fn a_canceled_run_resumes_where_it_stopped() {
    runtime().block_on(async {
        let settings = Settings {
            concurrency: 8,
            vars: &[("CHUTES_INFERENCE_TIMEOUT_SECONDS", "600")],
            ..Settings::default()
        };
        let world = World::start(settings, |request| match request.total_before {
            12..20 => Reply::Hang(Duration::from_secs(600)),
            _ => Reply::Text(data::right_answer(&request.item)),
        })
        .await;
        let run = Order::mmlu_pro(ITEMS).place(&world).await;
        world.wait_until("calls in flight", || async { world.model.in_flight() == 8 }).await;
        world.cancel(run).await;
        world.wait_until("aborted calls", || async { world.model.disconnects() == 8 }).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Canceled);
        check(&world, run, Expected::CANCELED).await;
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        let twice = world.model.question_counts().values().filter(|times| **times == 2).count();
        assert_eq!((twice, world.model.total()), (8, ITEMS as u64 + 8));
    });
}

/// Requeued while calls of the canceled generation are still in flight: their answers count, and every sample keeps a
/// message.
#[test]
fn a_run_requeued_at_once_keeps_the_answers_in_flight() {
    runtime().block_on(async {
        let release = Arc::new(AtomicBool::new(false));
        let settings =
            Settings { concurrency: 8, latency: Duration::from_millis(300), ..Settings::default() };
        let released = Arc::clone(&release);
        let world = World::start(settings, move |request| {
            released.store(true, Ordering::SeqCst);
            Reply::Text(data::right_answer(&request.item))
        })
        .await;
        let run = Order::mmlu_pro(ITEMS).place(&world).await;
        world.wait_until("a call", || async { release.load(Ordering::SeqCst) }).await;
        world.cancel(run).await;
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        assert_eq!(world.model.total(), ITEMS as u64, "nothing was asked twice");
    });
}

/// Starts a run of twenty items that succeeds: one ends with an infrastructure-error, one is too long.
async fn run_with_one_error(well: &Arc<AtomicBool>) -> (World, bench_domain::RunId) {
    let is_well = Arc::clone(well);
    let world = World::start(Settings::default(), move |request| match request.item.as_str() {
        "7" if !is_well.load(Ordering::SeqCst) => Reply::Status(500, String::new(), vec![]),
        "3" => Reply::Status(413, String::new(), vec![]),
        _ => Reply::Text(data::right_answer(&request.item)),
    })
    .await;
    let run = Order::mmlu_pro(20).place(&world).await;
    assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
    (world, run)
}

const ERRORS: Requeue =
    Requeue { budget: bench_domain::Budget { usd: None, tokens: None }, errors: true, only: None };

#[test]
fn a_run_that_succeeded_asks_exactly_its_errors_again() {
    runtime().block_on(async {
        let well = Arc::new(AtomicBool::new(false));
        let (world, run) = run_with_one_error(&well).await;
        let first = check(&world, run, Expected::SUCCEEDED).await;
        let before = world.model.question_counts();
        let found = world.stored_run(run).await;
        let report = found.benchmarks[0].state.report().unwrap();
        assert_eq!((report.coverage, report.error_causes.len()), (0.9, 1));
        assert_eq!(report.error_causes[0].count, 1);
        assert!(report.error_causes[0].message.contains("500"), "{:?}", report.error_causes);
        assert!(
            bench_api::requeue_run(&world.stack.api, run, None).await.is_err(),
            "not without being asked to"
        );

        well.store(true, Ordering::SeqCst);
        bench_api::requeue_run_with(&world.stack.api, run, None, ERRORS).await.unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let second = check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        for (before, after) in first["mmlu_pro"].iter().zip(&second["mmlu_pro"]) {
            match before.finished.as_ref().unwrap().verdict.outcome {
                Outcome::InfrastructureError => {
                    assert_eq!(after.finished.as_ref().unwrap().verdict.outcome, Outcome::Correct);
                }
                _ => assert_eq!(before, after, "what is no infrastructure-error is left alone"),
            }
        }
        for (item, times) in world.model.question_counts() {
            assert_eq!(times - before[&item], u64::from(item == "7"), "item {item}");
        }
        let found = world.stored_run(run).await;
        let report = found.benchmarks[0].state.report().unwrap();
        assert_eq!((report.coverage, report.error_causes.len()), (0.95, 0));
        let nothing_left = bench_api::requeue_run_with(&world.stack.api, run, None, ERRORS).await;
        assert!(nothing_left.unwrap_err().message().contains("no infrastructure-errors"));
    });
}

#[test]
fn one_sample_without_a_grade_is_asked_again() {
    runtime().block_on(async {
        let well = Arc::new(AtomicBool::new(false));
        let is_well = Arc::clone(&well);
        let world = World::start(Settings::default(), move |request| match request.item.as_str() {
            "7" | "11" if !is_well.load(Ordering::SeqCst) => Reply::Status(500, String::new(), vec![]),
            _ => Reply::Text(data::right_answer(&request.item)),
        })
        .await;
        let run = Order::mmlu_pro(20).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let first = check(&world, run, Expected::SUCCEEDED).await;
        let outcome = |sample: &bench_state::SampleRecord| sample.finished.as_ref().unwrap().verdict.outcome;
        let failed: Vec<_> = first["mmlu_pro"]
            .iter()
            .filter(|sample| outcome(sample) == Outcome::InfrastructureError)
            .collect();
        let graded = first["mmlu_pro"].iter().find(|sample| outcome(sample) == Outcome::Correct).unwrap();
        assert_eq!(failed.len(), 2);
        let ask = |benchmark: Option<&str>, position| Requeue {
            only: Some(ChosenSample { benchmark: benchmark.map(str::to_owned), position }),
            ..Requeue::default()
        };
        for (what, why) in [
            (ask(None, graded.position), "was graded"),
            (ask(Some("aime_2025"), failed[0].position), "no benchmark `aime_2025`"),
            (ask(None, Position { item: 999, sample: 0 }), "no sample 0 at position 999"),
            (ask(None, Position { sample: 5, ..failed[0].position }), "no sample 5 at position"),
        ] {
            let refused = bench_api::requeue_run_with(&world.stack.api, run, None, what).await.unwrap_err();
            assert!(refused.message().contains(why), "{}", refused.message());
        }
        well.store(true, Ordering::SeqCst);
        let before = world.model.question_counts();
        let only = ask(None, failed[0].position);
        bench_api::requeue_run_with(&world.stack.api, run, None, only).await.unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let second = check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        for (before, after) in first["mmlu_pro"].iter().zip(&second["mmlu_pro"]) {
            match before.position == failed[0].position {
                true => assert_eq!(outcome(after), Outcome::Correct),
                false => assert_eq!(before, after, "other samples are left alone"),
            }
        }
        let after = world.model.question_counts();
        let asked = after.iter().filter(|(item, times)| **times > before[*item]).count();
        assert_eq!(asked, 1, "one question");

        // The next requeue repeats all errors again.
        bench_api::requeue_run_with(&world.stack.api, run, None, ERRORS).await.unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let found = world.stored_run(run).await;
        assert_eq!(found.benchmarks[0].state.report().unwrap().coverage, 1.0);
    });
}

/// A run that is canceled while its errors are asked again keeps its earlier results.
#[test]
fn a_run_that_is_canceled_among_its_errors_keeps_its_results() {
    runtime().block_on(async {
        let asked_again = Arc::new(AtomicBool::new(false));
        let (hangs, settings) = (
            Arc::clone(&asked_again),
            Settings { vars: &[("CHUTES_INFERENCE_TIMEOUT_SECONDS", "600")], ..Settings::default() },
        );
        let world = World::start(settings, move |request| match request.item.as_str() {
            "7" if hangs.load(Ordering::SeqCst) => Reply::Hang(Duration::from_secs(600)),
            "7" => Reply::Status(500, String::new(), vec![]),
            _ => Reply::Text(data::right_answer(&request.item)),
        })
        .await;
        let run = Order::mmlu_pro(20).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        asked_again.store(true, Ordering::SeqCst);
        bench_api::requeue_run_with(&world.stack.api, run, None, ERRORS).await.unwrap();
        world.wait_until("the error asked again", || async { world.model.in_flight() == 1 }).await;
        world.cancel(run).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Canceled);
        let found = world.stored_run(run).await;
        let report = found.benchmarks[0].state.report().unwrap();
        assert_eq!((report.graded, report.score), (19, Some(1.0)));

        asked_again.store(false, Ordering::SeqCst);
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        assert_eq!(world.stored_run(run).await.benchmarks[0].state.report().unwrap().graded, 19);
    });
}
