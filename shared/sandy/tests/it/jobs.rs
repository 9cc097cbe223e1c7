//! Jobs in sandboxes without injected faults, including jobs with large output and jobs that resist being stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench_domain::{HarvestedFile, JobEnd, JobSpec};
use bench_sandy::job::{self, JobError, JobErrorKind, JobStatus, NoFiles};
use bench_sandy::testing::{Endpoint, Fault, Options, Rule};

use crate::support::{World, file, result, spec};

#[tokio::test]
async fn a_job_reads_its_files_and_its_results_are_harvested() {
    let world = World::new().await;
    let binary: Vec<u8> = (0..=255).collect();
    let spec = JobSpec {
        files: vec![file("in/a.txt", "hello"), file("b.bin", binary), file("empty", "")],
        results: vec![result("out.txt", 100), result("in/copy.bin", 1_000), result("nothing", 10)],
        ..spec(
            "read -r line && echo input; cat in/a.txt; echo it\\'s wrong >&2\n\
             cat b.bin b.bin > in/copy.bin; wc -c < empty > out.txt; basename \"$PWD\" >> out.txt; exit 4",
        )
    };
    assert_eq!(world.look().await, JobStatus::NotStarted);
    let report = world.run(&spec).await;
    assert_eq!(report.end, JobEnd::Exited(4));
    assert_eq!((report.stdout_tail.as_str(), report.stderr_tail.as_str()), ("hello", "it's wrong\n"));
    assert_eq!(report.text("out.txt"), Some("0\njob-1\n"));
    let copy = report.text("in/copy.bin").unwrap();
    assert!(copy.starts_with("\0\u{1}") && copy.ends_with('\u{fffd}'));
    assert_eq!(report.files.len(), 2);
    assert!(report.elapsed_ms.is_some_and(|elapsed| elapsed < 240_000));
    assert_eq!(report.isolation.as_deref(), Some("none"));
    // A small job takes one file and at least four short commands.
    assert_eq!((world.server.calls(Endpoint::Write), world.processes()), (1, Vec::new()));
    assert_eq!(world.look().await, JobStatus::Over(JobEnd::Exited(4)));
}

#[tokio::test]
async fn ends_are_reported_by_name() {
    for (script, end) in [
        ("", JobEnd::Exited(0)),
        ("exit 255", JobEnd::Exited(255)),
        ("kill -9 $$", JobEnd::Exited(137)),
        ("kill -SEGV $$", JobEnd::Exited(139)),
        ("no-such-program", JobEnd::Exited(127)),
        ("if", JobEnd::Exited(2)),
        ("#!/bin/sh\r\nexit 3", JobEnd::Exited(3)),
    ] {
        let world = World::new().await;
        let report = world.run(&spec(script)).await;
        assert_eq!((report.end, world.processes()), (end, Vec::new()), "{script}");
    }
}

#[tokio::test]
async fn large_files_and_results_are_sent_in_pieces() {
    let world = World::new().await;
    let much: Vec<u8> = (0..3_500_000_u32).map(|n| b'a' + u8::try_from(n % 23).unwrap()).collect();
    let spec = JobSpec {
        files: vec![file("much", much.clone())],
        results: vec![result("copy", 4_000_000), result("much", 3_499_999), result("again", 4_000_000)],
        ..spec("cp much copy; cp much again")
    };
    let report = world.run(&spec).await;
    assert_eq!(report.text("copy").map(str::as_bytes), Some(much.as_slice()));
    assert_eq!(report.text("again").map(str::len), Some(much.len()));
    assert_eq!(report.files["much"], HarvestedFile::TooLong(3_500_000));
    assert_eq!(world.server.calls(Endpoint::Write), 4);
    let left = std::fs::read_dir(world.server.folder(&world.id).unwrap()).unwrap();
    assert_eq!(left.count(), 1, "pieces were left behind");
}

#[tokio::test]
async fn results_arrive_complete_from_a_host_that_truncates_output() {
    for (output_max, is_enough) in [(400_000, true), (65_536, true), (1_000, false)] {
        let world = World::with(Options { output_max: Some(output_max), ..Options::default() }).await;
        let script = "seq 60000 > many; cp many again; head -c 300000 /dev/urandom | tee /dev/stderr";
        let results = vec![result("many", 1 << 20), result("again", 1 << 20)];
        let spec = JobSpec { results, ..spec(script) };
        world.upload(&spec).await;
        world.start(&spec).await;
        let end = world.end().await;
        let harvested = job::harvest(&world.sandy, &world.id, &world.job, &spec, end).await;
        if !is_enough {
            assert!(matches!(harvested, Err(JobError::UnexpectedAnswer { .. })), "{harvested:?}");
            continue;
        }
        let (many, report) = (std::fs::read_to_string(world.file("many")).unwrap(), harvested.unwrap());
        assert_eq!((report.text("many"), report.text("again")), (Some(many.as_str()), Some(many.as_str())));
    }
}

#[tokio::test]
async fn a_job_is_stopped_at_its_time_limit_even_if_it_resists() {
    for script in ["while :; do :; done", "trap '' TERM; while :; do sleep 0.1; done", "sleep 1000 & wait"] {
        let world = World::new().await;
        let spec = JobSpec { time_limit: Duration::from_secs(1), ..spec(script) };
        let report = world.run(&spec).await;
        assert_eq!((report.end, world.processes()), (JobEnd::TimedOut, Vec::new()), "{script}");
        assert!(report.elapsed_ms.is_some_and(|elapsed| elapsed >= 1_000));
    }
}

