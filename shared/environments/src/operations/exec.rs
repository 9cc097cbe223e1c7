//! Runs commands in containers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::operation::{Operation, OperationResult, sealed::Program};
use crate::program;
use crate::{Environment, EnvironmentError};

/// Default limit of the kept output, in bytes.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// Maximum that a limit of the kept output may be, in bytes.
const OUTPUT_BYTES_LIMIT: usize = 2 << 20;
/// Time that the engine has to start a command, before the command's own time limit begins. The programs know it, too.
pub(super) const COMMAND_START_MAX: Duration = Duration::from_secs(20);

/// Runs a command in a container, with an empty standard input. At its time limit, the command's process group is killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// Id of the container.
    pub container: String,
    /// Program and arguments. The container needs `sh`.
    pub command: Vec<String>,
    /// User name or id; the image's user if `None`.
    pub user: Option<String>,
    /// Folder to run it in; the image's if `None`.
    pub workdir: Option<String>,
    /// Variables in addition to those of the container.
    pub env: BTreeMap<String, String>,
    /// Time limit. It begins when the engine has started the command, or after 20 s.
    pub time_limit: Duration,
    /// Maximum number of bytes that any container of the environment may have written to its own file system, volumes
    /// excluded; `None` for no limit. Checked every few seconds while the command runs.
    pub disk_bytes_max: Option<u64>,
    /// Maximum number of bytes to keep of standard output: its beginning and its end.
    pub stdout_bytes_max: usize,
    /// The same for standard error.
    pub stderr_bytes_max: usize,
}

impl Exec {
    /// Creates a command for `sh`, as the image's user in the image's folder, with 64 KiB of each output.
    pub fn shell(container: impl Into<String>, command: impl Into<String>, time_limit: Duration) -> Self {
        Self {
            container: container.into(),
            command: vec!["sh".to_owned(), "-c".to_owned(), command.into()],
            user: None,
            workdir: None,
            env: BTreeMap::new(),
            time_limit,
            disk_bytes_max: None,
            stdout_bytes_max: OUTPUT_BYTES_MAX,
            stderr_bytes_max: OUTPUT_BYTES_MAX,
        }
    }

    /// Returns the request of the program.
    pub(super) fn to_request(&self, environment: &Environment) -> Result<Value, EnvironmentError> {
        let invalid = |what: &str| Err(EnvironmentError::Invalid(what.to_owned()));
        let texts =
            [&self.user, &self.workdir].into_iter().flatten().chain(&self.command).chain(self.env.values());
        if self.command.is_empty() || texts.into_iter().any(|text| text.contains('\0')) {
            return invalid("the command is empty, or has a NUL character");
        }
        if self.env.keys().any(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return invalid("a variable has no valid name");
        }
        let is_option = |text: &Option<String>| text.as_ref().is_some_and(|text| text.starts_with('-'));
        if !is_container(&self.container) || is_option(&self.user) || is_option(&self.workdir) {
            return invalid("the container, user or folder is not a valid one");
        }
        Ok(json!({
            "project": environment.name, "container": self.container, "command": self.command, "user": self.user,
            "workdir": self.workdir, "env": self.env, "limit_ms": millis(self.time_limit),
            "disk_bytes_max": self.disk_bytes_max,
            "stdout_bytes_max": self.stdout_bytes_max.min(OUTPUT_BYTES_LIMIT),
            "stderr_bytes_max": self.stderr_bytes_max.min(OUTPUT_BYTES_LIMIT),
        }))
    }
}

/// Kept output: its beginning and its end. Bytes that aren't UTF-8 are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The beginning.
    pub head: String,
    /// The end; empty if the beginning is all.
    pub tail: String,
    /// Number of bytes between them that were dropped.
    pub omitted: u64,
}

impl Kept {
    /// Returns the output, with a line about what was dropped.
    pub fn text(&self) -> String {
        match self.omitted {
            0 => format!("{}{}", self.head, self.tail),
            omitted => format!("{}\n[… {omitted} bytes omitted …]\n{}", self.head, self.tail),
        }
    }
}

/// Result of [`Exec`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecResult {
    /// Exit code; `None` if the time limit ended it. 126 or 127 if it could not be started.
    pub exit_code: Option<i32>,
    /// False if the engine could not start it, for example without such a user or folder: the output says why.
    pub started: bool,
    /// Standard output.
    pub stdout: Kept,
    /// Standard error.
    pub stderr: Kept,
    /// Run time in milliseconds.
    pub elapsed_ms: u64,
}

impl ExecResult {
    /// Returns true if the time limit ended it.
    pub fn is_timed_out(&self) -> bool {
        self.exit_code.is_none()
    }
}

impl Program for Exec {
    fn program(&self) -> &'static str {
        program::EXEC
    }

    fn request(&self, environment: &Environment) -> Result<Value, EnvironmentError> {
        self.to_request(environment)
    }

    fn time_limit(&self) -> Duration {
        self.time_limit
    }
}

impl Operation for Exec {
    type Output = ExecResult;

    fn read(&self, done: Value, result: &OperationResult<'_>) -> Result<ExecResult, EnvironmentError> {
        result.parse(done)
    }
}

/// Returns true for a container's id.
pub(super) fn is_container(id: &str) -> bool {
    (12..=128).contains(&id.len()) && id.chars().all(|c| c.is_ascii_hexdigit())
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
