//! Sandbox hosts that are down, full, faulty or forgetful, and runs that are canceled during a job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench_domain::{Outcome, RunStatus};
use bench_queue::{Message, QueueName};
use bench_sandy::testing::{Call, Endpoint, Fault, Options};
use bench_state::LedgerEntry;
use bench_tests::model_server::Reply;

use super::{
    NAME, question_count, right_reply, settings_with_host_rule, settings_without_faults, stored_samples,
};
use crate::support::{Expected, ManualDriver, Order, Settings, World, check, runtime};

const ITEMS: usize = 3;

async fn finished_run(settings: Settings) -> (World, bench_domain::RunId, RunStatus) {
    let world = World::start(settings, right_reply).await;
    let run = Order::livecodebench(ITEMS).place(&world).await;
    let status = world.wait_for_end(run).await;
    (world, run, status)
}

/// Temporary failures are waited for: whatever the host does to the first calls, every answer is graded, the model is
/// asked once about each item, and no sandbox is left over.
#[test]
fn trouble_that_passes_changes_no_result() {
    runtime().block_on(async {
        type Rule = fn(&Call) -> Fault;
        let rules: [(&str, Rule); 9] = [
            ("full", |call| match (call.endpoint, call.before) {
                (Endpoint::Create, 0..2) => {
                    Fault::Status(503, "{\"detail\":\"no room\"}".into(), vec![("Retry-After", "0".into())])
                }
                _ => Fault::None,
            }),
            ("errors", |call| match (call.endpoint, call.before) {
                (Endpoint::Exec, 0..4) => Fault::Status(500, "oops".into(), vec![]),
                _ => Fault::None,
            }),
            ("garbage", |call| match (call.endpoint, call.before) {
                (Endpoint::Exec | Endpoint::Create, 0..2) => Fault::Garbage,
                _ => Fault::None,
            }),
            ("no exit code", |call| match (call.endpoint, call.before) {
                (Endpoint::Exec, 0..4) => Fault::NoExitCode,
                _ => Fault::None,
            }),
            ("answers that are lost", |call| match (call.endpoint, call.before % 3) {
                (Endpoint::Exec, 1) => Fault::DropAfter,
                _ => Fault::None,
            }),
            ("commands that are run twice", |call| match call.endpoint {
                Endpoint::Exec => Fault::Twice,
                _ => Fault::None,
            }),
            ("sandboxes that are lost", |call| match (call.endpoint, call.before) {
                (Endpoint::Exec, 1 | 4) => Fault::Lose,
                _ => Fault::None,
            }),
            ("sandboxes that are not ready", |call| match (call.endpoint, call.before) {
                (Endpoint::Exec, 0..3) => Fault::NotReady,
                _ => Fault::None,
            }),
            ("ends that fail", |call| match (call.endpoint, call.before) {
                (Endpoint::Terminate, 0) => Fault::Drop,
                _ => Fault::None,
            }),
        ];
        for (what, rule) in rules {
            let (world, run, status) = finished_run(settings_with_host_rule(rule)).await;
            assert_eq!(status, RunStatus::Succeeded, "{what}");
            let stored = check(&world, run, Expected::SUCCEEDED).await;
            let right = |sample: &&bench_state::SampleRecord| {
                sample.finished.as_ref().is_some_and(|finished| finished.verdict.outcome == Outcome::Correct)
            };
            assert_eq!(stored[NAME].iter().filter(right).count(), ITEMS, "{what}");
            assert_eq!(question_count(&world), ITEMS as u64, "{what}");
            assert!(
                world.sandbox_host().open().is_empty(),
                "{what}: {:?} are open",
                world.sandbox_host().open()
            );
        }
    });
}

/// A host that loses every sandbox: the sample's error says so, and its answer is kept and run when the run is
/// requeued.
#[test]
fn sandboxes_that_are_always_lost_end_as_what_they_are() {
    runtime().block_on(async {
        let lost = Arc::new(AtomicBool::new(true));
        let losing = Arc::clone(&lost);
        let settings = settings_with_host_rule(move |call| match call.endpoint {
            Endpoint::Exec if losing.load(Ordering::Relaxed) => Fault::Lose,
            _ => Fault::None,
        });
        let (world, run, status) = finished_run(settings).await;
        assert_eq!(status, RunStatus::Failed, "no answer could be graded");
        let stored = check(&world, run, Expected::FAILED).await;
        for sample in &stored[NAME] {
            let finished = sample.finished.as_ref().unwrap();
            assert_eq!(finished.verdict.outcome, Outcome::InfrastructureError);
            assert!(finished.verdict.reason.contains("the sandbox was lost"), "{}", finished.verdict.reason);
            assert!(finished.body.is_some(), "the answer is kept");
        }
        assert!(
            world.sandbox_host().created_count() <= 5 * ITEMS as u64,
            "{} sandboxes",
            world.sandbox_host().created_count()
        );
        lost.store(false, Ordering::Relaxed);
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        assert_eq!(question_count(&world), ITEMS as u64, "the model is not asked again");
    });
}

