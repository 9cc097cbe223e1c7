//! A running environment, and commands in it.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_environments::{
    CheckHealth, Environment, Exec, ExecResult, FetchFiles, PutFiles, Started, TaskFile,
};
use bench_terminal_tasks::{HealthCheck, NetworkPolicy, Step, User, VerifierEnvironment};
use serde::{Deserialize, Serialize};

use crate::program::Program;
use crate::stop::{Phase, Stop};

/// Name of the superuser in containers.
pub(super) const ROOT: &str = "0";
/// Time limit of small commands of this program.
const SHORT: Duration = Duration::from_secs(60);
/// Limits of fetched files.
const FILE_BYTES_MAX: u64 = 16 << 20;
pub(super) const FILES_BYTES_MAX: u64 = 32 << 20;
/// Maximum number of files in a folder of artifacts that a separate verifier gets.
pub(super) const ARTIFACT_FILES_MAX: u32 = 10_000;
/// Maximum number of characters of the output that explains a failed start.
const WHY_CHARS_MAX: usize = 500;

/// Script that runs the command line after it. Tasks are written for bash, with which Harbor runs their commands; an image
/// without it runs them by `sh`.
const BASH: &str = "command -v bash > /dev/null 2>&1 && exec bash -c \"$0\"; exec sh -c \"$0\"";

/// A running environment.
pub(crate) struct Container {
    pub(crate) environment: Environment,
    pub(super) started: Started,
    /// Service in which commands run.
    pub(super) service: String,
    /// Id of that service's container.
    pub(super) id: String,
    /// Variables of all commands.
    pub(super) env: BTreeMap<String, String>,
    /// Folder of all commands; `None` for the image's.
    pub(super) workdir: Option<String>,
    /// Maximum number of bytes that a container may write to its file system.
    pub(super) disk_bytes_max: u64,
    /// Network access outside of phases that have their own.
    pub(super) network: NetworkPolicy,
    /// True if the container was started with a network, which phases can take away.
    pub(super) has_network: bool,
    /// Number of changes of the network so far, which name them.
    pub(super) switches: u32,
    /// True if the network is connected now.
    pub(super) is_connected: bool,
}

/// Command of a phase.
pub(super) struct Command<'a> {
    pub(super) line: &'a str,
    pub(super) user: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) time_limit: Duration,
    pub(super) phase: Phase,
}

/// End of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ended {
    /// Exit code; `None` if the time limit ended it.
    pub(super) exit_code: Option<i32>,
    /// Explanation of the engine, if it could not start the command.
    pub(super) not_started: Option<String>,
    /// Last line that a failed command wrote, errors first; empty if it wrote nothing.
    #[serde(default)]
    pub(super) last_line: String,
    pub(super) elapsed_ms: u64,
}

impl From<ExecResult> for Ended {
    fn from(result: ExecResult) -> Self {
        let why = || {
            format!("{}{}", result.stderr.text(), result.stdout.text())
                .trim()
                .chars()
                .take(WHY_CHARS_MAX)
                .collect()
        };
        let last_of = |text: String| {
            let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
            line.map(|line| line.chars().take(WHY_CHARS_MAX).collect::<String>())
        };
        let last_line = match result.exit_code {
            Some(0) => None,
            _ => last_of(result.stderr.text()).or_else(|| last_of(result.stdout.text())),
        };
        Self {
            last_line: last_line.unwrap_or_default(),
            exit_code: result.exit_code,
            not_started: (!result.started).then(why),
            elapsed_ms: result.elapsed_ms,
        }
    }
}

impl Container {
    /// Runs a shell command. Its output is dropped.
    pub(super) async fn shell(
        &self,
        program: &mut Program<'_>,
        name: &str,
        command: Command<'_>,
    ) -> Result<Ended, Stop> {
        let phase = command.phase;
        program.run_once(&self.environment, name, &self.exec(command), phase, Ended::from).await
    }

    /// Runs a short command of this program as the superuser, which must succeed.
    pub(super) async fn prepare(
        &self,
        program: &mut Program<'_>,
        name: &str,
        line: &str,
        phase: Phase,
    ) -> Result<(), Stop> {
        let user = Some(ROOT.to_owned());
        let command = Command { line, user, env: BTreeMap::new(), time_limit: SHORT, phase };
        let ended = self.shell(program, name, command).await?;
        match ended.exit_code {
            Some(0) => Ok(()),
            code => Err(Stop::exception(
                "RuntimeError",
                match ended.not_started {
                    Some(why) => format!("the container can't run `sh`: {why}"),
                    None => format!("`{line}` failed in the container: exit code {code:?}"),
                },
            )),
        }
    }

