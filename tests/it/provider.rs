//! Effects of providers on a run: refusals, delays, interruptions, invalid responses.

use std::time::Duration;

use bench_domain::{BenchmarkStatus, Outcome, RunStatus};
use bench_queue::RECEIVES_MAX;
use bench_state::{EventKind, SampleRecord};
use bench_tests::model_server::{ModelRequest, Reply};

use crate::support::{Expected, Order, Settings, World, check, data, runtime};

fn status_reply(status: u16, body: &str) -> Reply {
    Reply::Status(status, body.to_owned(), vec![])
}

fn right_reply(request: &ModelRequest) -> Reply {
    Reply::Text(data::right_answer(&request.item))
}

/// Returns the outcome of a sample and its reason.
fn outcome_and_reason(sample: &SampleRecord) -> (Outcome, &str) {
    let verdict = &sample.finished.as_ref().unwrap().verdict;
    (verdict.outcome, &verdict.reason)
}

/// The rate limit lasts longer than maxReceiveCount × visibility timeout, both scaled down: seven refusals at least a
/// second apart, against five deliveries of one second. No message becomes a dead letter, and no refusal counts as a
/// failed attempt.
#[test]
fn a_rate_limit_that_outlasts_all_deliveries_makes_no_dead_letter() {
    const REFUSALS: u64 = 7;
    const { assert!(REFUSALS > RECEIVES_MAX as u64) };
    runtime().block_on(async {
        let settings = Settings { visibility_s: Some(1), ..Settings::default() };
        let world = World::start(settings, |request| match request.before {
            before if before < REFUSALS => {
                let seconds = if before % 4 == 3 { "1" } else { "0" };
                Reply::Status(429, "slow down".into(), vec![("retry-after", seconds.into())])
            }
            _ => right_reply(request),
        })
        .await;
        let run = Order::mmlu_pro(6).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        for sample in &samples["mmlu_pro"] {
            assert_eq!(outcome_and_reason(sample), (Outcome::Correct, ""));
            assert_eq!(sample.history.failures, 0, "a wait is no failed attempt");
            assert!(u64::from(sample.history.waits) >= REFUSALS);
        }
        assert!(world.model.question_counts().values().all(|times| *times == REFUSALS + 1));
    });
}

/// Samples share the wait: while one sample has to wait, the others don't ask.
#[test]
fn a_rate_limit_applies_to_all_samples_with_the_same_key() {
    runtime().block_on(async {
        let settings = Settings { concurrency: 2, ..Settings::default() };
        let world = World::start(settings, |request| match request.total_before {
            0 | 1 => Reply::Status(429, String::new(), vec![("retry-after", "3".into())]),
            _ => right_reply(request),
        })
        .await;
        let run = Order::mmlu_pro(30).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        let waited = samples["mmlu_pro"].iter().filter(|sample| sample.history.waits > 0).count();
        assert!(waited > 10, "{waited} of 30 samples waited");
        assert!(world.model.total() <= 30 + 2);
    });
}

/// A wait is in the run's record while it lasts, with one event for its start and one for its end.
#[test]
fn a_long_rate_limit_is_visible_until_it_ends() {
    runtime().block_on(async {
        let settings = Settings { concurrency: 2, ..Settings::default() };
        let world = World::start(settings, |request| match request.total_before {
            0 | 1 => Reply::Status(429, "slow down".into(), vec![("retry-after", "11".into())]),
            _ => right_reply(request),
        })
        .await;
        let run = Order::mmlu_pro(20).place(&world).await;
        world
            .wait_until("the wait is visible", || async {
                world.stored_run(run).await.run.provider_wait.is_some()
            })
            .await;
        let wait = world.stored_run(run).await.run.provider_wait.unwrap();
        assert!(wait.message.as_ref().unwrap().contains("slow down"), "{wait:?}");
        assert!(wait.until.since(wait.since) >= Duration::from_secs(10), "{wait:?}");
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(world.stored_run(run).await.run.provider_wait, None);
        let events = world.stack.state.events(run, 0, 1_000).await.unwrap();
        let of = |kind| events.iter().filter(move |event| event.event_type == kind).collect::<Vec<_>>();
        let (started, ended) = (of(EventKind::ProviderWaitStarted), of(EventKind::ProviderWaitEnded));
        assert_eq!((started.len(), ended.len()), (1, 1));
        assert!(started[0].message.contains("next request at"), "{}", started[0].message);
        assert_eq!(started[0].data.as_ref().unwrap()["kind"], "rate_limited");
        let (_, waited) = ended[0].message.split_once("answers again after ").unwrap();
        let seconds: u64 = waited.trim_end_matches('s').parse().unwrap();
        assert!(seconds >= 10, "{}", ended[0].message);
    });
}

