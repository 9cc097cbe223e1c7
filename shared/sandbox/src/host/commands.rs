//! Runs commands and writes files in sandboxes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

use super::create::shutting_down;
use super::entry::{Entry, UseGuard};
use super::lifecycle::displayed_id;
use super::slot_pool::SlotGrant;
use super::{HostError, SandboxHost};
use crate::isolation::{Exec, IsolationError};

/// Maximum length of a command, in bytes, set by the kernel's limit for one argument.
const COMMAND_BYTES_MAX: usize = 128 * 1024 - 1;
/// Maximum length of all environment variables of a command together, in bytes.
const ENV_BYTES_MAX: usize = 128 * 1024;
/// Maximum number of environment variables of a command.
const ENV_ENTRIES_MAX: usize = 256;
/// Maximum length of a path, in bytes.
const PATH_BYTES_MAX: usize = 4_095;
/// Exit code of a command that ran out of time, as reported by `timeout`.
const EXIT_TIMED_OUT: i32 = 124;

/// Request to run a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecRequest {
    /// Command line for `bash -c`; at most 128 KiB.
    pub command: String,
    /// Working folder; `/workspace` if not set.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Environment variables, besides those that every command has. `SANDY_ALLOW_LANDLOCK=1` allows the command to use
    /// Landlock, which others can't use on machines where no cgroup counts memory.
    #[serde(default)]
    pub env: Option<BTreeMap<String, String>>,
    /// Time limit in milliseconds; the host's default if not set.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecView {
    /// Beginning of its standard output; invalid UTF-8 is replaced.
    pub stdout: String,
    /// Beginning of its standard error; invalid UTF-8 is replaced.
    pub stderr: String,
    /// Exit code: 128 + N if signal N ended it, 124 if it ran out of time.
    pub exit_code: i32,
    /// True if the command ran out of time.
    pub timed_out: bool,
    /// Number of bytes of both outputs that were dropped.
    pub dropped_bytes: u64,
    /// Duration in milliseconds, without the wait for a slot.
    pub duration_ms: u64,
}

