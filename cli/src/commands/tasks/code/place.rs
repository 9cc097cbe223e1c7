//! Runs the jobs of programming tasks as runs do: by a sandbox host, under the wrapper of jobs.

use std::time::Duration;

use anyhow::Context;
use bench_benchmarks::code_lab::{Extent, TaskResults, read_results, task_job};
use bench_code_tasks::{CodeTask, Workspace};
use bench_domain::{JobEnd, JobReport, JobSpec};
use bench_sandy::job::{self, JobError, JobName, NoFiles, UploadProgress};
use bench_sandy::{NewSandbox, Sandy};
use bench_stack::BuiltInSandboxes;
use bench_stack::sandboxes::SandboxSettings;
use tokio::time::Instant;

/// Wait before a job's second poll. Doubles up to the maximum, which is short, since a check waits for many jobs.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_millis(400);
/// Maximum number of characters of a reason.
const REASON_CHARS_MAX: usize = 300;

/// Sandbox host of this command.
pub(super) struct Place {
    host: BuiltInSandboxes,
    sandy: Sandy,
    /// Number of sandboxes that work at once.
    pub(super) slots: usize,
}

/// Result of a job.
pub(super) enum Ran {
    /// The supervisor's results.
    Results(Box<TaskResults>),
    /// There are none, for this reason.
    Nothing(String),
    /// The sandbox lacks the language's toolchain.
    NotRunnable(String),
}

impl Place {
    /// Opens a host. It finds the strongest isolation of this machine when the first sandbox is created.
    pub(super) async fn open(settings: SandboxSettings) -> anyhow::Result<Self> {
        let slots = settings.config(None).slots.max(1);
        let host = BuiltInSandboxes::open(settings, slots).await?;
        let sandy = Sandy::new(host.config().clone());
        Ok(Self { host, sandy, slots })
    }

    /// Ends all sandboxes.
    pub(super) async fn close(self) {
        self.host.stop().await;
    }

    /// Builds a workspace and runs a task's tests in a new sandbox.
    pub(super) async fn run(
        &self,
        task: &CodeTask,
        workspace: &Workspace,
        extent: Extent<'_>,
    ) -> anyhow::Result<Ran> {
        let key: [u8; 32] = rand::random();
        let spec = task_job(task, workspace, &key, extent);
        let sandbox =
            self.sandy.create(&NewSandbox::default()).await.context("could not create a sandbox")?;
        let ran = self.job(&sandbox, &spec).await;
        // The host ends a sandbox that can't be ended now by its own rules.
        let _ = self.sandy.terminate(&sandbox).await;
        Ok(match ran {
            Ok(report) => match read_results(&report, &key) {
                Ok(results) => Ran::Results(Box::new(results)),
                Err(why) => Ran::Nothing(without_results(&why, &report)),
            },
            Err(JobError::MissingPackages(missing)) => Ran::NotRunnable(missing),
            Err(error) => Ran::Nothing(error.to_string()),
        })
    }

    async fn job(&self, sandbox: &str, spec: &JobSpec) -> Result<JobReport, JobError> {
        let (sandy, name) = (&self.sandy, JobName::default());
        job::probe(sandy, sandbox, spec).await?;
        while let UploadProgress::Underway { .. } = job::upload(sandy, sandbox, &name, spec, &NoFiles).await?
        {
        }
        job::start(sandy, sandbox, &name, spec).await?;
        let overdue = Instant::now() + job::overdue(spec.time_limit);
        let mut wait = FIRST_WAIT;
        let end = loop {
            if let job::JobStatus::Over(end) = job::look(sandy, sandbox, &name).await?.once_started() {
                break end;
            }
            if Instant::now() > overdue {
                job::stop(sandy, sandbox, &name).await?;
                break JobEnd::TimedOut;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(WAIT_MAX);
        };
        job::harvest(sandy, sandbox, &name, spec, end).await
    }
}

/// Says why a job left no results.
fn without_results(why: &str, report: &JobReport) -> String {
    let output = last_line(&report.stderr_tail);
    let end = match report.end {
        JobEnd::Exited(_) => "",
        JobEnd::TimedOut => "; the job's time limit ended it",
        JobEnd::Vanished => "; all its processes were killed",
        JobEnd::Halted => "; a program stopped a process of the job",
        JobEnd::OverLimit => "; its programs exceeded a limit of the sandbox",
    };
    if output.is_empty() { format!("{why}{end}") } else { format!("{why}{end}; {output}") }
}

/// Returns the last line of an output, shortened.
fn last_line(text: &str) -> String {
    text.trim().lines().last().unwrap_or_default().chars().take(REASON_CHARS_MAX).collect()
}