#[test]
fn transient_failures_are_retried() {
    runtime().block_on(async {
        let settings =
            Settings { vars: &[("CHUTES_INFERENCE_TIMEOUT_SECONDS", "15")], ..Settings::default() };
        let world =
            World::start(settings, |request| match (request.before, data::number(&request.item) % 6) {
                (0, 0) => status_reply(500, "oops"),
                (0, 1) => Reply::Garbage,
                (0, 2) => Reply::HalfStream(data::right_answer(&request.item)),
                (0, 3) => Reply::Nothing,
                (0, 4) => Reply::Hang(Duration::from_secs(600)),
                (0 | 1, 5) => status_reply(502, "<html>bad gateway</html>"),
                _ => right_reply(request),
            })
            .await;
        let run = Order::mmlu_pro(12).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        for sample in &samples["mmlu_pro"] {
            assert_eq!(outcome_and_reason(sample), (Outcome::Correct, ""), "item {}", sample.item_id);
            let expected = if data::number(&sample.item_id) % 6 == 5 { 2 } else { 1 };
            assert_eq!(sample.history.failures, expected);
        }
    });
}

#[test]
fn failures_that_stay_end_as_infrastructure_errors_with_their_cause() {
    runtime().block_on(async {
        let settings = Settings {
            concurrency: 48,
            vars: &[("CHUTES_INFERENCE_TIMEOUT_SECONDS", "15"), ("WORKER_ITEM_ATTEMPTS", "2")],
            ..Settings::default()
        };
        let world = World::start(settings, |request| match data::number(&request.item) {
            0 => status_reply(500, "the engine is on fire"),
            1 => Reply::Garbage,
            2 => Reply::HalfStream(data::right_answer(&request.item)),
            3 => Reply::Nothing,
            4 => Reply::Hang(Duration::from_secs(600)),
            _ => right_reply(request),
        })
        .await;
        let run = Order::mmlu_pro(50).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        let samples = &samples["mmlu_pro"];
        for (number, cause, who) in [
            (0, "HTTP 500", "the provider gave up"),
            (1, "not what you asked for", "the provider gave up"),
            (2, "broke off", "the provider gave up"),
            (3, "Network error", "the provider gave up"),
            (4, "Nothing came", "the runner gave up"),
        ] {
            let sample = samples.iter().find(|sample| sample.item_id == number.to_string()).unwrap();
            let (outcome, reason) = outcome_and_reason(sample);
            assert_eq!(outcome, Outcome::InfrastructureError);
            assert!(reason.contains(cause), "{number}: {reason}");
            assert!(reason.contains(who) && reason.contains("after 2 attempts"), "{number}: {reason}");
            assert!(sample.finished.as_ref().unwrap().body.is_none());
        }
        let found = world.stored_run(run).await;
        let report = found.benchmarks[0].state.report().unwrap();
        assert_eq!((report.planned, report.graded, report.coverage), (50, 45, 0.9));
        assert_eq!(report.score, Some(1.0), "an error is no wrong answer");
        assert_eq!(report.accuracy_all, 0.9);
        assert_eq!(report.outcomes.get(Outcome::InfrastructureError), 5);
    });
}

