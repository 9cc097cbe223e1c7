//! Agents on repositories in images, whose changes are verified in a sandbox of their own.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bench_domain::{BenchmarkState, Code, Outcome, RunId, RunStatus, Stage};
use bench_embedded::Recorder;
use bench_state::SampleRecord;
use bench_tests::scripted_host::CHANGE;
use serde_json::json;

use super::kills::operations;
use super::outages::drain;
use super::{CALLS, host, is_idle, settings, works};
use crate::kill_everywhere::Tripwire;
use crate::support::{Expected, ManualDriver, Order, Settings, World, check, runtime};

const NAME: &str = "swe_bench_pro";
const INSTANCE: &str = "instance_a__b-1";

/// Writes a data set of one repository with its official files.
fn order() -> Order {
    Order::repositories(rows("nothing"))
}

/// Writes a data set of one repository with its official files except one. Returns the path of its rows.
fn rows(left_out: &str) -> PathBuf {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("repositories-{number}"));
    let base = "0123456789012345678901234567890123456789";
    let row = json!({
        "repo": "a/b", "instance_id": INSTANCE, "base_commit": base, "patch": CHANGE, "test_patch": "",
        "problem_statement": "[item r0] It fails.", "requirements": "", "interface": "", "repo_language": "python",
        "fail_to_pass": "['to fix']", "pass_to_pass": "['to keep']", "issue_specificity": "[]",
        "issue_categories": "[]", "before_repo_set_cmd": "true", "selected_test_files_to_run": "['t']",
        "dockerhub_tag": "a.b-1",
    });
    for path in [
        format!("run_scripts/{INSTANCE}/run_script.sh"),
        format!("run_scripts/{INSTANCE}/parser.py"),
        format!("dockerfiles/base_dockerfile/{INSTANCE}/Dockerfile"),
        format!("dockerfiles/instance_dockerfile/{INSTANCE}/Dockerfile"),
    ] {
        if path.ends_with(left_out) {
            continue;
        }
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "# one of the official files\n").unwrap();
    }
    let rows = folder.join("rows.jsonl");
    fs::write(&rows, format!("{row}\n")).unwrap();
    rows
}

async fn sample(world: &World, run: RunId) -> SampleRecord {
    let found = world.stored_run(run).await;
    world.samples(&found, NAME).await.remove(0)
}

async fn check_resolved(world: &World, run: RunId, state: &str) {
    let (sample, body) = world.first_sample(run, NAME).await;
    let verdict = sample.finished.unwrap().verdict;
    assert_eq!(verdict.outcome, Outcome::Correct, "{state}: {verdict:?}");
    assert_eq!(body.answer.text, CHANGE, "{state}");
    assert!(body.verification.is_some(), "{state}");
}

