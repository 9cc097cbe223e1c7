//! Ends the process at every single call that a run makes to the services.
//!
//! A test processes a run step by step until the n-th call is in flight, and then drops everything. Whether that call
//! took effect is unknown, as after a kill. Then the next start finishes the run. The test repeats this for n from 1
//! until a run ends before its n-th call, which covers every moment of a run.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use bench_embedded::Recorder;
use bench_tests::model_server::Reply;

use crate::support::{Expected, ManualDriver, Order, Settings, World, check, data, runtime};

/// Number of samples of a run: two of one benchmark, four of the other.
const PLANNED: u64 = 6;

/// Stops the work at a call chosen by a countdown.
#[derive(Default)]
pub(crate) struct Tripwire {
    left: AtomicI64,
    armed: AtomicBool,
    tripped: AtomicBool,
    last: Mutex<String>,
}

impl Tripwire {
    pub(crate) fn arm(&self, calls: i64) {
        self.left.store(calls, Ordering::SeqCst);
        self.tripped.store(false, Ordering::SeqCst);
        self.armed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn disarm(&self) {
        self.armed.store(false, Ordering::SeqCst);
        self.tripped.store(false, Ordering::SeqCst);
    }

    pub(crate) fn note_call(&self, action: &str) {
        if self.armed.load(Ordering::SeqCst) && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.tripped.store(true, Ordering::SeqCst);
            self.armed.store(false, Ordering::SeqCst);
            *self.last.lock().unwrap() = action.to_owned();
        }
    }

    /// Returns the action of the call that tripped it.
    pub(crate) fn last(&self) -> String {
        self.last.lock().unwrap().clone()
    }

    /// Drives the future to its end or to the call that trips. Returns `true` if the future ended.
    pub(crate) async fn drive(&self, work: impl Future<Output = ()>) -> bool {
        let mut work = pin!(work);
        poll_fn(|context| match work.as_mut().poll(context) {
            _ if self.tripped.load(Ordering::SeqCst) => Poll::Ready(false),
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

#[test]
fn a_run_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(async {
        let wire = Arc::new(Tripwire::default());
        let watching = Arc::clone(&wire);
        let recorder = Recorder::new(move |call| watching.note_call(call.action));
        let settings = Settings { recorder: Some(recorder), ..Settings::default() };
        let world = World::open(settings, |request| Reply::Text(data::mostly_right_answer(request))).await;
        let order = Order::mmlu_pro(2).with_aime(1);
        let (mut starts, mut calls) = (0, 0);
        // Totals over all runs so far: a question in flight when the process ended may reach the model server, and be
        // counted there, while the next run is in progress.
        let (mut planned, mut again) = (0, 0);
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
            // Only an answer in flight may be asked for again: one on its way to the store, or from the model, which
            // is asked as soon as the item was read.
            planned += PLANNED;
            again += u64::from(["PutObject", "GetObject"].contains(&last.as_str()));
            let asked = world.model.total();
            let allowed = planned..=planned + again;
            assert!(allowed.contains(&asked), "call {calls}, {last}: {asked} questions, not {allowed:?}");
        }
        println!("ended at each of {} calls", calls - 1);
        assert!(calls > 60, "a run makes more calls than {calls}");
    });
}
