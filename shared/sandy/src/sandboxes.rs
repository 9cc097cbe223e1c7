//! Calls to create, use and end sandboxes.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{ANSWER_BYTES_MAX, Call, FailedCall, json};
use crate::error::{says_gone, says_not_ready};
use crate::id::check_id;
use crate::read::Fields;
use crate::{Sandy, SandyError, SandyErrorKind};

const CREATE_TRIES: u32 = 3;
const EXEC_TRIES: u32 = 3;
const WRITE_TRIES: u32 = 3;
const TERMINATE_TRIES: u32 = 2;
const EXISTS_TRIES: u32 = 2;
/// Maximum length of a file's path, in bytes.
const PATH_BYTES_MAX: usize = 1_024;
/// Lowest priority, which all benchmarks use.
const PRIORITY_LOW: u8 = 3;

/// Request for a sandbox. The default is what all benchmarks use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSandbox {
    /// Priority: 0 critical, 1 high, 2 normal, 3 low.
    pub priority: u8,
    /// If true, the service may end the sandbox when it needs its resources.
    pub preemptable: bool,
    /// If true, programs in the sandbox get access to a container engine, which means control over the host.
    #[serde(rename = "enableDockerSocket", skip_serializing_if = "std::ops::Not::not")]
    pub docker_socket: bool,
    /// Host of the service that should create it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
}

impl Default for NewSandbox {
    fn default() -> Self {
        Self { priority: PRIORITY_LOW, preemptable: true, docker_socket: false, upstream: None }
    }
}

/// A command to run in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecRequest {
    /// Command line for a shell.
    pub command: String,
    /// Folder to run it in; the working folder if `None`.
    pub cwd: Option<String>,
    /// Environment variables, besides those that every command has. Must not contain secrets.
    pub env: BTreeMap<String, String>,
    /// Time limit, after which the service ends the command.
    pub timeout: Duration,
    /// True if the command can safely run twice, even concurrently. Only then the client repeats a call with an unknown
    /// outcome.
    pub is_repeatable: bool,
    /// Size limit of the answer, in bytes of JSON: standard output and standard error together.
    pub answer_bytes_max: usize,
}

impl ExecRequest {
    /// Creates a command that must not run twice, with a time limit of 30 s and an answer of up to 1 MiB.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            cwd: None,
            env: BTreeMap::new(),
            timeout: Duration::from_secs(30),
            is_repeatable: false,
            answer_bytes_max: ANSWER_BYTES_MAX,
        }
    }

    /// Marks the command as safe to run twice.
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { is_repeatable: true, ..self }
    }

    /// Sets the time limit.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }
}

/// Body of a request to run a command. Borrows the command, which may be long.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExecBody<'a> {
    command: &'a str,
    timeout_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: &'a BTreeMap<String, String>,
}

/// Result of a command that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutput {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Exit code.
    pub exit_code: i32,
}

impl Sandy {
    /// Creates a sandbox and returns its id.
    ///
    /// Repeats the call only if the connection failed. After any other failure, the sandbox may exist, and the client
    /// can't end a sandbox whose id was lost. Time limit 90 s.
    pub async fn create(&self, new: &NewSandbox) -> Result<String, SandyError> {
        let body = serde_json::to_vec(new).map_err(|error| SandyError::Shape(error.to_string()))?;
        let timeout = self.timing.create;
        let call =
            Call { method: Method::POST, path: &["sandboxes"], query: &[], body: Some(body.into()), timeout };
        self.with_retries(
            CREATE_TRIES,
            |failed| !failed.was_sent && is_transient(failed),
            || async {
                let response = self.send(&call).await?;
                let response = self.check_status(response, timeout, false).await?;
                let answer: Value = json(response, ANSWER_BYTES_MAX, timeout).await?;
                match answer.get("sandboxId") {
                    Some(Value::String(id)) if !id.trim().is_empty() => {
                        check_id(id).map_err(|_| {
                            FailedCall::sent(SandyError::Shape("sandboxId is not a valid id".to_owned()))
                        })?;
                        Ok(id.clone())
                    }
                    None | Some(Value::Null | Value::String(_)) => {
                        Err(FailedCall::sent(SandyError::NoSandboxId))
                    }
                    Some(_) => {
                        Err(FailedCall::sent(SandyError::Shape("sandboxId is not a string".to_owned())))
                    }
                }
            },
        )
        .await
    }