#[tokio::test]
async fn a_stopped_job_has_time_to_clean_up() {
    let world = World::new().await;
    // Not `sleep & wait`: bash 5.2 drops a signal that arrives just before `wait`, and ends without the trap.
    let script = "trap 'echo bye > last; exit 0' TERM; touch begun; while :; do sleep 0.1; done";
    let spec = JobSpec { results: vec![result("last", 10)], ..spec(script) };
    world.upload(&spec).await;
    world.start(&spec).await;
    world.wait_for_file("begun").await;
    job::stop(&world.sandy, &world.id, &world.job).await.unwrap();
    let end = world.end().await;
    let report = world.harvest(&spec, end).await;
    assert_eq!(report.text("last"), Some("bye\n"), "{report:?}");
}

#[tokio::test]
async fn a_job_can_be_stopped_as_soon_as_it_is_started() {
    for _ in 0..5 {
        let world = World::new().await;
        let spec = spec("sleep 1000");
        world.upload(&spec).await;
        world.start(&spec).await;
        job::stop(&world.sandy, &world.id, &world.job).await.unwrap();
        assert_eq!(world.processes(), Vec::<String>::new());
        assert!(matches!(world.look().await, JobStatus::Over(_)));
    }
}

#[tokio::test]
async fn a_stopped_job_can_be_harvested() {
    let world = World::new().await;
    let spec = JobSpec { results: vec![result("begun", 10)], ..spec("echo x > begun; sleep 1000") };
    world.upload(&spec).await;
    world.start(&spec).await;
    world.wait_for_file("begun").await;
    assert!(matches!(world.look().await, JobStatus::Running { .. }));
    job::stop(&world.sandy, &world.id, &world.job).await.unwrap();
    assert_eq!((world.end().await, world.processes()), (JobEnd::Exited(143), Vec::new()));
    job::stop(&world.sandy, &world.id, &world.job).await.unwrap();
    let report = world.harvest(&spec, JobEnd::TimedOut).await;
    assert_eq!((report.end, report.text("begun")), (JobEnd::TimedOut, Some("x\n")));
}

#[tokio::test]
async fn a_job_that_was_stopped_before_its_start_does_not_start() {
    let world = World::new().await;
    let spec = spec("touch begun");
    world.upload(&spec).await;
    job::stop(&world.sandy, &world.id, &world.job).await.unwrap();
    world.start(&spec).await;
    assert!(matches!(world.look().await, JobStatus::Running { .. } | JobStatus::Over(JobEnd::Vanished)));
    assert!(!world.file("begun").exists() && world.processes().is_empty());
    // Works for a job without any files, too.
    let other = "job-2".parse().unwrap();
    job::stop(&world.sandy, &world.id, &other).await.unwrap();
}

#[tokio::test]
async fn invalid_jobs_are_rejected_before_any_call() {
    let world = World::new().await;
    let before = world.server.log().len();
    let bad = JobSpec { files: vec![file("../x", "")], ..spec("true") };
    let error = job::upload(&world.sandy, &world.id, &world.job, &bad, &NoFiles).await.unwrap_err();
    assert_eq!((error.kind(), world.server.log().len()), (JobErrorKind::Fatal, before));
    // The script was never sent.
    let error = job::start(&world.sandy, &world.id, &world.job, &spec("true")).await.unwrap_err();
    assert_eq!(error.to_string(), "the sandbox could not start the job: there is no script");
    assert_eq!(world.look().await, JobStatus::NotStarted);
}

#[tokio::test]
async fn jobs_in_one_sandbox_are_independent() {
    let world = World::new().await;
    let other: job::JobName = "job-2".parse().unwrap();
    for (job, text) in [(&world.job, "one"), (&other, "two")] {
        let spec = JobSpec { files: vec![file("a", text)], ..spec("cat a") };
        job::upload(&world.sandy, &world.id, job, &spec, &NoFiles).await.unwrap();
        job::start(&world.sandy, &world.id, job, &spec).await.unwrap();
    }
    for (job, text) in [(&world.job, "one"), (&other, "two")] {
        while job::look(&world.sandy, &world.id, job).await.unwrap() != JobStatus::Over(JobEnd::Exited(0)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let report = job::harvest(&world.sandy, &world.id, job, &spec(""), JobEnd::Exited(0)).await.unwrap();
        assert_eq!(report.stdout_tail, text);
    }
}

/// A program may exceed a limit of the sandbox and exit before the host notices.
#[tokio::test]
async fn a_sandbox_that_is_ended_for_a_limit_ends_its_job_at_any_step() {
    let is_over = Arc::new(AtomicBool::new(false));
    let rule: Rule = {
        let is_over = is_over.clone();
        Arc::new(move |_| match is_over.load(Ordering::SeqCst) {
            true => Fault::Status(404, r#"{"detail": "Ended.", "overLimit": "too much"}"#.to_owned(), vec![]),
            false => Fault::None,
        })
    };
    let world = World::with(Options { rule: Some(rule), ..Options::default() }).await;
    let spec = spec("exit 0");
    world.upload(&spec).await;
    world.start(&spec).await;
    let end = world.end().await;
    assert_eq!(end, JobEnd::Exited(0));
    is_over.store(true, Ordering::SeqCst);
    job::start(&world.sandy, &world.id, &world.job, &spec).await.unwrap();
    assert_eq!(world.look().await, JobStatus::Over(JobEnd::OverLimit));
    job::stop(&world.sandy, &world.id, &world.job).await.unwrap();
    assert_eq!(world.harvest(&spec, end).await.end, JobEnd::OverLimit);
    world.sandy.terminate(&world.id).await.unwrap();
}
