//! Types keystrokes into a terminal of a container, and captures the terminal.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SHORT;
use super::exec::{Exec, millis};
use crate::operation::{Operation, OperationResult, sealed::Program};
use crate::program;
use crate::{Environment, EnvironmentError};

/// Beginning of the line between history and screen.
const MARK: &str = "bench-runner-capture";

/// Types keystrokes one after the other, waits after each, and captures the terminal. The commands are those of the
/// program that keeps the terminal, which the container needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeKeys {
    /// Id of the container.
    pub container: String,
    /// User name or id; the image's user if `None`.
    pub user: Option<String>,
    /// Folder of the commands; the image's if `None`.
    pub workdir: Option<String>,
    /// Variables in addition to those of the container.
    pub env: BTreeMap<String, String>,
    /// Keystrokes in order. After one that fails, no more are typed.
    pub strokes: Vec<Stroke>,
    /// Command that succeeds while the terminal lives.
    pub check: String,
    /// Command that prints everything that the terminal has shown. Of more than 8 MiB, the end is returned.
    pub history: String,
    /// Command that prints what it shows now.
    pub screen: String,
    /// Maximum number of bytes that any container of the environment may have written to its own file system; `None` for no
    /// limit.
    pub disk_bytes_max: Option<u64>,
}

/// Keystrokes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stroke {
    /// Shell commands that type them.
    pub commands: Vec<String>,
    /// Time between the beginning of typing and what follows.
    pub wait: Duration,
    /// Time limit of each command.
    pub limit: Duration,
}

impl Stroke {
    /// Creates keystrokes whose commands end at once.
    pub fn new(commands: Vec<String>, wait: Duration) -> Self {
        Self { commands, wait, limit: SHORT / 2 }
    }
}

/// Result of [`TypeKeys`]. Its texts are untrusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// False if the terminal is gone.
    pub alive: bool,
    /// Number of keystrokes that were typed.
    pub typed: usize,
    /// Everything that the terminal has shown.
    pub history: String,
    /// What it shows now.
    pub screen: String,
    /// Time of the whole operation in milliseconds.
    pub elapsed_ms: u64,
}

impl Program for TypeKeys {
    fn program(&self) -> &'static str {
        program::TYPE_KEYS
    }

    fn request(&self, environment: &Environment) -> Result<Value, EnvironmentError> {
        let commands = self.strokes.iter().flat_map(|stroke| &stroke.commands);
        if commands.chain([&self.check, &self.history, &self.screen]).any(|text| text.contains('\0')) {
            return Err(EnvironmentError::Invalid("a command has a NUL character".to_owned()));
        }
        // Checks container, user, folder and variables, and describes them.
        let common = Exec {
            user: self.user.clone(),
            workdir: self.workdir.clone(),
            env: self.env.clone(),
            disk_bytes_max: self.disk_bytes_max,
            ..Exec::shell(self.container.as_str(), "true", SHORT)
        };
        let mut request = common.to_request(environment)?;
        let strokes = self.strokes.iter();
        let strokes: Vec<Value> = strokes
            .map(|stroke| {
                let (wait, limit) = (millis(stroke.wait), millis(stroke.limit));
                json!({ "commands": stroke.commands, "wait_ms": wait, "limit_ms": limit })
            })
            .collect();
        for (name, value) in [
            ("strokes", Value::from(strokes)),
            ("check", self.check.as_str().into()),
            ("history", self.history.as_str().into()),
            ("screen", self.screen.as_str().into()),
            ("mark", MARK.into()),
        ] {
            request[name] = value;
        }
        Ok(request)
    }

    fn time_limit(&self) -> Duration {
        let of_stroke = |stroke: &Stroke| {
            let commands = u32::try_from(stroke.commands.len()).unwrap_or(u32::MAX);
            stroke.wait.saturating_add(stroke.limit.saturating_mul(commands))
        };
        self.strokes.iter().map(of_stroke).fold(2 * SHORT, Duration::saturating_add)
    }
}

impl Operation for TypeKeys {
    type Output = Captured;

    fn read(&self, done: Value, result: &OperationResult<'_>) -> Result<Captured, EnvironmentError> {
        result.parse(done)
    }
}
