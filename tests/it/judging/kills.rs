//! Ends the process at every call that a judged run makes to the services.

use std::sync::Arc;

use bench_embedded::Recorder;
use bench_tests::model_server::Reply;

use super::asked;
use crate::kill_everywhere::Tripwire;
use crate::support::{Expected, Hands, Order, Settings, World, check, data, runtime};

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
        let recorder = Recorder::new(move |call| watching.called(call.action));
        let settings = Settings { recorder: Some(recorder), ..Settings::default() };
        // Every fresh judging of the first item begins with prose; its record says which reply comes next.
        let world = World::open(settings, |ask| match (ask.is_judge, data::number(&ask.item)) {
            (false, _) => Reply::Text(data::right(&ask.item)),
            (true, 0) if ask.before.is_multiple_of(2) => Reply::Text("Well, an A.".into()),
            _ => Reply::Text("A".into()),
        })
        .await;
        let order = Order::judged(2, &world);
        let (mut starts, mut calls) = (0, 0);
        // Totals over all runs so far, since a question in flight may be counted while the next run is in progress.
        let (mut runs, mut again) = (0, 0);
        loop {
            calls += 1;
            let run = order.place(&world).await;
            let hands = Hands::of(&world, starts);
            wire.arm(calls);
            let ended = wire.drive(hands.drain()).await;
            drop(hands);
            if ended {
                check(&world, run, Expected::SUCCEEDED).await;
                break;
            }
            starts += 1;
            let hands = Hands::of(&world, starts);
            hands.scheduler.resume().await.unwrap();
            hands.drain().await;
            check(&world, run, Expected::SUCCEEDED).await;
            let last = wire.last();
            runs += 1;
            // Only a request in flight may be repeated. Repeating one shifts the judge's alternation, so that there
            // may be two.
            again += u64::from(["PutObject", "GetObject"].contains(&last.as_str()));
            let (answers, replies) = asked(&world);
            let told = format!("call {calls}, {last}: {answers} answers, {replies} replies, {again} again");
            assert!((runs * ANSWERS..=runs * ANSWERS + again).contains(&answers), "{told}");
            assert!(replies >= runs * ANSWERS && replies <= runs * REPLIES + 2 * again, "{told}");
        }
        println!("ended at each of {} calls", calls - 1);
        assert!(calls > 60, "a judged run makes more calls than {calls}");
    });
}
