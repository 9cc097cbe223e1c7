//! One sandbox after the other: made, used, ended.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{ANSWER_BYTES_MAX, Call, Failed, json};
use crate::error::{says_gone, says_not_ready};
use crate::id::check_id;
use crate::read::Fields;
use crate::{Sandy, SandyError, SandyErrorKind};

const CREATE_TRIES: u32 = 3;
const EXEC_TRIES: u32 = 3;
const WRITE_TRIES: u32 = 3;
const TERMINATE_TRIES: u32 = 2;
const EXISTS_TRIES: u32 = 2;
/// Longest path of a file, in bytes.
const PATH_BYTES_MAX: usize = 1_024;
/// Least priority, which every benchmark has.
const PRIORITY_LOW: u8 = 3;

/// What kind of sandbox is asked for. The default is what every benchmark asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSandbox {
    /// 0 critical, 1 high, 2 normal, 3 low.
    pub priority: u8,
    /// Whether the service may end it when it needs the room.
    pub preemptable: bool,
    /// Whether it is given a container engine. That is control over its host.
    #[serde(rename = "enableDockerSocket", skip_serializing_if = "std::ops::Not::not")]
    pub docker_socket: bool,
    /// Which of the service's hosts makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
}

impl Default for NewSandbox {
    fn default() -> Self {
        Self { priority: PRIORITY_LOW, preemptable: true, docker_socket: false, upstream: None }
    }
}

/// A command for a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecRequest {
    /// Given to a shell.
    pub command: String,
    /// Folder; the working folder when `None`.
    pub cwd: Option<String>,
    /// Variables beside those that every command has. No secret belongs here.
    pub env: BTreeMap<String, String>,
    /// After so long the service ends it.
    pub timeout: Duration,
    /// Whether it does no harm when it is run twice, also at the same time. Only then a call whose fate is unknown
    /// is repeated.
    pub is_repeatable: bool,
    /// Longest answer that is taken, in bytes of JSON: standard output and standard error together.
    pub answer_bytes_max: usize,
}

impl ExecRequest {
    /// A command that must not be run twice, with a time limit of 30 s and an answer of up to 1 MiB.
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

    /// The same command, which does no harm when it is run twice.
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { is_repeatable: true, ..self }
    }

    /// The same command with another time limit.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }
}