    /// Runs a command until it ends. The call's time limit is the command's plus 30 s, at least 60 s.
    ///
    /// Repeats a command that isn't repeatable only if the connection failed.
    pub async fn exec(&self, sandbox: &str, exec: &ExecRequest) -> Result<ExecOutput, SandyError> {
        check_id(sandbox)?;
        let millis = u64::try_from(exec.timeout.as_millis()).unwrap_or(u64::MAX);
        let body =
            ExecBody { command: &exec.command, timeout_ms: millis, cwd: exec.cwd.as_deref(), env: &exec.env };
        let body = serde_json::to_vec(&body).map_err(|error| SandyError::Shape(error.to_string()))?;
        let timeout = exec.timeout.saturating_add(self.timing.exec_margin).max(self.timing.exec_min);
        let path = ["sandboxes", sandbox, "exec"];
        let body = Some(body.into());
        let call = Call { method: Method::POST, path: &path, query: &[], body, timeout };
        let may_repeat =
            |failed: &FailedCall| is_transient(failed) && (exec.is_repeatable || !failed.was_sent);
        self.with_retries(EXEC_TRIES, may_repeat, || async {
            let response = self.send_to_sandbox(&call).await?;
            let answer: Value = json(response, exec.answer_bytes_max, timeout).await?;
            read_output(&answer).map_err(FailedCall::sent)
        })
        .await
    }

    /// Writes a text file. A relative path is within the working folder. Time limit 30 s; repeated after transient
    /// errors.
    pub async fn write_file(&self, sandbox: &str, path: &str, text: &str) -> Result<(), SandyError> {
        check_id(sandbox)?;
        if path.is_empty() || path.len() > PATH_BYTES_MAX || path.chars().any(char::is_control) {
            return Err(SandyError::BadPath);
        }
        let body = Some(json!({ "path": path, "content": text }).to_string().into());
        let (parts, timeout) = (["sandboxes", sandbox, "files", "write"], self.timing.write);
        let call = Call { method: Method::POST, path: &parts, query: &[], body, timeout };
        self.with_retries(WRITE_TRIES, is_transient, || async { self.send_to_sandbox(&call).await.map(drop) })
            .await
    }

    /// Ends a sandbox. Succeeds if it no longer exists. Time limit 30 s; repeated once.
    pub async fn terminate(&self, sandbox: &str) -> Result<(), SandyError> {
        check_id(sandbox)?;
        let (path, timeout) = (["sandboxes", sandbox, "terminate"], self.timing.terminate);
        let call = Call { method: Method::POST, path: &path, query: &[], body: None, timeout };
        let ended = self
            .with_retries(TERMINATE_TRIES, is_transient, || async {
                self.send_to_sandbox(&call).await.map(drop)
            })
            .await;
        match ended {
            Err(SandyError::Gone | SandyError::OverLimit(_)) => Ok(()),
            ended => ended,
        }
    }

    /// Returns true if a sandbox exists. Time limit 10 s; repeated once.
    ///
    /// # Errors
    /// If the service doesn't answer the question.
    pub async fn exists(&self, sandbox: &str) -> Result<bool, SandyError> {
        check_id(sandbox)?;
        let (path, timeout) = (["sandboxes", sandbox], self.timing.exists);
        let call = Call { method: Method::GET, path: &path, query: &[], body: None, timeout };
        let seen = self
            .with_retries(EXISTS_TRIES, is_transient, || async {
                let response = self.send(&call).await?;
                match response.status() {
                    StatusCode::NOT_FOUND => Ok(false),
                    _ => self.check_status(response, timeout, true).await.map(|_| true),
                }
            })
            .await;
        match seen {
            Err(SandyError::Gone) => Ok(false),
            seen => seen,
        }
    }
}

/// Returns true if a retry may succeed soon.
fn is_transient(failed: &FailedCall) -> bool {
    matches!(failed.error.kind(), SandyErrorKind::Transient | SandyErrorKind::Busy)
}

fn read_output(answer: &Value) -> Result<ExecOutput, SandyError> {
    let fields = Fields::new(answer, "it")?;
    let stdout = fields.long_text("stdout")?.unwrap_or_default();
    let stderr = fields.long_text("stderr")?.unwrap_or_default();
    let Some(code) = fields.integer("exitCode")? else {
        let text = fields.long_text("error")?.unwrap_or_default();
        return Err(match () {
            () if says_gone(&text) => SandyError::Gone,
            () if says_not_ready(&text) || says_not_ready(&stderr) => SandyError::NotReady,
            () => SandyError::NoExitCode,
        });
    };
    let exit_code =
        i32::try_from(code).map_err(|_| SandyError::Shape("exitCode is not an exit code".to_owned()))?;
    // A command that produced output was run, whatever its standard error says.
    if exit_code != 0 && stdout.is_empty() && says_not_ready(&stderr) {
        return Err(SandyError::NotReady);
    }
    Ok(ExecOutput { stdout, stderr, exit_code })
}
