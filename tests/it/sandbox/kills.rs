//! Ends the process at every call that a run of code makes to the services, and in the middle of jobs.

use std::sync::Arc;
use std::time::Duration;

use bench_domain::{RunId, RunStatus};
use bench_embedded::Recorder;
use bench_queue::Depth;
use bench_sandy::testing::Endpoint;
use bench_tests::model_server::Reply;

use super::{question_count, right_reply, settings_without_faults};
use crate::kill_everywhere::Tripwire;
use crate::support::world::Shutdown;
use crate::support::{Expected, ManualDriver, Order, Settings, World, check, data, runtime};

/// After any kill, the model is not asked again once its answer is stored, the sample ends once, and every sandbox is
/// ended by its turn, or through the ledger after its lease.
#[test]
fn a_run_of_code_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(async {
        let wire = Arc::new(Tripwire::default());
        let watching = Arc::clone(&wire);
        let recorder = Recorder::new(move |call| watching.note_call(call.action));
        let world =
            World::open(Settings { recorder: Some(recorder), ..settings_without_faults() }, right_reply)
                .await;
        let order = Order::livecodebench(1);
        let (mut starts, mut calls, mut again) = (0, 0, 0);
        loop {
            calls += 1;
            let run = order.place(&world).await;
            let driver = ManualDriver::new(&world, starts);
            wire.arm(calls);
            let ended = wire.drive(driver.drain()).await;
            drop(driver);
            let created = world.sandbox_host().created_count();
            if !ended {
                starts += 1;
                let driver = ManualDriver::new(&world, starts);
                driver.scheduler.resume().await.unwrap();
                driver.drain().await;
                // Each kill adds at most one sandbox.
                let state = format!(
                    "call {calls}, {}: {} sandboxes more",
                    wire.last(),
                    world.sandbox_host().created_count() - created
                );
                assert!(world.sandbox_host().created_count() - created <= 1, "{state}");
            }
            check(&world, run, Expected::SUCCEEDED).await;
            again += u64::from(!ended && ["PutObject", "GetObject"].contains(&wire.last().as_str()));
            let runs = u64::try_from(calls).unwrap();
            assert!(
                (runs..=runs + again).contains(&question_count(&world)),
                "call {calls}: {} answers",
                question_count(&world)
            );
            if ended {
                break;
            }
        }
        println!("ended at each of {} calls", calls - 1);
        assert!(calls > 40, "a run of code makes more calls than {calls}");
        // Sandboxes that a turn could no longer end are in the ledger, except one whose turn was killed before it was
        // entered, which its host has to end.
        let driver = ManualDriver::new(&world, starts);
        let left = world.sandbox_host().open().len();
        let overdue = bench_clock::now().plus(Duration::from_secs(48 * 3_600));
        let entered = driver.state.overdue_sandboxes(overdue, 1_000).await.unwrap().len();
        assert!(
            driver.scheduler.end_overdue_sandboxes(bench_clock::now()).await.unwrap() == 0,
            "no lease is over yet"
        );
        assert_eq!(world.sandbox_host().open().len(), left);
        driver.scheduler.end_overdue_sandboxes(overdue).await.unwrap();
        assert!(driver.state.overdue_sandboxes(overdue, 1_000).await.unwrap().is_empty());
        let lost = world.sandbox_host().open().len();
        assert!(lost <= 1, "{lost} sandboxes of {left} are in no ledger; {entered} were");
    });
}

/// Number of calls between two kills, where not each call is tested.
const STRIDE: i64 = 5;

/// A problem of several questions: each is asked once, whatever is killed between them, and every answer is kept. The
/// verdicts depend on the Python packages of this machine, but the programs must end.
#[test]
fn questions_of_one_item_survive_the_end_of_the_process_at_every_call() {
    runtime().block_on(async {
        let wire = Arc::new(Tripwire::default());
        let watching = Arc::clone(&wire);
        let recorder = Recorder::new(move |call| watching.note_call(call.action));
        let world =
            World::open(Settings { recorder: Some(recorder), ..settings_without_faults() }, |request| {
                let step =
                    request.item.trim_start_matches('s').split('-').next().unwrap_or_default().to_owned();
                Reply::Text(format!("```python\ndef f{step}(x):\n    return x + {step}\n```"))
            })
            .await;
        let order = Order::scicode(1);
        let steps = data::SCICODE_STEPS as u64;
        let (mut starts, mut calls, mut again) = (0, 0, 0);
        loop {
            // Not every call, since the calls of a run with single questions are all tested above.
            calls += STRIDE;
            let run = order.place(&world).await;
            let driver = ManualDriver::new(&world, starts);
            wire.arm(calls);
            let ended = wire.drive(drain(&world, &driver, run)).await;
            drop(driver);
            if !ended {
                starts += 1;
                let driver = ManualDriver::new(&world, starts);
                driver.scheduler.resume().await.unwrap();
                drain(&world, &driver, run).await;
            }
            let expected = match world.stored_run(run).await.run.state.status() {
                RunStatus::Succeeded => Expected::SUCCEEDED,
                _ => Expected::FAILED,
            };
            let stored = check(&world, run, expected).await;
            let sample = &stored["scicode"][0];
            let body = sample.finished.as_ref().and_then(|finished| finished.body.clone()).unwrap();
            let found = world.stored_run(run).await;
            let address = World::sample_ref(&found, "scicode", sample.position);
            let kept = world.stack.blobs.get_body(&address, body.attempt, Some(&body.sha256)).await.unwrap();
            let names: Vec<String> = kept.unwrap().0.steps.into_iter().map(|step| step.name).collect();
            assert_eq!(names, ["1.1", "1.2", "1.3"], "call {calls}");
            again += u64::from(!ended && ["PutObject", "GetObject"].contains(&wire.last().as_str()));
            let runs = u64::try_from(calls / STRIDE).unwrap();
            let state =
                format!("call {calls}, {}: {} answers in {runs} runs", wire.last(), question_count(&world));
            assert!((runs * steps..=runs * steps + again).contains(&question_count(&world)), "{state}");
            if ended {
                break;
            }
        }
        assert!(calls > 60, "a problem of three questions makes more calls than {calls}");
    });
}

/// Processes messages until the run is over. Another round has to wait for a moment.
async fn drain(world: &World, driver: &ManualDriver, run: RunId) {
    loop {
        driver.drain().await;
        let idle = world.depths().await.iter().all(|(_, live, _)| *live == Depth::default());
        if idle && !world.stored_run(run).await.run.state.status().is_open() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_kill_in_the_middle_of_jobs_asks_no_model_again() {
    runtime().block_on(async {
        let mut world =
            World::start(Settings { concurrency: 4, ..settings_without_faults() }, right_reply).await;
        let run = Order::livecodebench(12).place(&world).await;
        for kill in 1..=3_u64 {
            world
                .wait_until("some jobs", || async {
                    world.sandbox_host().calls(Endpoint::Terminate) >= kill * 2
                })
                .await;
            world = world.reopen(Shutdown::Killed).await;
        }
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED).await;
        assert!((12..=12 + 3 * 4).contains(&question_count(&world)), "{} answers", question_count(&world));
    });
}
