//! What all tests need.

use std::sync::OnceLock;
use std::time::Duration;

use bench_domain::{FileContent, JobEnd, JobFile, JobReport, JobSpec, ResultFile};
use bench_sandy::job::{self, JobName, JobStatus, NoFiles, Uploaded};
use bench_sandy::testing::{Call, Fault, Options, SandyServer};
use bench_sandy::{NewSandbox, Sandy, Timing};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Looks at a job before a test gives up.
const LOOKS_MAX: u32 = 1_500;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Limits that hold on a busy machine, and repeats that cost nothing.
pub(crate) fn timing() -> Timing {
    Timing { repeat_wait: Duration::from_millis(1), ..Timing::default() }
}

/// A function for scripts: has a command run outside of the job, as on a host whose kernel fences nothing in.
pub(crate) const OUTSIDE: &str =
    "outside() { echo \"$1\" > ask.new; mv ask.new ask; while [ -e ask ]; do sleep 0.01; done; };";

/// A server, a client of it, and a sandbox.
pub(crate) struct World {
    pub(crate) server: SandyServer,
    pub(crate) sandy: Sandy,
    pub(crate) id: String,
    pub(crate) job: JobName,
    /// Few at once: each starts many processes.
    _permit: SemaphorePermit<'static>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn ruled(rule: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Self {
        Self::with(Options { rule: Some(std::sync::Arc::new(rule)), ..Options::default() }).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        static ROOM: OnceLock<Semaphore> = OnceLock::new();
        let permit = ROOM.get_or_init(|| Semaphore::new(3)).acquire().await.unwrap();
        let server = SandyServer::start(options).await.unwrap();
        let sandy = server.sandy(timing()).unwrap();
        let id = sandy.create(&NewSandbox::default()).await.unwrap();
        Self { server, sandy, id, job: "job-1".parse().unwrap(), _permit: permit }
    }

    pub(crate) async fn upload(&self, spec: &JobSpec) {
        let uploaded = job::upload(&self.sandy, &self.id, &self.job, spec, &NoFiles).await;
        assert_eq!(uploaded, Ok(Uploaded::Ready));
    }

    pub(crate) async fn start(&self, spec: &JobSpec) {
        self.do_what_is_asked();
        job::start(&self.sandy, &self.id, &self.job, spec).await.unwrap();
    }

    /// Does for the job what it can't do itself where the kernel fences it in: see [`OUTSIDE`].
    fn do_what_is_asked(&self) {
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
        for _ in 0..LOOKS_MAX {
            match self.look().await.once_started() {
                JobStatus::Over(end) => return end,
                _ => tokio::time::sleep(BETWEEN_LOOKS).await,
            }
        }
        panic!("the job does not end");
    }

    /// Looks until a file of the job is there.
    pub(crate) async fn until_there(&self, path: &str) {
        for _ in 0..LOOKS_MAX {
            if self.file(path).exists() {
                return;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        panic!("there is no {path}");
    }

    pub(crate) async fn harvest(&self, spec: &JobSpec, end: JobEnd) -> JobReport {
        job::harvest(&self.sandy, &self.id, &self.job, spec, end).await.unwrap()
    }

    /// All steps of a job.
    pub(crate) async fn run(&self, spec: &JobSpec) -> JobReport {
        self.upload(spec).await;
        self.start(spec).await;
        let end = self.end().await;
        self.harvest(spec, end).await
    }

    /// A file of the job, from outside.
    pub(crate) fn file(&self, path: &str) -> std::path::PathBuf {
        self.server.folder(&self.id).unwrap().join("jobs/job-1").join(path)
    }

    /// Processes of the sandbox beside those of a command.
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
        time_limit: Duration::from_secs(60),
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
