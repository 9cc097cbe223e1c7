//! Failures of the provider and of sandboxes in the middle of an episode.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bench_domain::{Code, EpisodeState, Outcome, RunId};
use bench_tests::model_server::{ModelRequest, Reply};
use bench_tests::scripted_host::task::{SHORT_SECONDS, TaskKind};

use super::{
    CALLS, NAME, acts_by_sandbox, expected_acts, host, is_idle, only_sample, settings, turns_before, works,
};
use crate::support::{Expected, ManualDriver, Order, Settings, World, check, runtime};

/// Failures of the provider, more than end an ordinary sample.
const FAILURES: u64 = 7;

/// Processes messages until the run is over; some of them have to wait.
pub(super) async fn drain(world: &World, driver: &ManualDriver, run: RunId) {
    loop {
        driver.drain().await;
        if is_idle(world).await && !world.stored_run(run).await.run.state.status().is_open() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn a_provider_that_fails_puts_the_episode_off() {
    runtime().block_on(async {
        let failed = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&failed);
        let rule = move |request: &ModelRequest| match turns_before(request) {
            1 if counter.fetch_add(1, Ordering::SeqCst) < FAILURES => {
                Reply::Status(500, "{}".to_owned(), vec![("retry-after", "0".to_owned())])
            }
            _ => works(request),
        };
        let world = World::open(settings(), rule).await;
        let run = Order::tasks(1, "bash", &[]).place(&world).await;
        drain(&world, &ManualDriver::new(&world, 0), run).await;
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(acts_by_sandbox(&world), [expected_acts("bash")]);
        assert!(failed.load(Ordering::SeqCst) > FAILURES);
        let (sample, body) = only_sample(&world, run).await;
        assert_eq!(sample.finished.unwrap().verdict.outcome, Outcome::Correct);
        // The waits count against no limit of the agent: two commands of a second each.
        let outcome = body.episode.unwrap().steps[0].agent.clone().unwrap();
        assert!(outcome.elapsed_ms < 4_000, "{}", outcome.elapsed_ms);
        // Each wait but the first used the sandbox, whose host would end it after half an hour without use.
        let undisturbed = World::open(settings(), works).await;
        let run = Order::tasks(1, "bash", &[]).place(&undisturbed).await;
        ManualDriver::new(&undisturbed, 0).drain().await;
        check(&undisturbed, run, Expected::SUCCEEDED).await;
        let more = host(&world).calls() - host(&undisturbed).calls();
        assert!(more >= FAILURES - 1, "{more} more calls");
        assert_eq!(host(&world).created(), 1);
    });
}

#[test]
fn a_lost_sandbox_starts_the_episode_over() {
    runtime().block_on(async {
        let lose = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&lose);
        let rule = move |request: &ModelRequest| {
            if turns_before(request) == 1 {
                seen.store(true, Ordering::SeqCst);
            }
            works(request)
        };
        let world = World::open(settings(), rule).await;
        let run = Order::tasks(1, "bash", &[]).place(&world).await;
        let driver = ManualDriver::new(&world, 0);
        let work = drain(&world, &driver, run);
        let losing = async {
            while !lose.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            host(&world).lose_all();
        };
        tokio::join!(work, losing);
        check(&world, run, Expected::SUCCEEDED).await;
        let acts = acts_by_sandbox(&world);
        assert_eq!((acts.len(), acts.last()), (2, Some(&expected_acts("bash"))));
        assert!(world.model.total() > CALLS);
        let (sample, body) = only_sample(&world, run).await;
        let report = body.episode.unwrap();
        assert_eq!(report.round, 2);
        let of_round = report.steps[0].agent.clone().unwrap().totals;
        // The start is that of the first sandbox.
        let state: EpisodeState = sample.turn.as_ref().unwrap().checkpoint().unwrap().unwrap();
        let (started_at, finished) = (state.started_at.unwrap(), sample.finished.unwrap());
        let last_round = state.done["began"].as_str().unwrap().parse().unwrap();
        assert!(started_at < last_round && last_round < finished.at, "{started_at} {last_round}");
        let usage = finished.usage.unwrap();
        assert!(usage.input_tokens > of_round.input_tokens, "the lost round was paid for, too");
    });
}

