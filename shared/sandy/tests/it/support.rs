//! Support for all tests.

use std::sync::OnceLock;
use std::time::Duration;

use bench_domain::{FileContent, JobEnd, JobFile, JobReport, JobSpec, ResultFile};
use bench_sandy::job::{self, JobName, JobStatus, NoFiles, UploadProgress};
use bench_sandy::testing::{Call, Fault, Options, SandyServer};
use bench_sandy::{NewSandbox, Sandy, Timing};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Maximum number of polls before a test fails.
const POLLS_MAX: u32 = 6_000;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns time limits for a busy machine, with short waits before retries.
pub(crate) fn timing() -> Timing {
    Timing { repeat_wait: Duration::from_millis(1), ..Timing::default() }
}

/// A shell function for scripts: runs a command outside of the job, as if the kernel did not restrict the job.
pub(crate) const OUTSIDE: &str =
    "outside() { echo \"$1\" > ask.new; mv ask.new ask; while [ -e ask ]; do sleep 0.01; done; };";

/// A server, a client of it, and a sandbox.
pub(crate) struct World {
    pub(crate) server: SandyServer,
    pub(crate) sandy: Sandy,
    pub(crate) id: String,
    pub(crate) job: JobName,
    /// Limits the number of concurrent tests, since each starts many processes.
    _permit: SemaphorePermit<'static>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with_rule(rule: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Self {
        Self::with(Options { rule: Some(std::sync::Arc::new(rule)), ..Options::default() }).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        static CONCURRENT_TESTS: OnceLock<Semaphore> = OnceLock::new();
        let permit = CONCURRENT_TESTS.get_or_init(|| Semaphore::new(3)).acquire().await.unwrap();
        let server = SandyServer::start(options).await.unwrap();
        let sandy = server.sandy(timing()).unwrap();
        let id = sandy.create(&NewSandbox::default()).await.unwrap();
        Self { server, sandy, id, job: "job-1".parse().unwrap(), _permit: permit }
    }

    pub(crate) async fn upload(&self, spec: &JobSpec) {
        let uploaded = job::upload(&self.sandy, &self.id, &self.job, spec, &NoFiles).await;
        assert_eq!(uploaded, Ok(UploadProgress::Ready));
    }

    pub(crate) async fn start(&self, spec: &JobSpec) {
        self.run_outside_commands();
        job::start(&self.sandy, &self.id, &self.job, spec).await.unwrap();
    }

    /// Runs the commands of [`OUTSIDE`] for the job.
    fn run_outside_commands(&self) {
        let ask = self.file("ask");
        tokio::spawn(async move {
            loop {
                if let Ok(command) = std::fs::read_to_string(&ask) {
                    let done = std::process::Command::new("bash").arg("-c").arg(command).status();
                    assert!(done.unwrap().code().is_some());
                    let _ = std::fs::remove_file(&ask);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }

    pub(crate) async fn look(&self) -> JobStatus {
        job::look(&self.sandy, &self.id, &self.job).await.unwrap()
    }

    pub(crate) async fn end(&self) -> JobEnd {
        for _ in 0..POLLS_MAX {
            match self.look().await.once_started() {
                JobStatus::Over(end) => return end,
                _ => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
        panic!("the job does not end");
    }

    /// Waits until a file of the job exists.
    pub(crate) async fn wait_for_file(&self, path: &str) {
        for _ in 0..POLLS_MAX {
            if self.file(path).exists() {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        panic!("there is no {path}");
    }

    pub(crate) async fn harvest(&self, spec: &JobSpec, end: JobEnd) -> JobReport {
        job::harvest(&self.sandy, &self.id, &self.job, spec, end).await.unwrap()
    }

    /// Runs all steps of a job.
    pub(crate) async fn run(&self, spec: &JobSpec) -> JobReport {
        self.upload(spec).await;
        self.start(spec).await;
        let end = self.end().await;
        self.harvest(spec, end).await
    }

    /// Returns the path of a job's file outside of the sandbox.
    pub(crate) fn file(&self, path: &str) -> std::path::PathBuf {
        self.server.folder(&self.id).unwrap().join("jobs/job-1").join(path)
    }

    /// Returns the command lines of the sandbox's processes.
    pub(crate) fn processes(&self) -> Vec<String> {
        let folder = self.server.folder(&self.id).unwrap();
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let of_us = entries.filter(|entry| {
            let home = std::fs::read_link(entry.path().join("cwd"));
            home.is_ok_and(|home| home.starts_with(&folder))
        });
        of_us.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok()).collect()
    }
}

pub(crate) fn spec(script: &str) -> JobSpec {
    JobSpec {
        files: Vec::new(),
        script: script.to_owned(),
        time_limit: Duration::from_secs(240),
        memory_bytes: 1 << 28,
        probe: None,
        needs_landlock: false,
        results: Vec::new(),
    }
}

pub(crate) fn file(path: &str, bytes: impl Into<Vec<u8>>) -> JobFile {
    JobFile { path: path.to_owned(), content: FileContent::Bytes(bytes.into()) }
}

pub(crate) fn result(path: &str, bytes_max: u64) -> ResultFile {
    ResultFile { path: path.to_owned(), bytes_max }
}