    /// Returns a shell command as an operation, with 4 KiB of each output.
    pub(super) fn exec(&self, command: Command<'_>) -> Exec {
        let mut env = self.env.clone();
        env.extend(command.env.clone());
        let line = command.line.to_owned();
        Exec {
            command: vec!["sh".to_owned(), "-c".to_owned(), BASH.to_owned(), line],
            workdir: self.workdir.clone(),
            disk_bytes_max: Some(self.disk_bytes_max),
            env,
            ..exec_in(&self.id, command)
        }
    }

    /// Copies files into a folder.
    pub(super) async fn put(
        &self,
        program: &mut Program<'_>,
        name: &str,
        folder: &str,
        replace: bool,
        files: Vec<TaskFile>,
        phase: Phase,
    ) -> Result<(), Stop> {
        let put = PutFiles { container: self.id.clone(), folder: folder.to_owned(), replace, files };
        program.run_once(&self.environment, name, &put, phase, |()| true).await.map(drop)
    }

    /// Returns the request for the files at a path of a container.
    pub(super) fn fetch(&self, container: &str, path: &str) -> FetchFiles {
        FetchFiles {
            file_bytes_max: FILE_BYTES_MAX,
            bytes_max: FILES_BYTES_MAX,
            ..FetchFiles::new(container, path)
        }
    }

    /// Returns a request for artifacts. A separate verifier gets all of them.
    pub(super) fn fetch_artifacts(&self, container: &str, path: &str, step: &Step) -> FetchFiles {
        let fetch = self.fetch(container, path);
        match step.verifier.environment {
            VerifierEnvironment::Shared => fetch,
            VerifierEnvironment::Separate { .. } => {
                FetchFiles { files_max: ARTIFACT_FILES_MAX, file_bytes_max: FILES_BYTES_MAX, ..fetch }
            }
        }
    }

    /// Returns the folder of commands.
    pub(super) async fn working_folder(&self, program: &mut Program<'_>) -> Result<String, Stop> {
        if let Some(known) = &self.workdir {
            return Ok(known.clone());
        }
        let command =
            Command { line: "pwd", user: None, env: BTreeMap::new(), time_limit: SHORT, phase: Phase::Agent };
        let kept = |result: ExecResult| result.stdout.head.trim_end_matches('\n').to_owned();
        let folder =
            program.run_once(&self.environment, "pwd", &self.exec(command), Phase::Agent, kept).await?;
        Ok(if folder.starts_with('/') { folder } else { "/".to_owned() })
    }

    /// Runs a health check until it succeeds or has failed too often.
    pub(super) async fn check_health(
        &self,
        program: &mut Program<'_>,
        name: &str,
        check: &HealthCheck,
    ) -> Result<(), Stop> {
        let command = Command {
            line: &check.command,
            user: None,
            env: BTreeMap::new(),
            time_limit: check.timeout,
            phase: Phase::Health,
        };
        let operation = CheckHealth {
            check: self.exec(command),
            interval: check.interval,
            start_period: check.start_period,
            start_interval: check.start_interval,
            retries: check.retries,
        };
        program.run_once(&self.environment, name, &operation, Phase::Health, |()| true).await.map(drop)
    }

    /// Gives the container the network access of a phase; `None` for the environment's own.
    pub(super) async fn use_network(
        &mut self,
        program: &mut Program<'_>,
        policy: Option<&NetworkPolicy>,
    ) -> Result<(), Stop> {
        let is_connected = *policy.unwrap_or(&self.network) == NetworkPolicy::Public;
        if !self.has_network || is_connected == self.is_connected {
            return Ok(());
        }
        self.switches += 1;
        let name = format!("network-{}", self.switches);
        program.switch_network(&self.environment, &name, &self.service, &self.id, is_connected).await?;
        self.is_connected = is_connected;
        Ok(())
    }
}

/// Returns a command of `sh` in any container of the environment. The variables and the folder of the agent's container
/// mean nothing in others.
pub(super) fn exec_in(container: &str, command: Command<'_>) -> Exec {
    let Command { line, user, env, time_limit, phase: _ } = command;
    Exec {
        user,
        env,
        stdout_bytes_max: 4 << 10,
        stderr_bytes_max: 4 << 10,
        ..Exec::shell(container, line, time_limit.max(Duration::from_secs(1)))
    }
}

/// Returns a user as the engine names it.
pub(super) fn user_name(user: &Option<User>) -> Option<String> {
    user.as_ref().map(|user| match user {
        User::Name(name) => name.clone(),
        User::Id(id) => id.to_string(),
    })
}
