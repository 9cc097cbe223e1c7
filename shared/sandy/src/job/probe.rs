//! Checks what a sandbox provides for a job.

use std::time::Duration;

use bench_domain::JobSpec;

use super::JobError;
use crate::{ExecRequest, Sandy};

/// Time limit for checking what a sandbox provides. Python packages are slow to import the first time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of characters of the list of what a sandbox lacks.
const LACKING_CHARS_MAX: usize = 300;

/// Runs the job's probe, which can safely be repeated. Called before anything untrusted is copied in: later, what is
/// missing may be its own doing.
///
/// # Errors
/// [`JobError::MissingPackages`] with the probe's sentence if the sandbox lacks something, and errors of the host.
pub async fn probe(sandy: &Sandy, sandbox: &str, spec: &JobSpec) -> Result<(), JobError> {
    let Some(probe) = &spec.probe else { return Ok(()) };
    let command = ExecRequest::new(probe.as_str()).repeatable().within(PROBE_TIMEOUT);
    let output = sandy.exec(sandbox, &command).await?;
    if output.exit_code == 0 {
        return Ok(());
    }
    let missing = output.stdout.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let missing: String = missing.take(LACKING_CHARS_MAX).collect();
    Err(JobError::MissingPackages(match missing.is_empty() {
        true => "the sandbox has no python3 that works".to_owned(),
        false => missing,
    }))
}
