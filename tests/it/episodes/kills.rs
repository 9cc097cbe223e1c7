//! Ends the process at every call that an episode makes to the services and to the sandbox host.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bench_domain::Outcome;
use bench_embedded::Recorder;
use bench_tests::model_server::{ModelRequest, Reply};
use bench_tests::scripted_host::task::TaskKind;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::outages::drain;
use super::{
    CALLS, acts_by_sandbox, custom_agents, host, json_reply, only_sample, settings, turns_before, works,
};
use crate::kill_everywhere::Tripwire;
use crate::support::{Expected, ManualDriver, Order, Settings, World, check, runtime};

/// Turns of a long episode.
const TURNS: usize = 200;
/// Number of calls to the services from a process's first question to its end.
const CALLS_BETWEEN: std::ops::RangeInclusive<i64> = 1..=120;

/// Time after which each sandbox is overdue, whatever the limits of its task.
const LATER: Duration = Duration::from_secs(100 * 3_600);
/// Calls whose end may leave a sandbox that is in no ledger: the save of the checkpoint before it, its request, and its entry.
const CALLS_AROUND_CREATION: usize = 3;

/// Returns the names of the operations in each sandbox that has any, without the random names of their environments.
pub(super) fn operations(world: &World) -> Vec<Vec<String>> {
    let plain = |job: String| match job.split_at_checked("episode-".len() + 24) {
        Some((_, operation)) => operation.to_owned(),
        None => panic!("the operation `{job}` is of no episode"),
    };
    host(world).jobs_by_sandbox().into_iter().map(|jobs| jobs.into_iter().map(plain).collect()).collect()
}

/// Whatever call is the last one of a process, everything is done once in one sandbox, as if the process had not ended, and
/// no stored reply is asked for again. Each sandbox is ended by its episode or through the ledger, except one that was
/// requested by a process that ended before it entered it. Its host has to end that one, in which nothing was done.
async fn survive(agent: &str, kind: TaskKind) {
    let wire = Arc::new(Tripwire::default());
    let watching = Arc::clone(&wire);
    let recorder = Recorder::new(move |call| watching.note_call(call.action));
    let world = Box::pin(World::open(Settings { recorder: Some(recorder), ..settings() }, works)).await;
    let watching = Arc::clone(&wire);
    host(&world).watch(move |request| watching.note_call(request));
    let order = match agent {
        "custom" => custom_agents::order(&world).await.0,
        agent => Order::tasks(1, agent, &[]),
    };
    let order = order.of_kind(kind);
    let replies = if ["oracle", "nop", "custom"].contains(&agent) { 0 } else { CALLS * kind.steps() };
    let run = order.place(&world).await;
    ManualDriver::new(&world, 0).drain().await;
    check(&world, run, Expected::SUCCEEDED).await;
    let (expected, expected_acts) = (operations(&world), acts_by_sandbox(&world));
    assert_eq!((expected.len(), host(&world).open_sandboxes()), (1, 0), "{:?}", host(&world).problem());
    let (mut starts, mut calls, mut lost) = (0, 0, 0);
    loop {
        calls += 1;
        let run = order.place(&world).await;
        let driver = ManualDriver::new(&world, starts);
        let (asked, sandboxes) = (world.model.total(), operations(&world).len());
        let agents = acts_by_sandbox(&world).len();
        wire.arm(calls);
        let ended = wire.drive(Box::pin(driver.drain())).await;
        drop(driver);
        starts += u64::from(!ended);
        let driver = ManualDriver::new(&world, starts);
        if !ended {
            driver.scheduler.resume().await.unwrap();
            driver.drain().await;
        }
        let state = format!("{agent}, {kind:?}, call {calls}, {}", wire.last());
        check(&world, run, Expected::SUCCEEDED).await;
        let (sample, body) = only_sample(&world, run).await;
        let verdict = sample.finished.unwrap().verdict;
        assert_eq!(verdict.outcome, Outcome::Correct, "{state}: {verdict:?}");
        let report = body.episode.unwrap();
        assert_eq!((report.steps.len() as u64, report.round), (kind.steps(), 1), "{state}");
        assert_eq!(host(&world).problem(), None, "{state}");
        assert_eq!(operations(&world).split_off(sandboxes), expected, "{state}");
        assert_eq!(acts_by_sandbox(&world).split_off(agents), expected_acts, "{state}");
        // A reply that was on its way when the process ended is asked for again.
        let asked = world.model.total() - asked;
        let again = u64::from(!ended && replies > 0);
        assert!((replies..=replies + again).contains(&asked), "{state}: {asked} calls");
        // Each end leaves at most one sandbox.
        let left = host(&world).open_sandboxes() - lost;
        assert!(left <= usize::from(!ended), "{state}: {left} sandboxes are left");
        let later = bench_clock::now().plus(LATER);
        driver.scheduler.end_overdue_sandboxes(later).await.unwrap();
        assert_eq!(driver.state.overdue_sandboxes(later, 10).await.unwrap(), [], "{state}");
        lost = host(&world).open_sandboxes();
        if ended {
            break;
        }
    }
    println!("{agent}, {kind:?}: ended at each of {} calls, {lost} sandboxes were never entered", calls - 1);
    assert!(calls > 40, "an episode makes more calls than {calls}");
    assert!(lost <= CALLS_AROUND_CREATION, "{lost} sandboxes are in no ledger");
}

