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

/// Exception of artifacts that are more than a verifier can be given.
pub(crate) const ARTIFACTS_LIMIT_EXCEEDED: &str = "ArtifactsLimitExceededError";

/// Exception of a sandbox that ended, or runs nothing any more, because of the agent's commands in it.
pub(crate) const WORKSPACE_LOST: &str = "WorkspaceLostError";

/// Exception of a change that is larger than an answer can be.
pub const CHANGE_TOO_LARGE: &str = "ChangeTooLargeError";

/// Exception of a change that no answer can hold, because it isn't text.
pub(crate) const CHANGE_NOT_TEXT: &str = "ChangeNotTextError";

/// Exception of an item that the sandbox host can't run: it has another architecture, no network, or can't get the image.
pub(crate) const HOST_UNSUITABLE: &str = "HostUnsuitableError";

/// Returns true if an exception says that the agent ended or broke its environment, which decides its grade. Otherwise an
/// agent could avoid a bad one.
pub(crate) fn is_by_agent(exception: &str) -> bool {
    matches!(
        exception,
        ENVIRONMENT_GONE
            | DISK_LIMIT_EXCEEDED
            | ARTIFACTS_LIMIT_EXCEEDED
            | WORKSPACE_LOST
            | CHANGE_TOO_LARGE
            | CHANGE_NOT_TEXT
    )
}

/// Maximum length of the line of an output that a message quotes, in characters.
const LINE_CHARS_MAX: usize = 300;

/// Reason for which the program doesn't go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// An operation is running, or its files are being uploaded.
    Wait(Duration),
    /// An operation failed and is repeated after this time, for the reason in one sentence.
    Delay(Duration, String),
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
    /// Copying the agent's work into the verifier's environment.
    Artifacts,
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

    /// Returns what it means that the agent's environment no longer runs commands, as it did before the agent. Otherwise an
    /// agent could avoid a bad grade by removing the shell or by taking all processes.
    pub(crate) fn broken_by_agent(self, phase: Phase) -> Self {
        match self {
            Self::Exception(EpisodeException { name, message }, log)
                if phase == Phase::Agent
                    && matches!(
                        name.as_str(),
                        "RuntimeError" | "AddTestsDirError" | "HealthcheckError" | "MemoryLimitExceededError"
                    ) =>
            {
                Self::Exception(EpisodeException { name: ENVIRONMENT_GONE.to_owned(), message }, log)
            }
            other => other,
        }
    }

    /// Decides what a failed operation means: the end of the episode, or another try.
    pub(crate) fn of(error: EnvironmentError, phase: Phase) -> Self {
        let name = match (&error, error.kind()) {
            (_, ErrorKind::Task | ErrorKind::Limit) => exception_name(&error, phase),
            // What the agent made doesn't fit into a request.
            (EnvironmentError::Invalid(_), _) if phase == Phase::Artifacts => ENVIRONMENT_GONE,
            // The environment was removed by a cancelation, or a request was built from a task's odd values.
            (EnvironmentError::Invalid(_), _) => TASK_REFUSED,
            _ => return Self::Failure(error),
        };
        let log = error.log().map(str::to_owned);
        // The reason of a failed build has the end of its output.
        let is_build = matches!(error, EnvironmentError::Build { .. });
        let last = log.as_deref().filter(|_| !is_build).and_then(last_line);
        let message = last.map_or_else(|| error.to_string(), |last| format!("{error}: {last}"));
        Self::Exception(EpisodeException { name: name.to_owned(), message }, log)
    }
}

