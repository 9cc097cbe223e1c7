//! Runs a small job with one call.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bench_domain::{FileContent, JobEnd, JobReport, JobSpec};

use super::command::RUN;
use super::harvest::{BYTES_MAX_STEPS, read_sent, requested};
use super::status::{STALE_S, read_status};
use super::upload::bundle;
use super::{JobError, JobName, JobStatus, check, harvest};
use crate::{Sandy, SandyError};

/// Maximum size of the script, the files and their paths of a job for [`run`], in bytes: they are an argument of the
/// command, which must have less than 128 KiB.
pub const RUN_BYTES_MAX: usize = 56 << 10;
/// Maximum time that one call waits for the end of the job.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Result of a call of [`run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStatus {
    /// The job is still running.
    Running,
    /// The job is over. Contains its results.
    Over(JobReport),
}

/// Uploads and starts a small job, waits until it ends, at most `wait` (30 s), and harvests its results, with one call.
/// The script runs once, however often the call is made: a later one only waits and harvests.
///
/// # Errors
/// All of [`JobError`]; [`JobError::Spec`] if the job has stored files or more than [`RUN_BYTES_MAX`].
pub async fn run(
    sandy: &Sandy,
    sandbox: &str,
    job: &JobName,
    spec: &JobSpec,
    wait: Duration,
) -> Result<RunStatus, JobError> {
    check(spec)?;
    let bundle = bundle(spec);
    let has_stored = spec.files.iter().any(|file| matches!(file.content, FileContent::Stored(_)));
    if has_stored || bundle.len() > RUN_BYTES_MAX {
        return Err(JobError::Spec(format!(
            "it has stored files, or more than {RUN_BYTES_MAX} bytes, and can't run with one call"
        )));
    }
    let wait = wait.min(WAIT_MAX);
    let (limit, wait_ms) = (spec.time_limit.as_millis().to_string(), wait.as_millis().to_string());
    let (bundle, room) = (STANDARD.encode(bundle), BYTES_MAX_STEPS[0].to_string());
    let requested = requested(spec);
    let mut words = vec![job.as_str(), &limit, STALE_S, &wait_ms, &bundle, &room];
    words.extend(requested.iter().map(String::as_str));
    let timeout = sandy.timing.command.saturating_add(wait);
    let mut lines = match RUN.run_within(sandy, sandbox, &words, timeout, BTreeMap::new()).await {
        Err(JobError::Sandy(SandyError::OverLimit(_))) => return over_limit(sandy, sandbox, job, spec).await,
        lines => lines?,
    };
    let results = lines.split_off(1);
    let status: Vec<&str> = lines.iter().flatten().map(String::as_str).collect();
    let status = read_status(sandy, sandbox, job, &status).await?.ok_or_else(|| RUN.unexpected_answer())?;
    match status.once_started() {
        JobStatus::Over(JobEnd::OverLimit) => over_limit(sandy, sandbox, job, spec).await,
        JobStatus::Over(end) => read_sent(sandy, sandbox, job, spec, end, results).await.map(RunStatus::Over),
        JobStatus::NotStarted | JobStatus::Running { .. } => Ok(RunStatus::Running),
    }
}

async fn over_limit(
    sandy: &Sandy,
    sandbox: &str,
    job: &JobName,
    spec: &JobSpec,
) -> Result<RunStatus, JobError> {
    harvest(sandy, sandbox, job, spec, JobEnd::OverLimit).await.map(RunStatus::Over)
}