#[test]
fn an_episode_that_waits_for_a_sandbox_has_not_started() {
    runtime().block_on(async {
        let world = World::open(settings(), works).await;
        host(&world).fill(1);
        let run = Order::tasks(1, "bash", &[]).place(&world).await;
        let driver = ManualDriver::new(&world, 0);
        driver.drain().await;
        let found = world.stored_run(run).await;
        let sample = world.samples(&found, NAME).await.remove(0);
        let state: EpisodeState = sample.turn.as_ref().unwrap().checkpoint().unwrap().unwrap();
        assert_eq!((state.sandbox, state.started_at, sample.history.waits), (None, None, 1));
        let waited_until = bench_clock::now();
        drain(&world, &driver, run).await;
        check(&world, run, Expected::SUCCEEDED).await;
        let sample = only_sample(&world, run).await.0;
        let state: EpisodeState = sample.turn.unwrap().checkpoint().unwrap().unwrap();
        assert!(state.started_at.unwrap() > waited_until && host(&world).created() == 1);
    });
}

/// Sandboxes of one episode, before its sample ends.
const SANDBOXES_MAX: u64 = 5;

#[test]
fn an_episode_whose_sandboxes_are_all_lost_ends_with_the_engine_that_it_had() {
    runtime().block_on(async {
        // An operation is running at the end of each turn.
        let world = World::open(Settings { scripted: Some(1), ..settings() }, works).await;
        let run = Order::tasks(1, "oracle", &[]).place(&world).await;
        let driver = ManualDriver::new(&world, 0);
        while world.stored_run(run).await.run.state.status().is_open() {
            driver.drain().await;
            host(&world).lose_all();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let found = world.stored_run(run).await;
        let verdict = world.samples(&found, NAME).await.remove(0).finished.unwrap().verdict;
        assert_eq!(
            (verdict.outcome, verdict.code),
            (Outcome::InfrastructureError, Some(Code::SandboxFailed))
        );
        assert!(verdict.reason.ends_with("the last time in sandbox 5"), "{verdict:?}");
        assert_eq!(verdict.detail["engine"], "docker 0.0.0");
        // One more removed what the last one may have left at the engine.
        assert_eq!((host(&world).created(), host(&world).open_sandboxes()), (SANDBOXES_MAX + 1, 0));
    });
}

/// The task's limits begin with the agent.
#[test]
fn waiting_for_a_sandbox_counts_against_no_limit() {
    runtime().block_on(async {
        let world = World::open(settings(), works).await;
        // Two, four and eight seconds, up to a fifth shorter.
        host(&world).fill(3);
        let placed_at = bench_clock::now();
        let run = Order::tasks(1, "bash", &[]).of_kind(TaskKind::ShortAgent).place(&world).await;
        drain(&world, &ManualDriver::new(&world, 0), run).await;
        check(&world, run, Expected::SUCCEEDED).await;
        let (sample, body) = only_sample(&world, run).await;
        let state: EpisodeState = sample.turn.as_ref().unwrap().checkpoint().unwrap().unwrap();
        let waited = state.started_at.unwrap().since(placed_at);
        assert!(waited > Duration::from_secs(SHORT_SECONDS), "{waited:?}");
        assert_eq!(sample.finished.unwrap().verdict.outcome, Outcome::Correct);
        let report = body.episode.unwrap();
        let outcome = report.steps[0].agent.clone().unwrap();
        assert_eq!((outcome.end.as_str(), outcome.exception), ("completed", None));
        // Neither the wait nor its own start are part of the times of the episode.
        assert!(Duration::from_millis(outcome.elapsed_ms) < waited, "{}", outcome.elapsed_ms);
        assert_eq!(acts_by_sandbox(&world), [expected_acts("bash")]);
    });
}
