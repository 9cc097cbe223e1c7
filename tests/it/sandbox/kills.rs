//! Ends the process at every call that a run of code makes to the services, and in the middle of jobs.

use std::sync::Arc;
use std::time::Duration;

use bench_domain::{RunId, RunStatus};
use bench_embedded::Recorder;
use bench_queue::Depth;
use bench_sandy::testing::Endpoint;
use bench_tests::model_server::Reply;

use super::{asked, faultless, right};
use crate::kill_everywhere::Tripwire;
use crate::support::world::End;
use crate::support::{Expected, Hands, Order, Settings, World, check, data, runtime};

/// After any kill, the model is not asked again once its answer is stored, the sample ends once, and every sandbox is
/// ended by its turn, or through the ledger after its lease.
#[test]
fn a_run_of_code_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(async {
        let wire = Arc::new(Tripwire::default());
        let watching = Arc::clone(&wire);
        let recorder = Recorder::new(move |call| watching.called(call.action));
        let world = World::open(Settings { recorder: Some(recorder), ..faultless() }, right).await;
        let order = Order::livecodebench(1);
        let (mut starts, mut calls, mut again) = (0, 0, 0);
        loop {
            calls += 1;
            let run = order.place(&world).await;
            let hands = Hands::of(&world, starts);
            wire.arm(calls);
            let ended = wire.drive(hands.drain()).await;
            drop(hands);
            let made = world.host().made();
            if !ended {
                starts += 1;
                let hands = Hands::of(&world, starts);
                hands.scheduler.resume().await.unwrap();
                hands.drain().await;
                // Each kill adds at most one sandbox.
                let told =
                    format!("call {calls}, {}: {} sandboxes more", wire.last(), world.host().made() - made);
                assert!(world.host().made() - made <= 1, "{told}");
            }
            check(&world, run, Expected::SUCCEEDED).await;
            again += u64::from(!ended && ["PutObject", "GetObject"].contains(&wire.last().as_str()));
            let runs = u64::try_from(calls).unwrap();
            assert!(
                (runs..=runs + again).contains(&asked(&world)),
                "call {calls}: {} answers",
                asked(&world)
            );
            if ended {
                break;
            }
        }
        println!("ended at each of {} calls", calls - 1);
        assert!(calls > 40, "a run of code makes more calls than {calls}");
        // Sandboxes that a turn could no longer end are in the ledger, except one whose turn was killed before it was
        // entered, which its host has to end.
        let hands = Hands::of(&world, starts);
        let left = world.host().open().len();
        let overdue = bench_clock::now().plus(Duration::from_secs(48 * 3_600));
        let entered = hands.state.overdue_sandboxes(overdue, 1_000).await.unwrap().len();
        assert!(
            hands.scheduler.end_overdue_sandboxes(bench_clock::now()).await.unwrap() == 0,
            "no lease is over yet"
        );
        assert_eq!(world.host().open().len(), left);
        hands.scheduler.end_overdue_sandboxes(overdue).await.unwrap();
        assert!(hands.state.overdue_sandboxes(overdue, 1_000).await.unwrap().is_empty());
        let lost = world.host().open().len();
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
        let recorder = Recorder::new(move |call| watching.called(call.action));
        let world = World::open(Settings { recorder: Some(recorder), ..faultless() }, |ask| {
            let step = ask.item.trim_start_matches('s').split('-').next().unwrap_or_default().to_owned();
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
            let hands = Hands::of(&world, starts);
            wire.arm(calls);
            let ended = wire.drive(drain(&world, &hands, run)).await;
            drop(hands);
            if !ended {
                starts += 1;
                let hands = Hands::of(&world, starts);
                hands.scheduler.resume().await.unwrap();
                drain(&world, &hands, run).await;
            }
            let expected = match world.found(run).await.run.state.status() {
                RunStatus::Succeeded => Expected::SUCCEEDED,
                _ => Expected::FAILED,
            };
            let stored = check(&world, run, expected).await;
            let sample = &stored["scicode"][0];
            let body = sample.finished.as_ref().and_then(|finished| finished.body.clone()).unwrap();
            let found = world.found(run).await;
            let address = World::sample_ref(&found, "scicode", sample.position);
            let kept = world.stack.blobs.get_body(&address, body.attempt, Some(&body.sha256)).await.unwrap();
            let names: Vec<String> = kept.unwrap().0.steps.into_iter().map(|step| step.name).collect();
            assert_eq!(names, ["1.1", "1.2", "1.3"], "call {calls}");
            again += u64::from(!ended && ["PutObject", "GetObject"].contains(&wire.last().as_str()));
            let runs = u64::try_from(calls / STRIDE).unwrap();
            let told = format!("call {calls}, {}: {} answers in {runs} runs", wire.last(), asked(&world));
            assert!((runs * steps..=runs * steps + again).contains(&asked(&world)), "{told}");
            if ended {
                break;
            }
        }
        assert!(calls > 60, "a problem of three questions makes more calls than {calls}");
    });
}

/// Processes messages until the run is over. Another round has to wait for a moment.
async fn drain(world: &World, hands: &Hands, run: RunId) {
    loop {
        hands.drain().await;
        let idle = world.depths().await.iter().all(|(_, live, _)| *live == Depth::default());
        if idle && !world.found(run).await.run.state.status().is_open() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_kill_in_the_middle_of_jobs_asks_no_model_again() {
    runtime().block_on(async {
        let mut world = World::start(Settings { concurrency: 4, ..faultless() }, right).await;
        let run = Order::livecodebench(12).place(&world).await;
        for kill in 1..=3_u64 {
            world.until("some jobs", || async { world.host().calls(Endpoint::Terminate) >= kill * 2 }).await;
            world = world.reopen(End::Killed).await;
        }
        assert_eq!(world.end_of(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED).await;
        assert!((12..=12 + 3 * 4).contains(&asked(&world)), "{} answers", asked(&world));
    });
}
