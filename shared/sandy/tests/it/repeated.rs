//! Repeated steps, in any order and with lost answers: a script runs once, with the files that it was given.

use std::time::Duration;

use bench_domain::{JobEnd, JobSpec};
use bench_sandy::Timing;
use bench_sandy::job::{self, JobError, JobErrorKind, JobStatus, NoFiles, UploadProgress};
use bench_sandy::testing::{Call, Endpoint, Fault};
use futures_util::future::join_all;
use proptest::prelude::*;

use crate::support::{World, file, result, spec, timing};

/// Returns a job that records how often it ran, and its input.
fn counting_job() -> JobSpec {
    let results = vec![result("count", 100), result("copy", 100)];
    let files = vec![file("in", "as sent")];
    JobSpec { files, results, ..spec("echo x >> count; cat in > copy; echo changed > in; sleep 0.2") }
}

/// Checks that the job ran exactly once.
async fn assert_run_once(world: &World) {
    let end = world.end().await;
    let report = world.harvest(&counting_job(), end).await;
    assert_eq!(end, JobEnd::Exited(0), "{report:?}");
    assert_eq!((report.text("count"), report.text("copy")), (Some("x\n"), Some("as sent")));
    assert_eq!(std::fs::read_to_string(world.file("in")).unwrap(), "changed\n");
    assert_eq!(world.processes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_job_that_is_started_many_times_concurrently_runs_once() {
    let world = World::new().await;
    let spec = counting_job();
    world.upload(&spec).await;
    join_all((0..8).map(|_| world.start(&spec))).await;
    assert_run_once(&world).await;
    world.start(&spec).await;
    assert_run_once(&world).await;
}

#[tokio::test]
async fn every_command_can_safely_run_twice_concurrently() {
    let world = World::with_rule(|call: &Call| match call.endpoint {
        Endpoint::Create => Fault::None,
        _ => Fault::Twice,
    })
    .await;
    let spec = counting_job();
    world.upload(&spec).await;
    world.start(&spec).await;
    world.upload(&spec).await;
    world.start(&spec).await;
    assert_run_once(&world).await;
    job::stop(&world.sandy, &world.id, &world.job).await.unwrap();
    assert_run_once(&world).await;
}

/// Repeats a step until it succeeds, as callers that save their state do.
async fn retry_until_success<T, Fut: Future<Output = Result<T, JobError>>>(step: impl Fn() -> Fut) -> T {
    for _ in 0..20 {
        match step().await {
            Ok(done) => return done,
            Err(error) => {
                assert!(matches!(error.kind(), JobErrorKind::Transient | JobErrorKind::Busy), "{error}");
            }
        }
    }
    panic!("the step never works");
}

#[tokio::test]
async fn lost_answers_do_not_run_a_job_twice() {
    for fault in [
        Fault::DropAfter,
        Fault::NoExitCode,
        Fault::Drop,
        Fault::Garbage,
        Fault::NotReady,
        Fault::Status(503, String::new(), Vec::new()),
    ] {
        // Four of five calls fail, so that steps fail in spite of the retries of each call.
        let rule = {
            let fault = fault.clone();
            move |call: &Call| match call.endpoint {
                Endpoint::Exec | Endpoint::Write if call.before % 5 != 4 => fault.clone(),
                _ => Fault::None,
            }
        };
        let world = World::with_rule(rule).await;
        let (sandy, id, job, spec) = (&world.sandy, &world.id, &world.job, counting_job());
        assert_eq!(
            retry_until_success(|| job::upload(sandy, id, job, &spec, &NoFiles)).await,
            UploadProgress::Ready
        );
        retry_until_success(|| job::start(sandy, id, job, &spec)).await;
        let end = loop {
            match retry_until_success(|| job::look(sandy, id, job)).await {
                JobStatus::Over(end) => break end,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let report = retry_until_success(|| job::harvest(sandy, id, job, &spec, end)).await;
        assert_eq!((end, report.text("count")), (JobEnd::Exited(0), Some("x\n")), "{fault:?}");
    }
}

#[tokio::test]
async fn late_answers_do_not_run_a_job_twice() {
    // The first start succeeds, but its answer arrives when the client no longer waits.
    let mut world = World::with_rule(|call: &Call| {
        let is_start = call.body["command"].as_str().is_some_and(|command| command.contains("class Wrapper"));
        match (call.endpoint, call.sandbox_before) {
            (Endpoint::Exec, before) if is_start && before < 4 => Fault::Late(Duration::from_secs(600)),
            _ => Fault::None,
        }
    })
    .await;
    let hasty = Duration::from_secs(10);
    let timing = Timing { command: hasty, exec_min: hasty, exec_margin: Duration::ZERO, ..timing() };
    world.sandy = world.server.sandy(timing).unwrap();
    world.upload(&counting_job()).await;
    world.start(&counting_job()).await;
    assert_run_once(&world).await;
    assert!(world.server.calls(Endpoint::Exec) >= 3);
}

#[tokio::test]
async fn a_sandbox_that_is_lost_at_any_call_is_gone_for_every_step() {
    for lost_at in 0..6 {
        let world = World::with_rule(move |call: &Call| match call.sandbox_before {
            before if call.sandbox.is_some() && before == lost_at => Fault::Lose,
            _ => Fault::None,
        })
        .await;
        let (sandy, id, job, spec) = (&world.sandy, &world.id, &world.job, counting_job());
        let steps = async {
            job::upload(sandy, id, job, &spec, &NoFiles).await?;
            job::start(sandy, id, job, &spec).await?;
            loop {
                job::look(sandy, id, job).await?;
            }
            #[allow(unreachable_code)] // names the type
            Ok::<(), JobError>(())
        };
        assert_eq!(steps.await.unwrap_err().kind(), JobErrorKind::Gone, "{lost_at}");
        assert_eq!(job::look(sandy, id, job).await.unwrap_err().kind(), JobErrorKind::Gone);
        let report = job::harvest(sandy, id, job, &spec, JobEnd::Vanished).await;
        assert_eq!(report.unwrap_err().kind(), JobErrorKind::Gone);
        assert_eq!(world.server.open(), Vec::<String>::new());
    }
}

/// A step of a job.
#[derive(Debug, Clone, Copy)]
enum Step {
    Upload,
    Start,
    Look,
    Harvest,
}

async fn run_step(world: &World, step: Step) {
    let (sandy, id, job, spec) = (&world.sandy, &world.id, &world.job, counting_job());
    match step {
        Step::Upload => world.upload(&spec).await,
        // The step may come before the upload.
        Step::Start => {
            if let Err(error) = job::start(sandy, id, job, &spec).await {
                assert!(matches!(error, JobError::Failed { .. }), "{error}");
            }
        }
        Step::Look => drop(world.look().await),
        Step::Harvest => drop(world.harvest(&spec, JobEnd::Vanished).await),
    }
}

fn steps() -> impl Strategy<Value = Vec<(Step, Step)>> {
    let step = || prop_oneof![Just(Step::Upload), Just(Step::Start), Just(Step::Look), Just(Step::Harvest)];
    proptest::collection::vec((step(), step()), 1..6)
}

proptest! {
    // Few cases, since each starts dozens of processes.
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn steps_in_any_order_two_at_a_time_run_a_job_once(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::with_rule(|call: &Call| match (call.endpoint, call.before % 3) {
                (Endpoint::Exec | Endpoint::Write, 0) => Fault::Twice,
                (Endpoint::Exec | Endpoint::Write, 1) => Fault::DropAfter,
                _ => Fault::None,
            })
            .await;
            for (one, two) in steps {
                tokio::join!(run_step(&world, one), run_step(&world, two));
            }
            for step in [Step::Upload, Step::Start] {
                run_step(&world, step).await;
            }
            assert_run_once(&world).await;
        });
    }
}