/// A sample whose answer takes too long is not asked again: the answer was paid for, and the next one would take as
/// long.
#[test]
fn an_answer_takes_as_long_as_the_operator_allows() {
    runtime().block_on(async {
        let settings = Settings { vars: &[("WORKER_ITEM_TIMEOUT_SECONDS", "3")], ..Settings::default() };
        let world = World::start(settings, |request| match data::number(&request.item) {
            7 => Reply::Hang(Duration::from_secs(600)),
            _ => right_reply(request),
        })
        .await;
        let run = Order::mmlu_pro(20).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        let late = samples["mmlu_pro"].iter().find(|sample| sample.item_id == "7").unwrap();
        let (outcome, reason) = outcome_and_reason(late);
        assert_eq!(outcome, Outcome::TooLong);
        assert!(reason.contains("in the time given"), "{reason}");
        assert_eq!(world.model.question_counts().get("7"), Some(&1));
    });
}

#[test]
fn a_refused_key_fails_the_run_at_once() {
    const CONCURRENCY: usize = 4;
    runtime().block_on(async {
        let settings = Settings { concurrency: CONCURRENCY, ..Settings::default() };
        let world = World::start(settings, |_| status_reply(401, r#"{"error":{"message":"bad key"}}"#)).await;
        let run = Order::mmlu_pro(200).with_aime(2).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        // Waits for empty queues: every message has been handled when it returns.
        check(&world, run, Expected::FAILED).await;
        let asked = world.model.total();
        assert!(asked <= CONCURRENCY as u64, "{asked} questions after the key was refused");
        let found = world.stored_run(run).await;
        let error = found.run.state.error().unwrap();
        assert!(error.contains("HTTP 401") && error.contains("bad key"), "{error}");
        for benchmark in &found.benchmarks {
            assert_eq!(benchmark.state.status(), BenchmarkStatus::Skipped);
        }
    });
}

#[test]
fn what_says_nothing_about_the_answer_is_not_graded_and_a_refusal_is_wrong() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), |request| match data::number(&request.item) {
            0 => status_reply(400, r#"{"error":{"message":"8193 tokens","code":"context_length_exceeded"}}"#),
            1 => Reply::Finished("I would rather not".into(), "content_filter"),
            2 => Reply::Finished("Let us see. First".into(), "length"),
            3 => Reply::Finished(data::right_answer(&request.item), "length"),
            4 => status_reply(400, r#"{"error":{"message":"no","code":"content_policy_violation"}}"#),
            5 => Reply::Text(String::new()),
            6 => Reply::Text("no idea".into()),
            _ => right_reply(request),
        })
        .await;
        let run = Order::mmlu_pro(20).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        let ends: Vec<Outcome> =
            samples["mmlu_pro"].iter().map(|sample| outcome_and_reason(sample).0).collect();
        let of = |item: usize| {
            let place = samples["mmlu_pro"].iter().position(|sample| sample.item_id == item.to_string());
            ends[place.unwrap()]
        };
        for (item, expected) in [
            (0, Outcome::TooLong),
            (1, Outcome::Refused),
            (2, Outcome::Truncated),
            (3, Outcome::Correct),
            (4, Outcome::Refused),
            (5, Outcome::NoAnswer),
            (6, Outcome::Unparsed),
            (7, Outcome::Correct),
        ] {
            assert_eq!(of(item), expected, "item {item}");
        }
        let found = world.stored_run(run).await;
        let report = found.benchmarks[0].state.report().unwrap();
        assert_eq!((report.graded, report.coverage, report.truncated_answers), (19, 0.95, 2));
        assert_eq!(report.score, Some(14.0 / 19.0));
        assert!(
            world.model.question_counts().values().all(|times| *times == 1),
            "none of these is asked again"
        );
    });
}

#[test]
fn low_coverage_fails_the_run_without_a_score() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), |request| match data::number(&request.item) {
            0..5 => status_reply(413, ""),
            _ => right_reply(request),
        })
        .await;
        let run = Order::mmlu_pro(40).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let found = world.stored_run(run).await;
        assert_eq!(found.run.state.overall_score(), None);
        let state = &found.benchmarks[0].state;
        assert_eq!(state.status(), BenchmarkStatus::Failed);
        let report = state.report().unwrap();
        assert_eq!((report.score, report.score_of_graded, report.coverage), (None, Some(1.0), 0.875));
        let error = found.run.state.error().unwrap();
        assert!(error.contains("35 of 40") && error.contains("5 too-long"), "{error}");
    });
}
