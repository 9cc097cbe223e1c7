//! Ends the stack in the middle of a run, and starts it again.

use std::time::Duration;

use bench_domain::{RunId, RunStatus};
use bench_state::{EventKind, NewEvent, Origin, Renewal};
use bench_tests::model_server::Reply;

use crate::support::world::Shutdown;
use crate::support::{Expected, Order, Settings, World, check, data, runtime};

const ITEMS: usize = 200;
const CONCURRENCY: usize = 8;

/// Ends the stack `ends` times during the run. Returns the number of questions asked twice.
async fn run_with_restarts(end: Shutdown, ends: u64) -> u64 {
    let settings =
        Settings { concurrency: CONCURRENCY, latency: Duration::from_millis(10), ..Settings::default() };
    let mut world = World::start(settings, |request| Reply::Text(data::mostly_right_answer(request))).await;
    let run = Order::mmlu_pro(ITEMS).place(&world).await;
    for nth in 1..=ends {
        let enough = nth * ITEMS as u64 / (ends + 1);
        world.wait_until("some progress", || async { world.model.total() >= enough }).await;
        world = world.reopen(end).await;
    }
    assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
    check(&world, run, Expected::SUCCEEDED).await;
    assert_eq!(world.model.question_counts().len(), ITEMS);
    world.model.total() - ITEMS as u64
}

#[test]
fn stopped_with_grace_nothing_is_asked_twice() {
    runtime().block_on(async {
        assert_eq!(run_with_restarts(Shutdown::Stopped, 3).await, 0);
    });
}

#[test]
fn killed_only_what_was_in_flight_is_asked_twice() {
    runtime().block_on(async {
        let (ends, again) = (4, run_with_restarts(Shutdown::Killed, 4).await);
        println!("{again} questions asked again after {ends} ends");
        assert!(again <= ends * CONCURRENCY as u64, "{again} questions asked again");
    });
}

/// Waits until the run has succeeded, and checks it and the number of its shards.
async fn check_shards(world: &World, run: RunId, shards: u32) {
    assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
    check(world, run, Expected::SUCCEEDED).await;
    let found = world.stored_run(run).await;
    assert_eq!(found.benchmarks[0].plan.as_ref().unwrap().shards, shards);
}

/// The deployed functions, and older versions on one machine, plan several shards and commit each sample alone.
#[test]
fn a_run_with_several_shards_goes_on_where_new_runs_have_one() {
    const ITEMS: usize = 300;
    runtime().block_on(async {
        let latency = Duration::from_millis(10);
        let settings =
            Settings { groups_commits: false, concurrency: CONCURRENCY, latency, ..Settings::default() };
        let mut world =
            World::start(settings, |request| Reply::Text(data::mostly_right_answer(request))).await;
        let older = Order::mmlu_pro(ITEMS).place(&world).await;
        world.wait_until("some progress", || async { world.model.total() >= 100 }).await;
        world.settings.groups_commits = true;
        let world = world.reopen(Shutdown::Killed).await;
        check_shards(&world, older, 2).await;
        let newer = Order::mmlu_pro(ITEMS).place(&world).await;
        check_shards(&world, newer, 1).await;
    });
}

/// Stopped while the provider asked to wait: the waits continue, and no attempt is lost.
#[test]
fn waits_survive_a_restart() {
    runtime().block_on(async {
        let world = World::start(Settings::default(), |request| match request.before {
            0 => Reply::Status(429, String::new(), vec![("retry-after", "2".into())]),
            _ => Reply::Text(data::right_answer(&request.item)),
        })
        .await;
        let run = Order::mmlu_pro(10).place(&world).await;
        world.wait_until("refusals", || async { world.model.total() >= 1 }).await;
        let world = world.reopen(Shutdown::Stopped).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        assert!(samples["mmlu_pro"].iter().all(|sample| sample.history.failures == 0));
    });
}

/// A run of the command line at a server isn't processed until it is resumed there or canceled.
#[test]
fn an_interrupted_run_is_left_alone_until_it_is_resumed_or_canceled() {
    runtime().block_on(async {
        let mut world =
            World::open(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let mut interrupted = Vec::new();
        for _ in 0..2 {
            let run = Order::mmlu_pro(5).place(&world).await;
            let found = world.stored_run(run).await;
            let event = NewEvent::new(EventKind::RunResumed, "Run resumed");
            let renewal = Renewal { origin: Some(Origin::INTERRUPTED), ..Renewal::default() };
            let (record, now) = (&found.run, bench_clock::now());
            let state = &world.stack.state;
            state.change_run_with(record, &record.state, 1, &event, now, renewal).await.unwrap();
            interrupted.push(run);
        }
        // Interrupted runs don't count in the queue position of others.
        let other = Order::mmlu_pro(7).place(&world).await;
        let queue = async |run| {
            let view = bench_api::run_view(
                &world.stack.api,
                &world.stored_run(run).await,
                &bench_api::Viewer::local(),
            )
            .await
            .unwrap();
            (view.interrupted, view.queue_position)
        };
        assert_eq!(queue(interrupted[0]).await, (true, None));
        assert_eq!(queue(other).await, (false, Some(1)));
        world.stack.start().await.unwrap();
        assert_eq!(world.wait_for_end(other).await, RunStatus::Succeeded);
        world.scheduler().reconcile_after(Duration::ZERO).await.unwrap();
        assert_eq!(world.model.total(), 7);
        for run in &interrupted {
            assert_eq!(world.stored_run(*run).await.run.state.status(), RunStatus::Queued);
        }
        world.cancel(interrupted[0]).await;
        assert_eq!(world.wait_for_end(interrupted[0]).await, RunStatus::Canceled);
        assert_eq!(world.stored_run(interrupted[1]).await.run.resumption, None);
        world.requeue(interrupted[1], None).await;
        assert_eq!(world.wait_for_end(interrupted[1]).await, RunStatus::Succeeded);
        assert!(
            world.stored_run(interrupted[1]).await.run.resumption.is_some(),
            "its first samples count anew"
        );
        for run in [interrupted[1], other] {
            check(&world, run, Expected::SUCCEEDED).await;
        }
        assert_eq!(world.model.total(), 12);
        let again = bench_api::requeue_run(&world.stack.api, interrupted[1], None).await;
        assert!(again.is_err(), "it is not interrupted any more");
    });
}
