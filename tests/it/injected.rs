//! Faults of the services, injected with a seed: each kind alone, and all together.

use std::time::Duration;

use bench_domain::{Outcome, RunStatus};
use bench_embedded::faults::FaultKind;
use bench_tests::model_server::Reply;

use crate::support::{Expected, Order, Settings, World, check, data, runtime};

/// Grace period of ten minutes, scaled down.
const GRACE: Duration = Duration::from_secs(2);
const ITEMS: usize = 60;
const AIME_ITEMS: usize = 2;
/// Number of samples of an AIME item.
const AIME_SAMPLES: u64 = 4;

/// Executes a run under these faults, asserts that each kind occurred, and checks the invariants.
fn check_survives(items: usize, faults: &'static str, kinds: &[FaultKind]) {
    runtime().block_on(async {
        let settings = Settings { faults, concurrency: 32, visibility_s: Some(3), ..Settings::default() };
        let world = World::start(settings, |request| Reply::Text(data::mostly_right_answer(request))).await;
        let run = Order::mmlu_pro(items).with_aime(AIME_ITEMS).place(&world).await;
        assert_eq!(world.wait_for_end_reconciled(run, GRACE).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        for (benchmark, samples) in &samples {
            for sample in samples {
                let expected = match data::number(&sample.item_id) % 4 {
                    3 => Outcome::Incorrect,
                    _ => Outcome::Correct,
                };
                let outcome = sample.finished.as_ref().unwrap().verdict.outcome;
                assert_eq!(outcome, expected, "{benchmark} {}", sample.item_id);
            }
        }
        // Answers were paid for once: no injected fault made the model answer again.
        let asked = world.model.question_counts();
        assert_eq!(asked.len(), items + AIME_ITEMS);
        for (item, times) in asked {
            assert_eq!(times, if item.starts_with('a') { AIME_SAMPLES } else { 1 }, "item {item}");
        }
        let counts = world.stack.embedded.fault_counts();
        for kind in kinds {
            assert!(counts.count(*kind) > 0, "{} never struck", kind.name());
        }
    });
}

#[test]
fn transactions_that_conflict() {
    check_survives(ITEMS, "seed=1,conflict=0.2", &[FaultKind::Conflict]);
}

/// Enough conflicts that commits fail for good, although each try makes two calls (one without HTTP): the next attempt commits
/// the stored answer.
#[test]
fn commits_that_are_given_up() {
    check_survives(ITEMS / 2, "seed=2,conflict@TransactWriteItems=0.885", &[FaultKind::Conflict]);
}

#[test]
fn throttling() {
    check_survives(ITEMS, "seed=3,throttle=0.05", &[FaultKind::Throttle]);
}

/// Throttles every fifth call to each service: the run takes longer, and nothing is lost.
#[test]
fn heavy_throttling() {
    check_survives(ITEMS / 2, "seed=9,throttle=0.2", &[FaultKind::Throttle]);
}

#[test]
fn batches_that_are_done_in_part() {
    check_survives(ITEMS, "seed=4,unprocessed=0.5", &[FaultKind::Unprocessed]);
}

#[test]
fn responses_lost_after_the_write() {
    check_survives(ITEMS, "seed=5,lost-response=0.05", &[FaultKind::LostResponse]);
}

/// Claims and commits that succeed, but whose responses arrive only at the second or third try.
#[test]
fn claims_and_commits_whose_answers_are_lost() {
    check_survives(
        ITEMS,
        "seed=6,lost-response@UpdateItem=0.12,lost-response@TransactWriteItems=0.3",
        &[FaultKind::LostResponse],
    );
}

#[test]
fn every_message_delivered_twice() {
    check_survives(ITEMS, "seed=7,duplicate=1.0", &[FaultKind::Duplicate]);
}

#[test]
fn messages_that_are_lost() {
    check_survives(
        ITEMS,
        "seed=8,lose@bench-plans=1,lose@bench-items=9,lose@bench-finishes=1",
        &[FaultKind::Lose],
    );
}

/// Injects all faults at once.
fn check_survives_all_faults(faults: &'static str) {
    check_survives(
        ITEMS,
        faults,
        &[
            FaultKind::Conflict,
            FaultKind::Throttle,
            FaultKind::Unprocessed,
            FaultKind::LostResponse,
            FaultKind::Duplicate,
            FaultKind::Lose,
        ],
    );
}

#[test]
fn everything_at_once_11() {
    check_survives_all_faults(
        "seed=11,conflict=0.05,throttle=0.01,unprocessed=0.3,lost-response=0.01,duplicate=0.3,lose=4",
    );
}

#[test]
fn everything_at_once_12() {
    check_survives_all_faults(
        "seed=12,conflict=0.05,throttle=0.01,unprocessed=0.3,lost-response=0.01,duplicate=0.3,lose=4",
    );
}

#[test]
fn everything_at_once_13() {
    check_survives_all_faults(
        "seed=13,conflict=0.05,throttle=0.01,unprocessed=0.3,lost-response=0.01,duplicate=0.3,lose=4",
    );
}