/// Returns the last line of an output that says something, cut to 300 characters.
pub(crate) fn last_line(output: &str) -> Option<String> {
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
        // Also out of memory, which an agent can do on purpose.
        EnvironmentError::ContainerGone { .. } if phase == Phase::Agent => ENVIRONMENT_GONE,
        EnvironmentError::ContainerGone { out_of_memory: true, .. } => "MemoryLimitExceededError",
        // The environment was made by the task, what doesn't fit into it by the agent.
        EnvironmentError::Start { .. } if phase == Phase::Artifacts => ENVIRONMENT_GONE,
        _ if phase == Phase::Health => "HealthcheckError",
        _ => "RuntimeError",
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::{Code, EpisodeReport, Outcome};
    use bench_environments::ProjectError;
    use bench_sandy::job::JobError;

    use super::*;

    #[test]
    fn messages_quote_the_end_of_the_output() {
        let (why, text) = (|| "it failed".to_owned(), |log: &str| log.to_owned());
        for (error, name, expected) in [
            (EnvironmentError::Start { why: why(), log: text("") }, "RuntimeError", "it failed"),
            (
                EnvironmentError::Start { why: why(), log: text("a\n no such file \n\n") },
                "RuntimeError",
                "it failed: no such file",
            ),
            // Its reason has the end of the output.
            (
                EnvironmentError::Build { why: why(), log: text("a\n") },
                "SandboxBuildFailedError",
                "it failed",
            ),
        ] {
            let Stop::Exception(exception, _) = Stop::of(error, Phase::Setup) else { panic!("{expected}") };
            assert_eq!((exception.name.as_str(), exception.message.as_str()), (name, expected));
        }
        assert!(matches!(Stop::of(EnvironmentError::SandboxLost, Phase::Agent), Stop::Failure(_)));
        // What the agent made doesn't fit into the verifier's environment.
        let start = EnvironmentError::Start { why: "it failed".to_owned(), log: String::new() };
        let Stop::Exception(exception, _) = Stop::of(start, Phase::Artifacts) else { panic!("no exception") };
        assert_eq!(exception.name, ENVIRONMENT_GONE);
    }

    const PHASES: [Phase; 4] = [Phase::Setup, Phase::Health, Phase::Agent, Phase::Verifier];

    /// Returns the name of the exception that a failure ends the episode with; `None` if the turn fails instead.
    fn name_of(error: &EnvironmentError, phase: Phase) -> Option<String> {
        match Stop::of(error.clone(), phase) {
            Stop::Exception(exception, _) => Some(exception.name),
            Stop::Failure(same) => {
                assert_eq!(&same, error);
                None
            }
            other => panic!("{error:?} in {phase:?}: {other:?}"),
        }
    }

    /// Returns the verdict of an episode that ends with an exception and without a reward.
    fn verdict_of(name: &str) -> (Outcome, Option<Code>) {
        let exception = EpisodeException { name: name.to_owned(), message: "it happened".to_owned() };
        let report = EpisodeReport { exception: Some(exception), ..EpisodeReport::default() };
        let verdict = crate::verdict(&report);
        (verdict.outcome, verdict.code)
    }

    /// A failure, the exceptions that it ends an episode with by phase, and their verdicts.
    type Row = (EnvironmentError, [(&'static str, Option<Code>); 4]);

    fn limit(limit: Limit) -> EnvironmentError {
        EnvironmentError::LimitExceeded { limit, why: "it took too much".to_owned(), log: String::new() }
    }

    /// Failures that end the episode, in the order of [`PHASES`]. A code is that of an ungraded verdict; without one the
    /// verdict is incorrect.
    fn rows() -> Vec<Row> {
        let (why, log) = (|| "why".to_owned(), String::new);
        let gone = |out_of_memory| EnvironmentError::ContainerGone { why: why(), out_of_memory };
        let failed = |name| (name, Some(Code::SandboxFailed));
        let runtime = failed("RuntimeError");
        let (build, health) = (failed("SandboxBuildFailedError"), failed("HealthcheckError"));
        let refused = (TASK_REFUSED, Some(Code::TaskRefused));
        let slow_start = ("EnvironmentStartTimeoutError", Some(Code::SandboxUnavailable));
        let memory = failed("MemoryLimitExceededError");
        let by_agent = |other, name| [runtime, other, (name, None), runtime];
        vec![
            (EnvironmentError::Project { why: why(), log: log() }, [refused; 4]),
            (EnvironmentError::Refused(ProjectError::Refused(why())), [refused; 4]),
            (EnvironmentError::Invalid(why()), [refused; 4]),
            (EnvironmentError::Build { why: why(), log: log() }, [build; 4]),
            (EnvironmentError::Start { why: why(), log: log() }, [runtime, health, runtime, runtime]),
            (EnvironmentError::Unhealthy { why: why(), log: log() }, [health; 4]),
            (gone(true), [memory, memory, (ENVIRONMENT_GONE, None), memory]),
            (gone(false), by_agent(health, ENVIRONMENT_GONE)),
            (limit(Limit::BuildTime), [slow_start; 4]),
            (limit(Limit::StartTime), [slow_start; 4]),
            (limit(Limit::ImageSize), [build; 4]),
            (limit(Limit::FetchTime), [failed("DownloadVerifierDirError"); 4]),
            (limit(Limit::ContainerDisk), by_agent(health, DISK_LIMIT_EXCEEDED)),
            (limit(Limit::OperationTime), [runtime, health, runtime, runtime]),
            (limit(Limit::Sandbox), [runtime, health, runtime, runtime]),
        ]
    }

    #[test]
    fn each_failure_of_the_task_has_an_exception_with_its_verdict() {
        for (error, by_phase) in rows() {
            for (phase, (name, code)) in PHASES.into_iter().zip(by_phase) {
                assert_eq!(name_of(&error, phase).as_deref(), Some(name), "{error:?} in {phase:?}");
                let outcome = match code {
                    Some(_) => Outcome::InfrastructureError,
                    None => Outcome::Incorrect,
                };
                assert_eq!(verdict_of(name), (outcome, code), "{name}");
            }
        }
    }

    #[test]
    fn failures_of_sandbox_and_engine_are_no_exceptions() {
        let (why, log) = ("why".to_owned(), String::new());
        let operation = "build".to_owned();
        for error in [
            EnvironmentError::SandboxLost,
            EnvironmentError::Host(JobError::NoPython),
            EnvironmentError::NoEngine { why: why.clone(), log: log.clone() },
            EnvironmentError::Engine { why, log },
            EnvironmentError::Removed,
            EnvironmentError::Vanished { operation: operation.clone() },
            EnvironmentError::UnexpectedResult { operation },
        ] {
            for phase in PHASES {
                assert_eq!(name_of(&error, phase), None, "{error:?} in {phase:?}");
            }
        }
    }
}
