//! Jobs that are run with one call.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use bench_domain::{HarvestedFile, JobEnd, JobSpec};
use bench_sandy::job::{self, JobError, RUN_BYTES_MAX, RunStatus};
use bench_sandy::testing::{Endpoint, Fault, Options};

use crate::support::{World, file, result, spec};

impl World {
    async fn run_once(&self, spec: &JobSpec, wait: Duration) -> Result<RunStatus, JobError> {
        job::run(&self.sandy, &self.id, &self.job, spec, wait).await
    }
}

/// Time after which a test gives up.
const LONG: Duration = Duration::from_secs(120);
/// A script that counts how often it was started.
const COUNTED: &str =
    "mkdir -p ~/runs; mktemp ~/runs/XXXXXX >/dev/null; cat a/b > r; echo out; echo err >&2; exit 3";

fn counted() -> JobSpec {
    JobSpec {
        files: vec![file("a/b", "data")],
        results: vec![result("r", 100), result("none", 100)],
        ..spec(COUNTED)
    }
}

fn runs(world: &World) -> usize {
    std::fs::read_dir(world.server.folder(&world.id).unwrap().join("runs")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn one_call_runs_a_small_job() {
    let world = World::new().await;
    let RunStatus::Over(report) = world.run_once(&counted(), LONG).await.unwrap() else {
        panic!("the job is still running")
    };
    assert_eq!(report.end, JobEnd::Exited(3));
    assert_eq!((report.stdout_tail.as_str(), report.stderr_tail.as_str()), ("out\n", "err\n"));
    assert_eq!(report.files.len(), 1);
    assert_eq!(report.files["r"], HarvestedFile::Text("data".to_owned()));
    assert_eq!(world.server.calls(Endpoint::Exec), 1);
    // Repeated, it only reads what came of it.
    let again = world.run_once(&counted(), Duration::ZERO).await.unwrap();
    assert_eq!((again, runs(&world)), (RunStatus::Over(report), 1));
}

#[tokio::test]
async fn a_call_returns_while_the_job_is_running() {
    let world = World::new().await;
    let slow = spec("until [ -e go ]; do sleep 0.01; done; echo done");
    assert_eq!(world.run_once(&slow, Duration::ZERO).await.unwrap(), RunStatus::Running);
    assert_eq!(world.run_once(&slow, Duration::from_millis(50)).await.unwrap(), RunStatus::Running);
    std::fs::write(world.file("go"), "").unwrap();
    let end = world.run_once(&slow, LONG).await.unwrap();
    assert!(matches!(end, RunStatus::Over(report) if report.stdout_tail == "done\n"));
}

/// A call that waits looks dozens of times. If it left a file open each time, it would exceed the limit.
#[tokio::test]
async fn a_call_that_waits_leaves_no_files_open() {
    let folder = tempfile::tempdir().unwrap();
    let python = folder.path().join("python3");
    let limited = "#!/bin/sh\nulimit -n 64\nPATH=${PATH#*:} exec python3 \"$@\"\n";
    std::fs::write(&python, limited).unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let world = World::with(Options { path: Some(folder.path().to_owned()), ..Options::default() }).await;
    let end = world.run_once(&spec("sleep 3"), LONG).await.unwrap();
    assert!(matches!(&end, RunStatus::Over(report) if report.end == JobEnd::Exited(0)), "{end:?}");
}

#[tokio::test]
async fn repeated_calls_run_the_script_once() {
    for fault in [Fault::Twice, Fault::DropAfter] {
        let first = fault.clone();
        let world = World::with_rule(move |call| match call.endpoint {
            Endpoint::Exec if call.before == 0 => first.clone(),
            _ => Fault::None,
        })
        .await;
        let end = world.run_once(&counted(), LONG).await.unwrap();
        assert!(matches!(end, RunStatus::Over(report) if report.end == JobEnd::Exited(3)), "{fault:?}");
        assert_eq!(runs(&world), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_job_stopped_before_its_start_does_not_run() {
    let world = World::new().await;
    job::stop(&world.sandy, &world.id, &world.job).await.unwrap();
    assert!(world.run_once(&counted(), Duration::from_millis(10)).await.is_ok());
    assert_eq!(runs(&world), 0);
}

#[tokio::test]
async fn a_job_for_one_call_is_small() {
    let world = World::new().await;
    let files = vec![file("a", vec![b'x'; RUN_BYTES_MAX - 100])];
    let largest = JobSpec { files, ..spec("true") };
    let end = world.run_once(&largest, LONG).await.unwrap();
    assert!(matches!(end, RunStatus::Over(report) if report.end == JobEnd::Exited(0)));
    let files = vec![file("a", vec![b'x'; RUN_BYTES_MAX])];
    let refused = world.run_once(&JobSpec { files, ..spec("true") }, Duration::ZERO).await;
    assert!(matches!(refused, Err(JobError::Spec(_))));
}