/// What came of a command. It was run; whether it did what it should is in its exit code.
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
    /// A new sandbox; gives its id.
    ///
    /// Repeated only while no connection comes about: of any other failure it is unknown whether a sandbox was made,
    /// and one whose id was lost cannot be ended by us. Time limit 90 s.
    pub async fn create(&self, new: &NewSandbox) -> Result<String, SandyError> {
        let body = serde_json::to_vec(new).map_err(|error| SandyError::Shape(error.to_string()))?;
        let timeout = self.timing.create;
        let call = Call { method: Method::POST, path: &["sandboxes"], query: &[], body: Some(body), timeout };
        self.repeated(
            CREATE_TRIES,
            |failed| !failed.was_sent && is_passing(failed),
            || async {
                let response = self.send(&call).await?;
                let response = self.success(response, timeout, false).await?;
                let answer: Value = json(response, ANSWER_BYTES_MAX, timeout).await?;
                match answer.get("sandboxId") {
                    Some(Value::String(id)) if !id.trim().is_empty() => {
                        check_id(id)
                            .map_err(|_| Failed::sent(SandyError::Shape("sandboxId is no id".to_owned())))?;
                        Ok(id.clone())
                    }
                    None | Some(Value::Null | Value::String(_)) => Err(Failed::sent(SandyError::NoSandboxId)),
                    Some(_) => Err(Failed::sent(SandyError::Shape("sandboxId is not a text".to_owned()))),
                }
            },
        )
        .await
    }

    /// Runs a command to its end. The call's time limit is the command's and 30 s, at least 60 s.
    ///
    /// A command that is not repeatable is sent again only while no connection comes about.
    pub async fn exec(&self, sandbox: &str, exec: &ExecRequest) -> Result<ExecOutput, SandyError> {
        check_id(sandbox)?;
        let millis = u64::try_from(exec.timeout.as_millis()).unwrap_or(u64::MAX);
        let mut body = json!({ "command": exec.command, "timeoutMs": millis });
        if let Some(cwd) = &exec.cwd {
            body["cwd"] = json!(cwd);
        }
        if !exec.env.is_empty() {
            body["env"] = json!(exec.env);
        }
        let timeout = exec.timeout.saturating_add(self.timing.exec_margin).max(self.timing.exec_least);
        let path = ["sandboxes", sandbox, "exec"];
        let body = Some(body.to_string().into_bytes());
        let call = Call { method: Method::POST, path: &path, query: &[], body, timeout };
        let may_repeat = |failed: &Failed| is_passing(failed) && (exec.is_repeatable || !failed.was_sent);
        self.repeated(EXEC_TRIES, may_repeat, || async {
            let response = self.send_to_sandbox(&call).await?;
            let answer: Value = json(response, exec.answer_bytes_max, timeout).await?;
            read_output(&answer).map_err(Failed::sent)
        })
        .await
    }

    /// Writes a text file. A relative path is within the working folder. Time limit 30 s; repeated where that helps.
    pub async fn write_file(&self, sandbox: &str, path: &str, text: &str) -> Result<(), SandyError> {
        check_id(sandbox)?;
        if path.is_empty() || path.len() > PATH_BYTES_MAX || path.chars().any(char::is_control) {
            return Err(SandyError::BadPath);
        }
        let body = Some(json!({ "path": path, "content": text }).to_string().into_bytes());
        let (parts, timeout) = (["sandboxes", sandbox, "files", "write"], self.timing.write);
        let call = Call { method: Method::POST, path: &parts, query: &[], body, timeout };
        self.repeated(WRITE_TRIES, is_passing, || async { self.send_to_sandbox(&call).await.map(drop) }).await
    }

    /// Ends a sandbox. One that is no more counts as ended. Time limit 30 s; repeated once.
    pub async fn terminate(&self, sandbox: &str) -> Result<(), SandyError> {
        check_id(sandbox)?;
        let (path, timeout) = (["sandboxes", sandbox, "terminate"], self.timing.terminate);
        let call = Call { method: Method::POST, path: &path, query: &[], body: None, timeout };
        let ended = self
            .repeated(TERMINATE_TRIES, is_passing, || async { self.send_to_sandbox(&call).await.map(drop) })
            .await;
        match ended {
            Err(SandyError::Gone | SandyError::OverLimit(_)) => Ok(()),
            ended => ended,
        }
    }

    /// Whether a sandbox is there. Time limit 10 s; repeated once.
    ///
    /// # Errors
    /// When that cannot be told.
    pub async fn exists(&self, sandbox: &str) -> Result<bool, SandyError> {
        check_id(sandbox)?;
        let (path, timeout) = (["sandboxes", sandbox], self.timing.exists);
        let call = Call { method: Method::GET, path: &path, query: &[], body: None, timeout };
        let seen = self
            .repeated(EXISTS_TRIES, is_passing, || async {
                let response = self.send(&call).await?;
                match response.status() {
                    StatusCode::NOT_FOUND => Ok(false),
                    _ => self.success(response, timeout, true).await.map(|_| true),
                }
            })
            .await;
        match seen {
            Err(SandyError::Gone) => Ok(false),
            seen => seen,
        }
    }
}

/// Whether the same call may work soon.
fn is_passing(failed: &Failed) -> bool {
    matches!(failed.error.kind(), SandyErrorKind::Transient | SandyErrorKind::Busy)
}

fn read_output(answer: &Value) -> Result<ExecOutput, SandyError> {
    let fields = Fields::of(answer, "it")?;
    let stdout = fields.long_text("stdout")?.unwrap_or_default();
    let stderr = fields.long_text("stderr")?.unwrap_or_default();
    let Some(code) = fields.integer("exitCode")? else {
        let said = fields.long_text("error")?.unwrap_or_default();
        return Err(match () {
            () if says_gone(&said) => SandyError::Gone,
            () if says_not_ready(&said) || says_not_ready(&stderr) => SandyError::NotReady,
            () => SandyError::NoExitCode,
        });
    };
    let exit_code =
        i32::try_from(code).map_err(|_| SandyError::Shape("exitCode is no exit code".to_owned()))?;
    // A command that wrote something was run, whatever it says.
    if exit_code != 0 && stdout.is_empty() && says_not_ready(&stderr) {
        return Err(SandyError::NotReady);
    }
    Ok(ExecOutput { stdout, stderr, exit_code })
}
