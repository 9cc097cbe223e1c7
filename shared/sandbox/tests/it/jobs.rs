//! Complete jobs in real sandboxes, run by the project's own client. Every way in which a job can end is reported by name.

use std::time::Duration;

use bench_domain::{FileContent, HarvestedFile, JobEnd, JobFile, JobReport, JobSpec, ResultFile};
use bench_sandy::job::{self, JobErrorKind, JobName, JobStatus, NoFiles, UploadProgress};
use bench_sandy::{NewSandbox, Sandy, SandyConfig};

use crate::api::{KEY, TestServer};
use crate::support::{TestForm, each_form, each_form_alone};

/// Maximum number of polls before a test fails.
const POLLS_MAX: u32 = 1_000;

fn spec(script: &str, results: &[&str]) -> JobSpec {
    let result = |path: &&str| ResultFile { path: (*path).to_owned(), bytes_max: 1 << 20 };
    JobSpec {
        files: Vec::new(),
        script: script.to_owned(),
        time_limit: Duration::from_secs(60),
        memory_bytes: 64 << 20,
        probe: None,
        needs_landlock: false,
        results: results.iter().map(result).collect(),
    }
}

fn client(server: &TestServer) -> Sandy {
    let config = SandyConfig::from_vars(|name| match name {
        "SANDY_BASE_URL" => Some(server.address.clone()),
        "SANDY_API_KEY" => Some(KEY.to_owned()),
        _ => None,
    });
    Sandy::new(config.unwrap())
}

