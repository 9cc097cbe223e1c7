//! Judging that is interrupted, canceled or given up.

use std::time::Duration;

use bench_domain::{Outcome, RunStatus};
use bench_embedded::faults::FaultKind;
use bench_queue::{Message, QueueName};
use bench_tests::model_server::Reply;

use super::{NAME, question_counts, stored_samples};
use crate::support::world::Shutdown;
use crate::support::{Expected, ManualDriver, Order, Settings, World, check, data, runtime};

const ITEMS: usize = 8;

fn judge_rule(request: &bench_tests::model_server::ModelRequest) -> Reply {
    if request.is_judge { Reply::Text("A".into()) } else { Reply::Text(data::right_answer(&request.item)) }
}

#[test]
fn cancel_ends_what_is_being_judged() {
    runtime().block_on(async {
        let settings =
            Settings { vars: &[("CHUTES_INFERENCE_TIMEOUT_SECONDS", "600")], ..Settings::default() };
        let world = World::start(settings, |request| match request.is_judge {
            false => Reply::Text(data::right_answer(&request.item)),
            true => Reply::Hang(Duration::from_secs(600)),
        })
        .await;
        let run = Order::aa_omniscience(ITEMS, &world).place(&world).await;
        world.wait_until("judges in flight", || async { question_counts(&world).1 == ITEMS as u64 }).await;
        world.cancel(run).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Canceled);
        world.wait_until("aborted calls", || async { world.model.disconnects() == ITEMS as u64 }).await;
        let stored = check(&world, run, Expected::CANCELED).await;
        assert!(stored[NAME].iter().all(|sample| sample.finished.is_none() && sample.turn.is_some()));
        // Late messages of the run change nothing.
        let found = world.stored_run(run).await;
        let late = World::sample_ref(&found, NAME, stored[NAME][0].position);
        let late = [
            Message::Turn { sample: late.clone(), generation: 1 },
            Message::Sample { sample: late, generation: 1 },
        ];
        world.stack.queues.send_all(&late, Duration::ZERO).await.unwrap();
        assert_eq!(check(&world, run, Expected::CANCELED).await, stored);
        assert_eq!(question_counts(&world), (ITEMS as u64, ITEMS as u64));
    });
}

#[test]
fn a_kill_while_judges_are_asked_loses_no_answer() {
    runtime().block_on(async {
        let settings = Settings { concurrency: 4, latency: Duration::from_millis(50), ..Settings::default() };
        let mut world = World::start(settings, judge_rule).await;
        let run = Order::aa_omniscience(40, &world).place(&world).await;
        for kill in 1..=3_u64 {
            world.wait_until("some verdicts", || async { question_counts(&world).1 >= kill * 8 }).await;
            world = world.reopen(Shutdown::Killed).await;
        }
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED).await;
        let (answers, replies) = question_counts(&world);
        // Requests in flight at a kill are lost; nothing else is asked twice.
        assert!((40..=40 + 3 * 4).contains(&answers), "{answers} answers");
        assert!((40..=40 + 3 * 4).contains(&replies), "{replies} replies");
    });
}

/// The message that hands an answer over is lost: its record names the next stage.
#[test]
fn a_lost_turn_is_found() {
    runtime().block_on(async {
        let world = World::open(Settings::default(), judge_rule).await;
        let run = Order::aa_omniscience(ITEMS, &world).place(&world).await;
        let driver = ManualDriver::new(&world, 0);
        assert!(driver.handle(&Message::Plan { run, generation: 1 }).await);
        let found = world.stored_run(run).await;
        for sample in stored_samples(&world, run).await {
            let sample = World::sample_ref(&found, NAME, sample.position);
            assert!(driver.handle(&Message::Sample { sample: sample.clone(), generation: 1 }).await);
            // A second message for the same sample only sends the message of the next stage again.
            assert!(driver.handle(&Message::Sample { sample, generation: 1 }).await);
        }
        assert!(stored_samples(&world, run).await.iter().all(|sample| sample.turn.is_some()));
        assert_eq!(question_counts(&world), (ITEMS as u64, 0));
        for queue in QueueName::ALL {
            let url = world.stack.queues.url(queue).unwrap();
            world.stack.queues.client().purge_queue().queue_url(url).send().await.unwrap();
        }
        let resent = driver.scheduler.reconcile_after(Duration::ZERO).await.unwrap();
        assert_eq!(resent.samples, ITEMS as u64);
        let depths = world.depths().await;
        let visible = |name| depths.iter().find(|(queue, ..)| *queue == name).unwrap().1.visible;
        assert_eq!((visible(QueueName::Items), visible(QueueName::Turns)), (0, ITEMS as u64));
        driver.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(question_counts(&world), (ITEMS as u64, ITEMS as u64));
    });
}

/// A turn that fails every time becomes a dead letter after five deliveries, and ends the sample with that error. Its
/// answer is kept, and judged when the run is requeued.
#[test]
fn a_turn_that_never_ends_is_a_dead_letter() {
    runtime().block_on(async {
        let mut world = World::open(Settings::default(), judge_rule).await;
        let run = Order::aa_omniscience(ITEMS, &world).place(&world).await;
        let driver = ManualDriver::new(&world, 0);
        assert!(driver.handle(&Message::Plan { run, generation: 1 }).await);
        let found = world.stored_run(run).await;
        for sample in stored_samples(&world, run).await {
            assert!(
                driver
                    .handle(&Message::Sample {
                        sample: World::sample_ref(&found, NAME, sample.position),
                        generation: 1
                    })
                    .await
            );
        }
        let plan = found.benchmarks[0].plan.clone().unwrap();
        let blobs = &world.stack.blobs;
        let data_key = plan.dataset.data_key.clone();
        let items = blobs.get(&data_key).await.unwrap().unwrap();
        blobs.delete(&data_key).await.unwrap();
        world.stack.start().await.unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        let stored = check(&world, run, Expected::FAILED).await;
        for sample in &stored[NAME] {
            let finished = sample.finished.as_ref().unwrap();
            assert_eq!(finished.verdict.outcome, Outcome::InfrastructureError);
            assert!(
                finished.verdict.reason.contains("judge was to be asked 5 times"),
                "{:?}",
                finished.verdict
            );
            assert!(finished.body.is_some() && finished.usage.is_some());
        }
        assert_eq!(question_counts(&world), (ITEMS as u64, 0));
        world.stack.blobs.put(&data_key, items, "application/octet-stream").await.unwrap();
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        assert_eq!(question_counts(&world), (ITEMS as u64, ITEMS as u64));
    });
}

/// Faults of every kind that can be injected: no answer or reply is asked for again.
#[test]
fn a_judged_run_rides_out_faults() {
    const FAULTS: &str =
        "seed=21,conflict=0.05,throttle=0.01,lost-response=0.02,duplicate=0.3,lose@bench-turns=6";
    const SAMPLES: u64 = 60;
    runtime().block_on(async {
        let settings =
            Settings { faults: FAULTS, concurrency: 16, visibility_s: Some(3), ..Settings::default() };
        let world = World::start(settings, judge_rule).await;
        let run = Order::aa_omniscience(SAMPLES as usize, &world).place(&world).await;
        assert_eq!(world.wait_for_end_reconciled(run, Duration::from_secs(2)).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(question_counts(&world), (SAMPLES, SAMPLES), "nothing is paid for twice");
        let counts = world.stack.embedded.fault_counts();
        for kind in [FaultKind::Conflict, FaultKind::LostResponse, FaultKind::Duplicate, FaultKind::Lose] {
            assert!(counts.count(kind) > 0, "{} never struck", kind.name());
        }
    });
}
