//! Whole jobs, by the project's own client, in sandboxes that are real: what a job does there ends in a named way.

use std::time::Duration;

use bench_domain::{FileContent, Harvested, JobEnd, JobFile, JobReport, JobSpec, ResultFile};
use bench_sandy::job::{self, JobErrorKind, JobName, JobStatus, NoFiles, Uploaded};
use bench_sandy::{NewSandbox, Sandy, SandyConfig};

use crate::api::{KEY, Served};
use crate::host::{At, each_form};

/// Looks before a test gives up.
const LOOKS_MAX: u32 = 1_000;

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

fn client(served: &Served) -> Sandy {
    let config = SandyConfig::from_vars(|name| match name {
        "SANDY_BASE_URL" => Some(served.address.clone()),
        "SANDY_API_KEY" => Some(KEY.to_owned()),
        _ => None,
    });
    Sandy::new(config.unwrap())
}

/// All steps of a job, those that start it made twice.
async fn run(sandy: &Sandy, spec: &JobSpec) -> JobReport {
    let id = sandy.create(&NewSandbox::default()).await.unwrap();
    let job: JobName = "a-1".parse().unwrap();
    for _ in 0..2 {
        let uploaded = job::upload(sandy, &id, &job, spec, &NoFiles).await;
        assert_eq!(uploaded, Ok(Uploaded::Ready));
    }
    for _ in 0..2 {
        let _ = job::start(sandy, &id, &job, spec).await;
    }
    for _ in 0..LOOKS_MAX {
        match job::look(sandy, &id, &job).await.map(JobStatus::once_started) {
            Ok(JobStatus::Over(end)) => {
                let report = job::harvest(sandy, &id, &job, spec, end).await.unwrap();
                sandy.terminate(&id).await.unwrap();
                return report;
            }
            Err(error) if error.kind() == JobErrorKind::Gone => panic!("{error}: {}", spec.script),
            // Where a job takes all processes or all memory, a look may fail.
            Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    panic!("the job does not end: {}", spec.script);
}

/// Runs a job in every form.
async fn in_each_form(spec: JobSpec, check: impl Fn(&At, JobReport)) {
    each_form(|at| {
        let (spec, check) = (&spec, &check);
        async move {
            let served = Served::start(&at, 1).await;
            check(&at, run(&client(&served), spec).await);
            served.host.shut_down().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_its_files_and_leaves_its_results() {
    let much: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let files = vec![JobFile { path: "in/much".to_owned(), content: FileContent::Bytes(much) }];
    let script = "echo x >> count; wc -c < in/much; seq 50000 > many; id -u >&2; exit 3";
    in_each_form(JobSpec { files, ..spec(script, &["count", "many"]) }, |at, report| {
        assert_eq!((report.end, report.stdout_tail.as_str()), (JobEnd::Exited(3), "3000000\n"), "{report:?}");
        assert_eq!((report.text("count"), report.text("many").map(str::len)), (Some("x\n"), Some(288_894)));
        assert_eq!(report.isolation.as_deref(), Some(at.form().name));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_landlock_where_it_needs_it_or_where_a_cgroup_counts_memory() {
    let script = "exec python3 -c 'import ctypes; libc = ctypes.CDLL(None, use_errno=True); kind = ctypes.c_uint64(4); \
                  print(libc.syscall(444, ctypes.byref(kind), ctypes.c_size_t(8), 0) >= 0, ctypes.get_errno())'";
    for needs_landlock in [true, false] {
        in_each_form(JobSpec { needs_landlock, ..spec(script, &[]) }, |at, report| {
            let has_it = needs_landlock || at.has("memory cgroup");
            let expected = if has_it { "True 0\n" } else { "False 38\n" };
            assert_eq!(report.stdout_tail, expected, "{}: {report:?}", at.form().name);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_takes_all_processes_ends_with_its_time() {
    let script = "bomb() { bomb | bomb & }; bomb; sleep 1000";
    in_each_form(JobSpec { time_limit: Duration::from_secs(2), ..spec(script, &[]) }, |at, report| {
        // Where the kernel does not bound them, the sandbox ends that has too many, and it is known why.
        let is_watched = at.lacks("processes are watched");
        assert_eq!(report.end, if is_watched { JobEnd::OverLimit } else { JobEnd::TimedOut });
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fills_its_folder_still_says_how_it_ended() {
    let script =
        "head -c 1000000000 /dev/zero > all; for n in $(seq 2000); do echo $n > small-$n; done; exit 9";
    in_each_form(spec(script, &["all"]), |at, report| {
        // Where the folder has no bound of its own, the sandbox ends that goes beyond it.
        if report.end == JobEnd::OverLimit {
            return assert!(at.is_confined() && report.files.is_empty());
        }
        assert_eq!(report.end, JobEnd::Exited(9));
        assert!(matches!(report.files["all"], Harvested::TooLong(_)), "{:?}", report.files);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_kills_all_it_can_ends_as_it_says() {
    let script =
        "for signal in TERM HUP SEGV KILL; do kill -$signal -1; kill -$signal $PPID; done; echo on; exit 4";
    in_each_form(spec(script, &[]), |_, report| {
        assert_eq!((report.end, report.stdout_tail.as_str()), (JobEnd::Exited(4), "on\n"), "{report:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_stops_its_wrapper_goes_on() {
    let script = "kill -STOP $PPID; kill -STOP $$; kill -STOP -1; echo on; exit 4";
    in_each_form(spec(script, &[]), |_, report| {
        assert_eq!((report.end, report.stdout_tail.as_str()), (JobEnd::Exited(4), "on\n"), "{report:?}");
    })
    .await;
}

/// Processes of the machine with these words as their command line.
fn with_words(words: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").trim() == words).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_leaves_running_ends_with_it() {
    each_form(|at| async move {
        let served = Served::start(&at, 1).await;
        let sandy = client(&served);
        let id = sandy.create(&NewSandbox::default()).await.unwrap();
        // A time that no other test sleeps for.
        let sleep = format!("sleep {}", 100_000 + std::process::id());
        let script = format!(
            "(setsid env -i {sleep} &); (setsid bash -c 'trap \"\" TERM; exec {sleep}' &); until [ -e go ]; do sleep 0.02; done"
        );
        let (job, spec): (JobName, _) = ("a-1".parse().unwrap(), spec(&script, &[]));
        job::upload(&sandy, &id, &job, &spec, &NoFiles).await.unwrap();
        job::start(&sandy, &id, &job, &spec).await.unwrap();
        while with_words(&sleep) < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sandy.write_file(&id, "jobs/a-1/go", "").await.unwrap();
        loop {
            match job::look(&sandy, &id, &job).await.unwrap() {
                JobStatus::Over(end) => break assert_eq!(end, JobEnd::Exited(0)),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        // Where processes cannot be seen from within, they end with the sandbox.
        assert_eq!(with_words(&sleep), if at.is_confined() { 2 } else { 0 }, "{}", at.form().name);
        sandy.terminate(&id).await.unwrap();
        assert_eq!(with_words(&sleep), 0);
        served.host.shut_down().await;
    })
    .await;
}
