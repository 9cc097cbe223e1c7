//! Ends the process at every call that an episode makes to the services.

use std::sync::Arc;

use bench_embedded::Recorder;

use super::{CALLS, acts_by_sandbox, expected_acts, host, settings, works};
use crate::kill_everywhere::Tripwire;
use crate::support::{Expected, ManualDriver, Order, Settings, World, check, runtime};

/// Whatever call is the last one of a process, nothing is typed twice in a sandbox, no stored reply is asked for again,
/// and no sandbox is left.
async fn survive(agent: &str) {
    let wire = Arc::new(Tripwire::default());
    let watching = Arc::clone(&wire);
    let recorder = Recorder::new(move |call| watching.note_call(call.action));
    let world = World::open(Settings { recorder: Some(recorder), ..settings() }, works).await;
    let order = Order::tasks(1, agent, &[]);
    let (mut starts, mut calls) = (0, 0);
    loop {
        calls += 1;
        let run = order.place(&world).await;
        let driver = ManualDriver::new(&world, starts);
        let (asked, sandboxes) = (world.model.total(), acts_by_sandbox(&world).len());
        wire.arm(calls);
        let ended = wire.drive(driver.drain()).await;
        drop(driver);
        if !ended {
            starts += 1;
            let driver = ManualDriver::new(&world, starts);
            driver.scheduler.resume().await.unwrap();
            driver.drain().await;
        }
        let state = format!("call {calls}, {}", wire.last());
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(host(&world).problem(), None, "{state}");
        let acts = acts_by_sandbox(&world).split_off(sandboxes);
        // A sandbox that was requested but not saved is lost before anything is done in it.
        assert_eq!(acts, [expected_acts(agent)], "{state}");
        // A reply that was on its way when the process ended is asked for again.
        let asked = world.model.total() - asked;
        assert!((CALLS..=CALLS + u64::from(!ended)).contains(&asked), "{state}: {asked} calls");
        if ended {
            break;
        }
    }
    println!("{agent}: ended at each of {} calls", calls - 1);
    assert!(calls > 40, "an episode makes more calls than {calls}");
}

#[test]
fn terminus_2_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(survive("terminus-2"));
}

#[test]
fn bash_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(survive("bash"));
}