/// A refused key would be refused for every sample: the run ends, and continues after a requeue.
#[test]
fn a_refused_key_ends_the_run_at_once() {
    runtime().block_on(async {
        let refused = Arc::new(AtomicBool::new(true));
        let refusing = Arc::clone(&refused);
        let settings = settings_with_host_rule(move |call| match call.endpoint {
            Endpoint::Create if refusing.load(Ordering::Relaxed) => Fault::Status(401, "no".into(), vec![]),
            _ => Fault::None,
        });
        let (world, run, status) = finished_run(settings).await;
        assert_eq!(status, RunStatus::Failed);
        let why = format!("{:?}", world.stored_run(run).await.run.state);
        assert!(why.contains("the sandbox host") && why.contains("401"), "{why}");
        refused.store(false, Ordering::Relaxed);
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        assert_eq!(question_count(&world), ITEMS as u64);
    });
}

/// No sandbox host is configured.
#[test]
fn without_a_sandbox_host_the_run_says_what_to_set() {
    runtime().block_on(async {
        let vars = &[("SANDY_BASE_URL", "http://127.0.0.1:9")];
        let (world, run, status) = finished_run(Settings { vars, ..Settings::default() }).await;
        assert_eq!(status, RunStatus::Failed);
        let why = format!("{:?}", world.stored_run(run).await.run.state);
        assert!(why.contains("API key is not configured"), "{why}");
    });
}

#[test]
fn cancel_ends_jobs_and_their_sandboxes() {
    runtime().block_on(async {
        let endless = |_: &bench_tests::model_server::ModelRequest| {
            Reply::Text("```python\nwhile True:\n    pass\n```".into())
        };
        let world = World::start(settings_without_faults(), endless).await;
        let run = Order::livecodebench(ITEMS).place(&world).await;
        world.wait_until("jobs", || async { world.sandbox_host().open().len() == ITEMS }).await;
        world.cancel(run).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Canceled);
        world.wait_until("ended sandboxes", || async { world.sandbox_host().open().is_empty() }).await;
        check(&world, run, Expected::CANCELED).await;
        let ledger =
            world.stack.state.overdue_sandboxes(bench_clock::now().plus(Duration::from_secs(86_400)), 10);
        assert!(ledger.await.unwrap().is_empty());
    });
}

/// The reaper ends sandboxes of our ledger after their lease. It leaves those of others, and those in use.
#[test]
fn the_reaper_touches_only_what_is_ours_and_over() {
    runtime().block_on(async {
        let world = World::open(settings_without_faults(), right_reply).await;
        let run = Order::livecodebench(1).place(&world).await;
        let driver = ManualDriver::new(&world, 0);
        assert!(driver.handle(&Message::Plan { run, generation: 1 }).await);
        let found = world.stored_run(run).await;
        let position = stored_samples(&world, run).await[0].position;
        let sample = World::sample_ref(&found, NAME, position);
        let sandy = world.sandbox_host().sandy(bench_sandy::Timing::default()).unwrap();
        let new = bench_sandy::NewSandbox::default();
        let now = bench_clock::now();
        let mut created = Vec::new();
        for (host, lease) in [("loopback", 0), ("loopback", 3_600), ("elsewhere:443", 0)] {
            let sandbox = sandy.create(&new).await.unwrap();
            let until = now.plus(Duration::from_secs(lease));
            let (host, sample) = (host.to_owned(), sample.clone());
            let entry = LedgerEntry { sandbox: sandbox.clone(), host, sample, until, has_engine: false };
            world.stack.state.note_sandbox(&entry).await.unwrap();
            created.push(sandbox);
        }
        created.push(sandy.create(&new).await.unwrap());
        let later = now.plus(Duration::from_secs(60));
        assert_eq!(driver.scheduler.end_overdue_sandboxes(later).await.unwrap(), 1);
        assert_eq!(driver.scheduler.end_overdue_sandboxes(later).await.unwrap(), 0);
        let mut left = created.split_off(1);
        left.sort();
        assert_eq!(world.sandbox_host().open(), left, "only the first one was ours and over");
    });
}

/// The message that hands an answer over to its sandbox is lost: its record names the next stage.
#[test]
fn a_lost_turn_is_found() {
    runtime().block_on(async {
        let world =
            World::open(Settings { sandboxes: Some(Options::default()), ..Settings::default() }, right_reply)
                .await;
        let run = Order::livecodebench(1).place(&world).await;
        let driver = ManualDriver::new(&world, 0);
        assert!(driver.handle(&Message::Plan { run, generation: 1 }).await);
        let found = world.stored_run(run).await;
        let sample = World::sample_ref(&found, NAME, stored_samples(&world, run).await[0].position);
        assert!(driver.handle(&Message::Sample { sample, generation: 1 }).await);
        for queue in QueueName::ALL {
            let url = world.stack.queues.url(queue).unwrap();
            world.stack.queues.client().purge_queue().queue_url(url).send().await.unwrap();
        }
        let resent = driver.scheduler.reconcile_after(Duration::ZERO).await.unwrap();
        assert_eq!(resent.samples, 1);
        driver.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!((question_count(&world), world.sandbox_host().created_count()), (1, 1));
        assert!(world.sandbox_host().open().is_empty());
    });
}