impl SandboxHost {
    /// Runs a command until it ends or its time is up. The command keeps running if the call is dropped, so a caller
    /// that repeats it after a lost connection may run it twice.
    ///
    /// # Errors
    /// [`HostError::Gone`], also if the sandbox ends while the command runs; [`HostError::Full`] if the sandbox lent
    /// its slot and none became free in time (the command wasn't run); [`HostError::TooManyRequests`] if too many
    /// commands run; [`HostError::Invalid`]; [`HostError::Failed`].
    pub async fn exec(&self, id: &str, request: ExecRequest) -> Result<ExecView, HostError> {
        let exec = self.checked_exec(id, request)?;
        let (entry, use_guard) = self.entry_for_use(id).await?;
        match self.wait_for_slot(&entry).await {
            Err(HostError::Gone(_)) => return Err(self.lost_sandbox_error(&entry).await),
            waited => waited?,
        }
        tracing::debug!(sandbox.id = id, command = exec.command, "Running a command in sandbox {id}");
        let used = entry.clone();
        let task = self.tasks.spawn_on(
            async move {
                let _use_guard = use_guard;
                let started = Instant::now();
                let output = tokio::select! {
                    biased;
                    // The output of a command that was killed with its sandbox is of no use.
                    () = entry.ended.cancelled() => Err(IsolationError::Gone),
                    output = entry.sandbox.exec(&exec) => output,
                };
                if entry.ended.is_cancelled() || (output.is_ok() && entry.sandbox.is_over()) {
                    return Err(IsolationError::Gone);
                }
                output.map(|output| (output, started.elapsed()))
            },
            &self.runtime,
        );
        let ran = task.await.map_err(|_| HostError::Failed("Running the command failed.".to_owned()))?;
        let (output, took) = match ran {
            Err(IsolationError::Gone) => return Err(self.lost_sandbox_error(&used).await),
            ran => ran.map_err(|error| HostError::from_sandbox_error(error, &displayed_id(id)))?,
        };
        Ok(ExecView {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            exit_code: output.exit_code.unwrap_or(EXIT_TIMED_OUT),
            timed_out: output.exit_code.is_none(),
            dropped_bytes: output.dropped_bytes,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Writes a file in the working folder, creating the folders above it and replacing an existing file.
    ///
    /// # Errors
    /// [`HostError::Gone`]; [`HostError::Invalid`] for a path that leads out of the working folder;
    /// [`HostError::Conflict`] if the file can't be written; [`HostError::Failed`].
    pub async fn write_file(&self, id: &str, path: &str, content: &[u8]) -> Result<(), HostError> {
        if path.is_empty() || path.len() > PATH_BYTES_MAX || path.contains('\0') {
            return Err(HostError::Invalid(format!(
                "The path must have 1 to {PATH_BYTES_MAX} bytes, none of them NUL."
            )));
        }
        // Writing is quick, so it needs no slot.
        let (entry, _use_guard) = self.entry_for_use(id).await?;
        let written = entry.sandbox.write(path, content).await;
        if entry.ended.is_cancelled() || written == Err(IsolationError::Gone) {
            return Err(self.lost_sandbox_error(&entry).await);
        }
        written.map_err(|error| HostError::from_sandbox_error(error, &displayed_id(id)))
    }

    async fn entry_for_use(&self, id: &str) -> Result<(Arc<Entry>, UseGuard), HostError> {
        let entry = self.entry(id).await?;
        let use_guard = entry.begin_use();
        let running = entry.activity().running;
        if running > self.config.execs_max {
            return Err(HostError::TooManyRequests(format!(
                "{} commands are already running in this sandbox: wait for one of them.",
                self.config.execs_max
            )));
        }
        Ok((entry, use_guard))
    }

    /// Waits until the sandbox has a slot. It has one unless it was idle and lent it.
    async fn wait_for_slot(&self, entry: &Arc<Entry>) -> Result<(), HostError> {
        let gone = || HostError::Gone(displayed_id(&entry.id));
        let granted = self.update_slots(|slot_pool| {
            if slot_pool.waiting() > 0 && !slot_pool.has_slot(entry.holder_id()) {
                self.check_waiting(slot_pool)?;
            }
            match slot_pool.request_slot(entry.holder_id()) {
                SlotGrant::HasSlot => Ok(None),
                SlotGrant::Wait(granted) => Ok(Some(granted)),
                SlotGrant::Gone => Err(gone()),
            }
        })?;
        let Some(granted) = granted else { return Ok(()) };
        let granted = tokio::select! {
            () = entry.ended.cancelled() => return Err(gone()),
            granted = timeout(self.config.create_wait, granted) => granted,
        };
        match granted {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) if entry.ended.is_cancelled() => Err(gone()),
            Ok(Err(_)) => Err(shutting_down()),
            Err(_) => Err(HostError::Full {
                reason: format!(
                    "This sandbox was idle and lent its slot; none became free within {} s. The command was not run.",
                    self.config.create_wait.as_secs()
                ),
                retry_after: Duration::from_secs(5),
            }),
        }
    }

    /// Checks a request and converts it into the command to run.
    fn checked_exec(&self, id: &str, request: ExecRequest) -> Result<Exec, HostError> {
        let invalid = |text: String| Err(HostError::Invalid(text));
        if request.command.trim().is_empty() {
            return invalid("The command is empty.".to_owned());
        }
        if request.command.len() > COMMAND_BYTES_MAX {
            return invalid(format!(
                "The command has more than {COMMAND_BYTES_MAX} bytes: write it to a file and run that."
            ));
        }
        if request.command.contains('\0') {
            return invalid("The command contains a NUL byte.".to_owned());
        }
        let cwd = request.cwd.filter(|cwd| !cwd.is_empty());
        if cwd.as_ref().is_some_and(|cwd| cwd.len() > PATH_BYTES_MAX || cwd.contains('\0')) {
            return invalid(format!("cwd must have at most {PATH_BYTES_MAX} bytes, none of them NUL."));
        }
        let mut env = request.env.unwrap_or_default();
        let bytes: usize = env.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        if env.len() > ENV_ENTRIES_MAX || bytes > ENV_BYTES_MAX {
            return invalid(format!(
                "env must have at most {ENV_ENTRIES_MAX} entries and {ENV_BYTES_MAX} bytes."
            ));
        }
        let usable = |(name, value): (&String, &String)| {
            !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
        };
        if !env.iter().all(usable) {
            return invalid(
                "env has a name that is empty or contains `=`, or a value that contains NUL.".to_owned(),
            );
        }
        env.extend(self.config.env.clone());
        env.insert("SANDY_SANDBOX_ID".to_owned(), id.to_owned());
        env.insert("SANDY_ISOLATION".to_owned(), self.isolation.form().name.to_owned());
        let timeout = match request.timeout_ms {
            None => self.config.exec_timeout,
            Some(0) => return invalid("timeoutMs must be at least 1.".to_owned()),
            // No command outlives its sandbox.
            Some(ms) => Duration::from_millis(ms).min(self.config.lease_max),
        };
        let output_bytes_max = self.config.output_bytes_max;
        Ok(Exec { command: request.command, cwd, env, timeout, output_bytes_max })
    }
}