#[test]
fn terminus_2_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(survive("terminus-2", TaskKind::OneStep));
}

#[test]
fn bash_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(survive("bash", TaskKind::TwoSteps));
}

#[test]
fn the_oracle_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(async {
        Box::pin(survive("oracle", TaskKind::SeparateVerifier)).await;
        Box::pin(survive("oracle", TaskKind::SeparateVerifiers)).await;
    });
}

#[test]
fn a_custom_agent_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(survive("custom", TaskKind::TwoSteps));
}

#[test]
fn nop_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(survive("nop", TaskKind::OneStep));
}

/// A long episode whose process ends again and again, each time at a random call.
async fn survive_at_random(agent: &str) {
    let seed = std::env::var("BENCH_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("seed {seed} (repeat with BENCH_TEST_SEED={seed})");
    let mut random = StdRng::seed_from_u64(seed);
    let wire = Arc::new(Tripwire::default());
    let watching = Arc::clone(&wire);
    let recorder = Recorder::new(move |call| watching.note_call(call.action));
    let is_terminal = agent == "terminus-2";
    // Calls until the end of this process; 0 once its first question has started the countdown.
    let next = Arc::new(AtomicI64::new(0));
    let (countdown, asked) = (Arc::clone(&wire), Arc::clone(&next));
    let rule = move |request: &ModelRequest| {
        match asked.swap(0, Ordering::SeqCst) {
            0 => {}
            calls => countdown.arm(calls),
        }
        Reply::Text(match (turns_before(request), is_terminal) {
            (turn @ ..TURNS, true) => json_reply(&[&format!("echo {turn}\n")], false),
            (_, true) => json_reply(&[], true),
            (turn @ ..TURNS, false) => format!("```bash\necho {turn}\n```\n"),
            (_, false) => "```done\n```\n".to_owned(),
        })
    };
    let world = World::open(Settings { recorder: Some(recorder), ..settings() }, rule).await;
    let run = Order::tasks(1, agent, &[("max_turns", "300")]).place(&world).await;
    let mut kills = 0;
    loop {
        let driver = ManualDriver::new(&world, kills);
        if kills > 0 {
            driver.scheduler.resume().await.unwrap();
        }
        wire.disarm();
        next.store(random.random_range(CALLS_BETWEEN), Ordering::SeqCst);
        if wire.drive(drain(&world, &driver, run)).await {
            break;
        }
        kills += 1;
    }
    println!("{agent}: ended {kills} times in {TURNS} turns");
    let (sample, _) = only_sample(&world, run).await;
    let verdict = sample.finished.unwrap().verdict;
    assert_eq!(verdict.outcome, Outcome::Correct, "{verdict:?}");
    // A message that several processes received before they ended is a dead letter.
    check(&world, run, Expected::SUCCEEDED.among_others()).await;
    assert!(kills > 10, "too few ends: {kills}");
    let acts = acts_by_sandbox(&world).concat();
    for turn in 0..TURNS {
        let times = acts.iter().map(|act| act.matches(&format!("echo {turn}\n")).count()).sum::<usize>();
        assert_eq!(times, 1, "turn {turn}: {acts:?}");
    }
    assert_eq!((host(&world).problem(), host(&world).open_sandboxes()), (None, 0));
    let (_, body) = only_sample(&world, run).await;
    let outcome = body.episode.unwrap().steps[0].agent.clone().unwrap();
    // The terminal asks to confirm the end.
    let turns = TURNS as u64 + if is_terminal { 2 } else { 1 };
    assert_eq!(u64::from(outcome.totals.turns), turns);
    // An answer that was on its way when the process ended is asked for again, and no other.
    let again = world.model.total() - turns;
    assert!(again <= kills, "{again} of {turns} answers were asked for again after {kills} ends");
}

#[test]
fn long_episodes_survive_ends_of_the_process_at_random() {
    runtime().block_on(async {
        survive_at_random("terminus-2").await;
        survive_at_random("bash").await;
    });
}