/// Places an order, and processes messages until its change is being verified.
async fn being_verified(world: &World, driver: &ManualDriver) -> RunId {
    let run = order().place(world).await;
    let is_running = || operations(world).iter().flatten().any(|job| job.ends_with("-command"));
    while !is_running() {
        driver.drain().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(sample(world, run).await.stage(), Stage::Verification);
    assert_eq!((world.model.total(), host(world).open_sandboxes()), (CALLS, 1));
    run
}

/// Processes messages until none is left.
async fn drain_idle(world: &World, driver: &ManualDriver) {
    loop {
        driver.drain().await;
        if is_idle(world).await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Requeues a run, whose verification alone has to be repeated.
async fn check_requeue(world: &World, run: RunId) {
    let before = operations(world).len();
    world.requeue(run, None).await;
    drain(world, &ManualDriver::new(world, 1), run).await;
    check(world, run, Expected::SUCCEEDED.generation(2)).await;
    check_resolved(world, run, "requeued").await;
    assert_eq!(world.model.total(), CALLS, "a requeue of a verification asks no model");
    let repeated = operations(world).split_off(before).concat();
    let is_of_agent = |job: &&String| job.contains("-do-") || job.ends_with("-collect");
    assert_eq!(repeated.iter().find(is_of_agent), None, "{repeated:?}");
    assert!(repeated.iter().any(|job| job.ends_with("-command")), "{repeated:?}");
    assert_eq!((host(world).problem(), host(world).open_sandboxes()), (None, 0));
}

/// Operations that are running for one call each, so that turns end in the middle of them.
fn slow() -> Settings {
    Settings { scripted: Some(1), ..settings() }
}

/// Whatever call is the last one of a process, each operation is done once, and no stored reply is asked for again.
async fn survive(source: Option<&'static str>) {
    let wire = Arc::new(Tripwire::default());
    let watching = Arc::clone(&wire);
    let recorder = Recorder::new(move |call| watching.note_call(call.action));
    let world = Box::pin(World::open(Settings { recorder: Some(recorder), ..settings() }, works)).await;
    let watching = Arc::clone(&wire);
    host(&world).watch(move |request| watching.note_call(request));
    let order = match source {
        Some(source) => order().with_source(source),
        None => order(),
    };
    let replies = if source.is_some() { 0 } else { CALLS };
    let run = order.place(&world).await;
    ManualDriver::new(&world, 0).drain().await;
    check_resolved(&world, run, "undisturbed").await;
    check(&world, run, Expected::SUCCEEDED).await;
    let expected = operations(&world);
    assert_eq!(expected.len(), if source.is_some() { 1 } else { 2 }, "{:?}", host(&world).problem());
    let (mut starts, mut calls) = (0, 0);
    loop {
        calls += 1;
        let run = order.place(&world).await;
        let driver = ManualDriver::new(&world, starts);
        let (asked, sandboxes) = (world.model.total(), operations(&world).len());
        wire.arm(calls);
        let ended = wire.drive(Box::pin(driver.drain())).await;
        drop(driver);
        starts += u64::from(!ended);
        let driver = ManualDriver::new(&world, starts);
        if !ended {
            driver.scheduler.resume().await.unwrap();
            driver.drain().await;
        }
        let state = format!("{source:?}, call {calls}, {}", wire.last());
        check(&world, run, Expected::SUCCEEDED).await;
        check_resolved(&world, run, &state).await;
        assert_eq!(host(&world).problem(), None, "{state}");
        assert_eq!(operations(&world).split_off(sandboxes), expected, "{state}");
        // A reply that was on its way when the process ended is asked for again.
        let asked = world.model.total() - asked;
        let again = u64::from(!ended && replies > 0);
        assert!((replies..=replies + again).contains(&asked), "{state}: {asked} calls");
        if ended {
            break;
        }
    }
    println!("{source:?}: ended at each of {} calls", calls - 1);
    assert!(calls > 40, "a verification makes more calls than {calls}");
}

#[test]
fn a_change_and_its_verification_survive_the_end_of_the_process_at_every_call() {
    runtime().block_on(survive(None));
}

#[test]
fn the_verification_of_a_reference_patch_survives_the_end_of_the_process_at_every_call() {
    runtime().block_on(survive(Some("oracle")));
}

#[test]
fn a_run_that_is_canceled_during_a_verification_repeats_only_that() {
    runtime().block_on(async {
        let world = World::open(slow(), works).await;
        let driver = ManualDriver::new(&world, 0);
        let run = Box::pin(being_verified(&world, &driver)).await;
        world.cancel(run).await;
        drain_idle(&world, &driver).await;
        assert_eq!(world.stored_run(run).await.run.state.status(), RunStatus::Canceled);
        assert_eq!((host(&world).problem(), host(&world).open_sandboxes()), (None, 0));
        Box::pin(check_requeue(&world, run)).await;
    });
}

#[test]
fn a_run_that_is_deleted_during_a_verification_leaves_no_sandbox() {
    runtime().block_on(async {
        let world = World::open(slow(), works).await;
        let driver = ManualDriver::new(&world, 0);
        let run = Box::pin(being_verified(&world, &driver)).await;
        world.cancel(run).await;
        world.delete(run).await;
        drain_idle(&world, &driver).await;
        assert!(world.stack.state.run(run).await.unwrap().is_none());
        assert_eq!((host(&world).problem(), host(&world).open_sandboxes()), (None, 0));
    });
}

#[test]
fn a_verification_whose_sandboxes_are_all_lost_is_repeated_by_a_requeue() {
    runtime().block_on(async {
        let world = World::open(slow(), works).await;
        let driver = ManualDriver::new(&world, 0);
        let run = Box::pin(being_verified(&world, &driver)).await;
        while world.stored_run(run).await.run.state.status().is_open() {
            host(&world).lose_all();
            driver.drain().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let verdict = sample(&world, run).await.finished.unwrap().verdict;
        assert_eq!(
            (verdict.outcome, verdict.code),
            (Outcome::InfrastructureError, Some(Code::SandboxFailed)),
            "{verdict:?}"
        );
        assert_eq!(world.model.total(), CALLS, "lost sandboxes of a verification cost no reply");
        host(&world).lose_all();
        Box::pin(check_requeue(&world, run)).await;
    });
}

/// A failure of the engine can look like it, and so can tests that end their container.
#[test]
fn a_verification_whose_container_ends_is_repeated_once() {
    runtime().block_on(async {
        for (times, outcome) in [(1, Outcome::Correct), (2, Outcome::Incorrect)] {
            let world = World::open(settings(), works).await;
            host(&world).end_containers("-command", times);
            let run = order().with_source("oracle").place(&world).await;
            drain(&world, &ManualDriver::new(&world, 0), run).await;
            check(&world, run, Expected::SUCCEEDED).await;
            let (sample, body) = world.first_sample(run, NAME).await;
            let verdict = sample.finished.unwrap().verdict;
            assert_eq!(verdict.outcome, outcome, "{times}: {verdict:?}");
            assert_eq!(verdict.detail["resolved"], outcome == Outcome::Correct);
            assert_eq!(verdict.detail.contains_key("exception"), times == 2, "{:?}", verdict.detail);
            assert_eq!(body.verification.unwrap().round, 2);
            let commands = operations(&world).concat().into_iter().filter(|job| job.ends_with("-command"));
            assert_eq!((commands.count(), operations(&world).len()), (2, 2), "{times}");
            assert_eq!((host(&world).problem(), host(&world).open_sandboxes()), (None, 0));
        }
    });
}

/// Nothing is paid for an item that can't be verified.
#[test]
fn an_item_without_an_official_file_is_refused_before_the_model_is_asked() {
    runtime().block_on(async {
        let world = World::open(settings(), works).await;
        let run = Order::repositories(rows("parser.py")).place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        let found = world.stored_run(run).await;
        let BenchmarkState::Failed { code, error, .. } = &found.benchmarks[0].state else {
            panic!("{:?}", found.benchmarks[0].state)
        };
        assert_eq!(*code, Some(Code::DatasetUnavailable));
        assert!(error.contains("official files of its items are not available"), "{error}");
        assert!(error.contains(&format!("run_scripts/{INSTANCE}/")), "{error}");
        assert_eq!((world.model.total(), host(&world).created()), (0, 0));
    });
}
