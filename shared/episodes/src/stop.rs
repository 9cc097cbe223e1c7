//! Reasons for which an episode's program doesn't go on.

use std::time::Duration;

use bench_domain::{AgentRecord, EpisodeException};
use bench_environments::{EnvironmentError, ErrorKind, Limit};

use crate::thinker::ModelRequest;

/// Exception of a task that this program can't run, or whose files contradict each other.
pub(crate) const TASK_REFUSED: &str = "TaskRefusedError";
/// Exception of an environment that ended under the agent's commands, or runs none afterwards.
pub(crate) const ENVIRONMENT_GONE: &str = "EnvironmentGoneError";

/// Exception of an environment whose disk limit the agent's commands exceeded.
pub(crate) const DISK_LIMIT_EXCEEDED: &str = "DiskLimitExceededError";

/// Maximum length of the line of an output that a message quotes, in characters.
const LINE_CHARS_MAX: usize = 300;

/// Reason for which the program doesn't go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// An operation is running, or its files are being uploaded.
    Wait(Duration),
    /// The episode ends.
    Exception(EpisodeException, Option<String>),
    /// The sandbox, its host or its engine failed.
    Failure(EnvironmentError),
    /// The agent asks its model.
    Ask(ModelRequest),
    /// The agent made a step, which has to be stored.
    Stepped(Box<AgentRecord>),
}

/// Phase of an episode, which decides what a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before the environment runs.
    Setup,
    /// Checks of the environment's health.
    Health,
    /// The agent's work, or what follows it in the agent's environment.
    Agent,
    /// The verification in an environment of its own.
    Verifier,
}

impl Stop {
    pub(crate) fn exception(name: &str, message: impl Into<String>) -> Self {
        Self::Exception(EpisodeException { name: name.to_owned(), message: message.into() }, None)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::exception(TASK_REFUSED, message)
    }

    /// Decides what a failed operation means: the end of the episode, or another try.
    pub(crate) fn of(error: EnvironmentError, phase: Phase) -> Self {
        let name = match (&error, error.kind()) {
            (_, ErrorKind::Task | ErrorKind::Limit) => exception_name(&error, phase),
            // The environment was removed by a cancelation, or a request was built from a task's odd values.
            (EnvironmentError::Invalid(_), _) => TASK_REFUSED,
            _ => return Self::Failure(error),
        };
        let log = error.log().map(str::to_owned);
        let last = log.as_deref().and_then(last_line);
        let message = last.map_or_else(|| error.to_string(), |last| format!("{error}: {last}"));
        Self::Exception(EpisodeException { name: name.to_owned(), message }, log)
    }
}

/// Returns the last line of an output that says something, cut to 300 characters.
fn last_line(output: &str) -> Option<String> {
    let line = output.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(LINE_CHARS_MAX).collect())
}

/// Returns the name of the exception that Harbor raises for a failure, if it has one.
fn exception_name(error: &EnvironmentError, phase: Phase) -> &'static str {
    match error {
        EnvironmentError::Project { .. } | EnvironmentError::Refused(_) => TASK_REFUSED,
        EnvironmentError::Build { .. } => "SandboxBuildFailedError",
        EnvironmentError::Unhealthy { .. } => "HealthcheckError",
        EnvironmentError::LimitExceeded { limit: Limit::BuildTime | Limit::StartTime, .. } => {
            "EnvironmentStartTimeoutError"
        }
        EnvironmentError::LimitExceeded { limit: Limit::ImageSize, .. } => "SandboxBuildFailedError",
        EnvironmentError::LimitExceeded { limit: Limit::FetchTime, .. } => "DownloadVerifierDirError",
        EnvironmentError::LimitExceeded { limit: Limit::ContainerDisk, .. } if phase == Phase::Agent => {
            DISK_LIMIT_EXCEEDED
        }
        EnvironmentError::ContainerGone { out_of_memory: true, .. } => "MemoryLimitExceededError",
        EnvironmentError::ContainerGone { .. } if phase == Phase::Agent => ENVIRONMENT_GONE,
        _ if phase == Phase::Health => "HealthcheckError",
        _ => "RuntimeError",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_quote_the_end_of_the_output() {
        let build = |log: &str| EnvironmentError::Build { why: "it failed".to_owned(), log: log.to_owned() };
        for (log, expected) in [("", "it failed"), ("a\n no such image \n\n", "it failed: no such image")] {
            let Stop::Exception(exception, _) = Stop::of(build(log), Phase::Setup) else { panic!("{log}") };
            assert_eq!(
                (exception.name.as_str(), exception.message.as_str()),
                ("SandboxBuildFailedError", expected)
            );
        }
        assert!(matches!(Stop::of(EnvironmentError::SandboxLost, Phase::Agent), Stop::Failure(_)));
    }
}
