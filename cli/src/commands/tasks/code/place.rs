//! Runs the jobs of programming tasks in sandboxes of this machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use bench_benchmarks::code_lab::{Extent, TaskResults, read_results, task_job};
use bench_code_tasks::{CodeTask, Workspace};
use bench_domain::{FileContent, HarvestedFile, JobEnd, JobReport, JobSpec};
use bench_sandbox::isolation::{Exec, Isolation, Limits, Output, Sandbox};
use bench_stack::sandboxes::SandboxSettings;

/// Folder of a job in its sandbox.
const FOLDER: &str = "job";
/// Maximum size of a job's results, in bytes.
const RESULTS_BYTES_MAX: usize = 16 << 20;
/// Maximum number of bytes kept of a job's own output.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// Maximum time of commands that take a moment only.
const MOMENT: std::time::Duration = std::time::Duration::from_secs(60);
/// Maximum number of characters of a reason.
const REASON_CHARS_MAX: usize = 300;

/// Sandboxes of this machine.
pub(super) struct Place {
    isolation: Arc<dyn Isolation>,
    limits: Limits,
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
    /// Finds the strongest isolation of this machine.
    pub(super) async fn open(settings: SandboxSettings) -> anyhow::Result<Self> {
        let config = settings.config(None);
        let isolation = tokio::task::spawn_blocking(move || settings.isolation()).await??;
        Ok(Self { isolation, limits: config.limits, slots: config.slots })
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
        let sandbox = self.isolation.create(&self.limits).await.context("could not create a sandbox")?;
        let ran = job(sandbox.as_ref(), &spec, &key).await;
        sandbox.end().await;
        ran
    }
}

async fn job(sandbox: &dyn Sandbox, spec: &JobSpec, key: &[u8; 32]) -> anyhow::Result<Ran> {
    if let Some(probe) = &spec.probe {
        let probed = sandbox.exec(&command(probe.clone(), MOMENT, OUTPUT_BYTES_MAX)).await?;
        if probed.exit_code != Some(0) {
            return Ok(Ran::NotRunnable(shortened(&probed.stdout)));
        }
    }
    for file in &spec.files {
        if let FileContent::Bytes(bytes) = &file.content {
            sandbox.write(&format!("{FOLDER}/{}", file.path), bytes).await?;
        }
    }
    let script = format!("cd {FOLDER} && {}", spec.script);
    let done = match sandbox.exec(&command(script, spec.time_limit, OUTPUT_BYTES_MAX)).await {
        Ok(done) => done,
        // A program that exceeds a limit ends its sandbox.
        Err(error) => return Ok(Ran::Nothing(error.to_string())),
    };
    let mut files = BTreeMap::new();
    for result in &spec.results {
        let path = format!("{FOLDER}/{}", result.path);
        let read = command(format!("[ -f {path} ] && cat {path}"), MOMENT, RESULTS_BYTES_MAX);
        match sandbox.exec(&read).await {
            Ok(Output { exit_code: Some(0), stdout, dropped_bytes: 0, .. }) => {
                let text = String::from_utf8_lossy(&stdout).into_owned();
                files.insert(result.path.clone(), HarvestedFile::Text(text));
            }
            Ok(_) => {}
            Err(error) => return Ok(Ran::Nothing(error.to_string())),
        }
    }
    let report = JobReport {
        end: done.exit_code.map_or(JobEnd::TimedOut, JobEnd::Exited),
        files,
        stdout_tail: String::new(),
        stderr_tail: String::new(),
        elapsed_ms: None,
        isolation: None,
    };
    Ok(match read_results(&report, key) {
        Ok(results) => Ran::Results(Box::new(results)),
        Err(why) => {
            let output = shortened(&done.stderr);
            Ran::Nothing(if output.is_empty() { why } else { format!("{why}; {output}") })
        }
    })
}

fn command(command: String, timeout: std::time::Duration, output_bytes_max: usize) -> Exec {
    Exec { command, cwd: None, env: BTreeMap::new(), timeout, output_bytes_max }
}

/// Returns the last line of an output, shortened.
fn shortened(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.trim().lines().last().unwrap_or_default().chars().take(REASON_CHARS_MAX).collect()
}
