//! Ends the process at every call that a judged run makes to the services.

use std::sync::Arc;

use bench_embedded::Recorder;
use bench_tests::model_server::Reply;

use super::question_counts;
use crate::kill_everywhere::Tripwire;
use crate::support::{Expected, ManualDriver, Order, Settings, World, check, data, runtime};

/// Number of samples of a run, each answered once.
const ANSWERS: u64 = 2;
/// Number of replies of the judge: its first reply about the first sample has no verdict.
const REPLIES: u64 = 3;

/// After any kill, nothing stored is asked for again: no answer while the judge is pending, and no reply while its
/// verdict is not committed.
#[test]
fn a_judged_run_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(async {
        let wire = Arc::new(Tripwire::default());
        let watching = Arc::clone(&wire);
        let recorder = Recorder::new(move |call| watching.note_call(call.action));
        let settings = Settings { recorder: Some(recorder), ..Settings::default() };
        // Every fresh judging of the first item begins with prose; its record says which reply comes next.
        let world = World::open(settings, |request| match (request.is_judge, data::number(&request.item)) {
            (false, _) => Reply::Text(data::right_answer(&request.item)),
            (true, 0) if request.before.is_multiple_of(2) => Reply::Text("Well, an A.".into()),
            _ => Reply::Text("A".into()),
        })
        .await;
        let order = Order::aa_omniscience(2, &world);
        let (mut starts, mut calls) = (0, 0);
        // Totals over all runs so far, since a question in flight may be counted while the next run is in progress.
        let (mut runs, mut again) = (0, 0);
        loop {
            calls += 1;
            let run = order.place(&world).await;
            let driver = ManualDriver::new(&world, starts);
            wire.arm(calls);
            let ended = wire.drive(driver.drain()).await;
            drop(driver);
            if ended {
                check(&world, run, Expected::SUCCEEDED).await;
                break;
            }
            starts += 1;
            let driver = ManualDriver::new(&world, starts);
            driver.scheduler.resume().await.unwrap();
            driver.drain().await;
            check(&world, run, Expected::SUCCEEDED).await;
            let last = wire.last();
            runs += 1;
            // Only a request in flight may be repeated. Repeating one shifts the judge's alternation, so that there
            // may be two.
            again += u64::from(["PutObject", "GetObject"].contains(&last.as_str()));
            let (answers, replies) = question_counts(&world);
            let state = format!("call {calls}, {last}: {answers} answers, {replies} replies, {again} again");
            assert!((runs * ANSWERS..=runs * ANSWERS + again).contains(&answers), "{state}");
            assert!(replies >= runs * ANSWERS && replies <= runs * REPLIES + 2 * again, "{state}");
        }
        println!("ended at each of {} calls", calls - 1);
        assert!(calls > 60, "a judged run makes more calls than {calls}");
    });
}
