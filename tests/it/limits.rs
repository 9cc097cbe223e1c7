//! Runs that limit their requests per minute, the time for an answer, and their failures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bench_domain::{Code, FailureReason, Outcome, RunLimits, RunStatus};
use bench_tests::model_server::Reply;

use crate::support::{Expected, Order, Settings, World, check, data, runtime};

const CONCURRENCY: usize = 8;

fn settings() -> Settings {
    Settings { concurrency: CONCURRENCY, ..Settings::default() }
}

/// Runs `items` items at this pace, and checks that no request arrived before its slot.
///
/// The first slot is no earlier than the order, so request `k` arrives at least `k` intervals after the order, however
/// late a busy machine delivers each of them.
async fn check_pace(items: usize, per_minute: u32) {
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    let world = World::start(settings(), move |request| {
        noted.lock().unwrap().push(Instant::now());
        Reply::Text(data::right_answer(&request.item))
    })
    .await;
    let limits = RunLimits { requests_per_minute: Some(per_minute), ..RunLimits::default() };
    let ordered = Instant::now();
    let run = Order::mmlu_pro(items).with_limits(limits).place(&world).await;
    assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
    let samples = check(&world, run, Expected::SUCCEEDED).await;
    // A wait for the own limit is no failed attempt, and doesn't count against the patience.
    assert!(
        samples["mmlu_pro"].iter().all(|sample| sample.history.failures == 0 && sample.history.waits == 0)
    );
    drop(world);
    let mut times = times.lock().unwrap().clone();
    times.sort();
    assert_eq!(times.len(), items);
    let interval = Duration::from_mins(1) / per_minute;
    // Slots are whole milliseconds of the clock.
    let rounding = Duration::from_millis(2);
    for (index, time) in (0..).zip(&times) {
        let after = *time - ordered;
        assert!(after + rounding >= interval * index, "request {index} came {after:?} after the order");
    }
}

#[test]
fn requests_keep_the_pace() {
    // One each 100 ms.
    runtime().block_on(check_pace(40, 600));
}

/// Slots that are further away than an attempt waits: samples are put off.
#[test]
fn a_slow_pace_puts_samples_off() {
    runtime().block_on(check_pace(3, 10));
}

#[test]
fn an_answer_has_the_runs_own_time() {
    runtime().block_on(async {
        let world = World::start(settings(), |request| match data::number(&request.item) {
            0 => Reply::Later(Duration::from_secs(3_600), data::right_answer(&request.item)),
            _ => Reply::Text(data::right_answer(&request.item)),
        })
        .await;
        let limits = RunLimits { timeout_seconds: Some(10), ..RunLimits::default() };
        let run = Order::mmlu_pro(12).with_limits(limits).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        let outcomes: Vec<_> = samples["mmlu_pro"]
            .iter()
            .map(|sample| sample.finished.as_ref().unwrap().verdict.outcome)
            .collect();
        assert_eq!(
            outcomes.iter().filter(|outcome| **outcome == Outcome::TooLong).count(),
            1,
            "{outcomes:?}"
        );
    });
}

#[test]
fn a_run_stops_at_its_number_of_failures_and_continues_later() {
    const ITEMS: usize = 80;
    const MAX: u64 = 7;
    runtime().block_on(async {
        let is_well = Arc::new(AtomicBool::new(false));
        let well = Arc::clone(&is_well);
        let world = World::start(settings(), move |request| {
            let number = data::number(&request.item);
            // The first answers show that the provider works; the failures differ, so they aren't the model's settings.
            if well.load(Ordering::SeqCst) || request.total_before < 10 {
                return Reply::Text(data::right_answer(&request.item));
            }
            let name: String =
                number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
            let body = serde_json::json!({ "error": { "message": format!("cannot read {name}") } });
            Reply::Status(400, body.to_string(), vec![])
        })
        .await;
        let limits = RunLimits { max_failures: Some(7), ..RunLimits::default() };
        let run = Order::mmlu_pro(ITEMS).with_limits(limits).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        let samples = check(&world, run, Expected::FAILED).await;
        let failed = samples["mmlu_pro"].iter().filter_map(|sample| sample.finished.as_ref());
        let failed = failed.filter(|it| it.verdict.outcome == Outcome::InfrastructureError).count() as u64;
        assert!((MAX..=MAX + CONCURRENCY as u64).contains(&failed), "{failed} failures");
        let asked = world.model.total();
        assert!(asked <= 10 + MAX + CONCURRENCY as u64, "{asked} requests");
        let state = world.stored_run(run).await.run.state;
        assert_eq!(state.failure_reason(), Some(FailureReason::Failures), "{state:?}");
        assert_eq!(state.error_code(), Some(Code::TooManyFailures));
        let error = state.error().unwrap();
        for part in ["stopped: ", " samples have failed, and the run was ordered to stop at 7", "cannot read"]
        {
            assert!(error.contains(part), "{error}");
        }

        is_well.store(true, Ordering::SeqCst);
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        assert_eq!(world.model.total(), ITEMS as u64 + failed, "no answer is asked for twice");
    });
}

#[test]
fn answers_that_take_too_long_are_failures_that_name_the_limit() {
    const MAX: u32 = 3;
    runtime().block_on(async {
        let world = World::start(settings(), |request| match data::number(&request.item) {
            0..6 => Reply::Text(data::right_answer(&request.item)),
            _ => Reply::Later(Duration::from_secs(30), data::right_answer(&request.item)),
        })
        .await;
        let limits = RunLimits { timeout_seconds: Some(1), max_failures: Some(MAX), ..RunLimits::default() };
        let run = Order::mmlu_pro(40).with_limits(limits).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        let samples = check(&world, run, Expected::FAILED).await;
        let failed: Vec<_> = samples["mmlu_pro"]
            .iter()
            .filter_map(|sample| sample.finished.as_ref())
            .filter(|finished| finished.verdict.outcome == Outcome::TooLong)
            .collect();
        assert!((MAX as usize..=MAX as usize + CONCURRENCY).contains(&failed.len()), "{}", failed.len());
        for finished in failed {
            let expected =
                "the answer took longer than 1 s (the run's own, `--timeout` (`timeout_seconds`)): ";
            assert!(finished.verdict.reason.starts_with(expected), "{}", finished.verdict.reason);
            assert_eq!(finished.verdict.code, Some(Code::AnswerTimeout));
        }
        let state = world.stored_run(run).await.run.state;
        assert_eq!(state.failure_reason(), Some(FailureReason::Failures), "{state:?}");
    });
}
