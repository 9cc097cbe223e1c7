//! Using a sandbox: commands and files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

use super::entry::{Entry, InUse};
use super::life::shown_id;
use super::making::shut_down;
use super::room::SlotAnswer;
use super::{HostError, SandboxHost};
use crate::isolation::{Exec, IsolationError};

/// Bytes of a command: the kernel takes no longer argument.
const COMMAND_BYTES_MAX: usize = 128 * 1024 - 1;
/// Bytes of all variables of a command together.
const ENV_BYTES_MAX: usize = 128 * 1024;
/// Variables of a command.
const ENV_ENTRIES_MAX: usize = 256;
/// Bytes of a path.
const PATH_BYTES_MAX: usize = 4_095;
/// Exit code of a command whose time was up, as `timeout` has it.
const EXIT_TIMED_OUT: i32 = 124;

/// A command that is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecAsk {
    /// Given to `bash -c`; at most 128 KiB.
    pub command: String,
    /// Folder, `/workspace` unless said otherwise.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Variables beside those that every command has. `SANDY_ALLOW_LANDLOCK=1` allows Landlock to the command, which others
    /// lack where no cgroup counts memory.
    #[serde(default)]
    pub env: Option<BTreeMap<String, String>>,
    /// How long it may take, in milliseconds; the host's default where it is not said.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecView {
    /// Beginning of its standard output; what is no UTF-8 is replaced.
    pub stdout: String,
    /// Beginning of its standard error; what is no UTF-8 is replaced.
    pub stderr: String,
    /// Its exit code, always there: 128 + N by signal N, 124 when its time was up.
    pub exit_code: i32,
    /// Whether its time was up.
    pub timed_out: bool,
    /// Bytes of either output that were dropped.
    pub dropped_bytes: u64,
    /// How long it took, in milliseconds; waiting for a slot is not counted.
    pub duration_ms: u64,
}

impl SandboxHost {
    /// Runs a command to its end, or until its time is up. It goes on when the call is dropped: whoever lost the connection
    /// and asks again may run it twice.
    ///
    /// # Errors
    /// [`HostError::Gone`] also when the sandbox ends while the command runs, [`HostError::Full`] when its slot is lent and
    /// none came free in time (then nothing was run), [`HostError::TooMany`] for too many at once,
    /// [`HostError::Invalid`], [`HostError::Failed`].
    pub async fn exec(&self, id: &str, asked: ExecAsk) -> Result<ExecView, HostError> {
        let exec = self.exec_of(id, asked)?;
        let (entry, in_use) = self.entry_for_use(id).await?;
        match self.wait_for_slot(&entry).await {
            Err(HostError::Gone(_)) => return Err(self.lost(&entry).await),
            waited => waited?,
        }
        tracing::debug!(sandbox.id = id, command = exec.command, "Running a command in sandbox {id}");
        let used = entry.clone();
        let task = self.tasks.spawn_on(
            async move {
                let _in_use = in_use;
                let started = Instant::now();
                let output = tokio::select! {
                    biased;
                    // A command that was killed with its sandbox says nothing of value.
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
            Err(IsolationError::Gone) => return Err(self.lost(&used).await),
            ran => ran.map_err(|error| HostError::of_sandbox(error, &shown_id(id)))?,
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

    /// Writes a file in the working folder, and the folders above it; an older one is replaced.
    ///
    /// # Errors
    /// [`HostError::Gone`], [`HostError::Invalid`] for a path that leads elsewhere, [`HostError::Conflict`] when it cannot
    /// be written, [`HostError::Failed`].
    pub async fn write_file(&self, id: &str, path: &str, content: &[u8]) -> Result<(), HostError> {
        if path.is_empty() || path.len() > PATH_BYTES_MAX || path.contains('\0') {
            return Err(HostError::Invalid(format!(
                "The path has between 1 and {PATH_BYTES_MAX} bytes, none of them NUL."
            )));
        }
        // Nothing of it takes long: no slot is needed.
        let (entry, _in_use) = self.entry_for_use(id).await?;
        let written = entry.sandbox.write(path, content).await;
        if entry.ended.is_cancelled() || written == Err(IsolationError::Gone) {
            return Err(self.lost(&entry).await);
        }
        written.map_err(|error| HostError::of_sandbox(error, &shown_id(id)))
    }

    async fn entry_for_use(&self, id: &str) -> Result<(Arc<Entry>, InUse), HostError> {
        let entry = self.entry(id).await?;
        let in_use = entry.in_use();
        let running = entry.activity().running;
        if running > self.config.execs_max {
            return Err(HostError::TooMany(format!(
                "{} commands run in this sandbox already: wait for one of them.",
                self.config.execs_max
            )));
        }
        Ok((entry, in_use))
    }

    /// Waits until the sandbox has a slot, which it has unless it was idle and lent it.
    async fn wait_for_slot(&self, entry: &Arc<Entry>) -> Result<(), HostError> {
        let gone = || HostError::Gone(shown_id(&entry.id));
        let granted = self.change_room(|room| {
            if room.waiting() > 0 && !room.has_slot(entry.number()) {
                self.check_waiting(room)?;
            }
            match room.wish_slot(entry.number()) {
                SlotAnswer::Has => Ok(None),
                SlotAnswer::Wait(granted) => Ok(Some(granted)),
                SlotAnswer::Gone => Err(gone()),
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
            Ok(Err(_)) => Err(shut_down()),
            Err(_) => Err(HostError::Full {
                reason: format!(
                    "This sandbox was idle and lent its slot; none came free within {} s. Nothing was run.",
                    self.config.create_wait.as_secs()
                ),
                retry_after: Duration::from_secs(5),
            }),
        }
    }

    /// The command as it is run, if it can be.
    fn exec_of(&self, id: &str, asked: ExecAsk) -> Result<Exec, HostError> {
        let invalid = |text: String| Err(HostError::Invalid(text));
        if asked.command.trim().is_empty() {
            return invalid("The command is empty.".to_owned());
        }
        if asked.command.len() > COMMAND_BYTES_MAX {
            return invalid(format!(
                "The command has more than {COMMAND_BYTES_MAX} bytes: write it into a file and run that."
            ));
        }
        if asked.command.contains('\0') {
            return invalid("The command contains NUL, which no command can.".to_owned());
        }
        let cwd = asked.cwd.filter(|cwd| !cwd.is_empty());
        if cwd.as_ref().is_some_and(|cwd| cwd.len() > PATH_BYTES_MAX || cwd.contains('\0')) {
            return invalid(format!("cwd has at most {PATH_BYTES_MAX} bytes, none of them NUL."));
        }
        let mut env = asked.env.unwrap_or_default();
        let bytes: usize = env.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        if env.len() > ENV_ENTRIES_MAX || bytes > ENV_BYTES_MAX {
            return invalid(format!("env has at most {ENV_ENTRIES_MAX} entries and {ENV_BYTES_MAX} bytes."));
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
        let timeout = match asked.timeout_ms {
            None => self.config.exec_timeout,
            Some(0) => return invalid("timeoutMs is at least 1.".to_owned()),
            // It ends with its sandbox at the latest.
            Some(ms) => Duration::from_millis(ms).min(self.config.lease_max),
        };
        let output_bytes_max = self.config.output_bytes_max;
        Ok(Exec { command: asked.command, cwd, env, timeout, output_bytes_max })
    }
}