/// Runs all steps of a job; repeats those that start it.
async fn run(sandy: &Sandy, spec: &JobSpec) -> JobReport {
    let id = sandy.create(&NewSandbox::default()).await.unwrap();
    let job: JobName = "a-1".parse().unwrap();
    for _ in 0..2 {
        let uploaded = job::upload(sandy, &id, &job, spec, &NoFiles).await;
        assert_eq!(uploaded, Ok(UploadProgress::Ready));
    }
    for _ in 0..2 {
        let _ = job::start(sandy, &id, &job, spec).await;
    }
    for _ in 0..POLLS_MAX {
        match job::look(sandy, &id, &job).await.map(JobStatus::once_started) {
            Ok(JobStatus::Over(end)) => {
                let report = job::harvest(sandy, &id, &job, spec, end).await.unwrap();
                sandy.terminate(&id).await.unwrap();
                return report;
            }
            Err(error) if error.kind() == JobErrorKind::Gone => panic!("{error}: {}", spec.script),
            // If a job takes all processes or all memory, a poll may fail.
            Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    panic!("the job does not end: {}", spec.script);
}

/// Runs a job in every form and checks its report.
async fn in_each_form(spec: JobSpec, check: impl Fn(&TestForm, JobReport)) {
    each_form(|form| {
        let (spec, check) = (&spec, &check);
        async move { check(&form, run_in(&form, spec).await) }
    })
    .await;
}

async fn run_in(form: &TestForm, spec: &JobSpec) -> JobReport {
    let server = TestServer::start(form, 1).await;
    let report = run(&client(&server), spec).await;
    server.host.shut_down().await;
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_gets_its_files_and_its_results_are_harvested() {
    let much: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let files = vec![JobFile { path: "in/much".to_owned(), content: FileContent::Bytes(much) }];
    let script = "echo x >> count; wc -c < in/much; seq 50000 > many; id -u >&2; exit 3";
    in_each_form(JobSpec { files, ..spec(script, &["count", "many"]) }, |form, report| {
        assert_eq!((report.end, report.stdout_tail.as_str()), (JobEnd::Exited(3), "3000000\n"), "{report:?}");
        assert_eq!((report.text("count"), report.text("many").map(str::len)), (Some("x\n"), Some(288_894)));
        assert_eq!(report.isolation.as_deref(), Some(form.description().name));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_landlock_if_it_needs_it_or_a_cgroup_counts_memory() {
    let script = "exec python3 -c 'import ctypes; libc = ctypes.CDLL(None, use_errno=True); kind = ctypes.c_uint64(4); \
                  print(libc.syscall(444, ctypes.byref(kind), ctypes.c_size_t(8), 0) >= 0, ctypes.get_errno())'";
    for needs_landlock in [true, false] {
        in_each_form(JobSpec { needs_landlock, ..spec(script, &[]) }, |form, report| {
            let has_it = needs_landlock || form.has("memory cgroup");
            let expected = if has_it { "True 0\n" } else { "False 38\n" };
            assert_eq!(report.stdout_tail, expected, "{}: {report:?}", form.description().name);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_moves_and_links_files_between_folders() {
    let script = "set -e; mkdir -p a b; echo x > a/f; mv a/f b/g; ln b/g a/h; \
                  python3 -c 'import os; os.rename(\"b/g\", \"a/i\")'; cat a/h a/i";
    for needs_landlock in [true, false] {
        in_each_form(JobSpec { needs_landlock, ..spec(script, &[]) }, |form, report| {
            let name = form.description().name;
            assert_eq!((report.end, report.stdout_tail.as_str()), (JobEnd::Exited(0), "x\nx\n"), "{name}");
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_takes_all_processes_ends_at_its_time_limit() {
    let script = "bomb() { bomb | bomb & }; bomb; sleep 1000";
    let spec = JobSpec { time_limit: Duration::from_secs(2), ..spec(script, &[]) };
    each_form_alone(|form| {
        let spec = &spec;
        async move {
            // If the kernel doesn't limit processes, the guard ends the sandbox and reports the limit.
            let is_watched = form.lacks("processes are watched");
            let end = run_in(&form, spec).await.end;
            assert_eq!(end, if is_watched { JobEnd::OverLimit } else { JobEnd::TimedOut });
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fills_its_folder_still_reports_its_end() {
    let script =
        "head -c 1000000000 /dev/zero > all; for n in $(seq 2000); do echo $n > small-$n; done; exit 9";
    in_each_form(spec(script, &["all"]), |form, report| {
        // If the folder isn't a separate file system, the guard ends the sandbox.
        if report.end == JobEnd::OverLimit {
            return assert!(form.is_confined() && report.files.is_empty());
        }
        assert_eq!(report.end, JobEnd::Exited(9));
        assert!(matches!(report.files["all"], HarvestedFile::TooLong(_)), "{:?}", report.files);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_kills_all_it_can_keeps_its_exit_code() {
    let script =
        "for signal in TERM HUP SEGV KILL; do kill -$signal -1; kill -$signal $PPID; done; echo on; exit 4";
    in_each_form(spec(script, &[]), |_, report| {
        assert_eq!((report.end, report.stdout_tail.as_str()), (JobEnd::Exited(4), "on\n"), "{report:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_cannot_stop_its_wrapper() {
    let script = "kill -STOP $PPID; kill -STOP $$; kill -STOP -1; echo on; exit 4";
    in_each_form(spec(script, &[]), |_, report| {
        assert_eq!((report.end, report.stdout_tail.as_str()), (JobEnd::Exited(4), "on\n"), "{report:?}");
    })
    .await;
}

/// Returns the number of processes on the machine with this command line.
fn count_with_command_line(words: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").trim() == words).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_a_job_leaves_running_are_ended() {
    each_form(|form| async move {
        let server = TestServer::start(&form, 1).await;
        let sandy = client(&server);
        let id = sandy.create(&NewSandbox::default()).await.unwrap();
        // A duration that no other test uses.
        let sleep = format!("sleep {}", 100_000 + std::process::id());
        let script = format!(
            "(setsid env -i {sleep} &); (setsid bash -c 'trap \"\" TERM; exec {sleep}' &); until [ -e go ]; do sleep 0.02; done"
        );
        let (job, spec): (JobName, _) = ("a-1".parse().unwrap(), spec(&script, &[]));
        job::upload(&sandy, &id, &job, &spec, &NoFiles).await.unwrap();
        job::start(&sandy, &id, &job, &spec).await.unwrap();
        while count_with_command_line(&sleep) < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sandy.write_file(&id, "jobs/a-1/go", "").await.unwrap();
        loop {
            match job::look(&sandy, &id, &job).await.unwrap() {
                JobStatus::Over(end) => break assert_eq!(end, JobEnd::Exited(0)),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        // If the wrapper can't see processes, they end with the sandbox.
        assert_eq!(count_with_command_line(&sleep), if form.is_confined() { 2 } else { 0 }, "{}", form.description().name);
        sandy.terminate(&id).await.unwrap();
        assert_eq!(count_with_command_line(&sleep), 0);
        server.host.shut_down().await;
    })
    .await;
}
