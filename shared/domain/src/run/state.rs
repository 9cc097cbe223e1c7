//! State machine of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Code, IllegalTransition, Timestamp, code};

/// Name of a [`RunState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// Accepted, but not started.
    Queued,
    /// In progress.
    Running,
    /// Over; every benchmark has a score.
    Succeeded,
    /// Over; results are incomplete.
    Failed,
    /// Canceled by its owner.
    Canceled,
}

impl RunStatus {
    /// All statuses.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::Canceled];

    /// Returns the name in JSON and in keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    /// Returns the status with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Returns true if there may still be work to do.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Reason why a run failed, for causes that callers distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// The run reached its budget. Its results so far are kept.
    Budget,
    /// The provider of the model or of the judge rejected the run's first requests, all with the same message.
    Refused,
    /// As many samples ended as infrastructure-error as the order allows. Its results so far are kept.
    Failures,
}

impl FailureReason {
    /// Returns the reason that a code stands for, if any.
    pub const fn from_code(code: Code) -> Option<Self> {
        match code {
            Code::BudgetReached => Some(Self::Budget),
            Code::AllRequestsRejected => Some(Self::Refused),
            Code::TooManyFailures => Some(Self::Failures),
            _ => None,
        }
    }

    /// Returns the code of the same cause.
    pub const fn code(self) -> Code {
        match self {
            Self::Budget => Code::BudgetReached,
            Self::Refused => Code::AllRequestsRejected,
            Self::Failures => Code::TooManyFailures,
        }
    }

    /// Returns the name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Refused => "refused",
            Self::Failures => "failures",
        }
    }
}

/// State of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "status")]
pub enum RunState {
    /// Accepted, but not started.
    Queued,
    /// In progress.
    Running {
        /// Time at which the planner started it.
        started_at: Timestamp,
    },
    /// Over; every benchmark has a score.
    Succeeded {
        /// Time at which the planner started it.
        started_at: Timestamp,
        /// Time at which the finisher closed it.
        completed_at: Timestamp,
        /// Unweighted mean of the benchmarks' scores.
        overall_score: Option<f64>,
    },
    /// Over; results are incomplete.
    Failed {
        /// Time at which the planner started it, if it did.
        started_at: Option<Timestamp>,
        /// Time at which it was closed.
        completed_at: Timestamp,
        /// Error message, one sentence.
        error: String,
        /// Cause, if it's one that callers distinguish.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<FailureReason>,
        /// Code of the cause; `None` in records of older versions.
        #[serde(
            default,
            deserialize_with = "code::deserialize_known",
            skip_serializing_if = "Option::is_none"
        )]
        code: Option<Code>,
    },
    /// Canceled by its owner.
    Canceled {
        /// Time at which the planner started it, if it did.
        started_at: Option<Timestamp>,
        /// Time at which the owner canceled it.
        canceled_at: Timestamp,
    },
}

impl RunState {
    /// Returns the name of the state.
    pub const fn status(&self) -> RunStatus {
        match self {
            Self::Queued => RunStatus::Queued,
            Self::Running { .. } => RunStatus::Running,
            Self::Succeeded { .. } => RunStatus::Succeeded,
            Self::Failed { .. } => RunStatus::Failed,
            Self::Canceled { .. } => RunStatus::Canceled,
        }
    }

    fn illegal(&self, verb: &'static str) -> IllegalTransition {
        IllegalTransition { what: "run", from: self.status().as_str(), verb }
    }

    /// Queued → running.
    pub fn start(&self, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self {
            Self::Queued => Ok(Self::Running { started_at: now }),
            other => Err(other.illegal("start")),
        }
    }

    /// Running → succeeded.
    pub fn succeed(&self, now: Timestamp, overall_score: Option<f64>) -> Result<Self, IllegalTransition> {
        match self {
            Self::Running { started_at } => {
                Ok(Self::Succeeded { started_at: *started_at, completed_at: now, overall_score })
            }
            other => Err(other.illegal("succeed")),
        }
    }

    /// Queued or running → failed.
    pub fn fail(
        &self,
        now: Timestamp,
        code: Code,
        error: impl Into<String>,
    ) -> Result<Self, IllegalTransition> {
        let started_at = self.started_at();
        match self {
            Self::Queued | Self::Running { .. } => Ok(Self::Failed {
                started_at,
                completed_at: now,
                error: error.into(),
                reason: FailureReason::from_code(code),
                code: Some(code),
            }),
            other => Err(other.illegal("fail")),
        }
    }

    /// Queued or running → canceled.
    pub fn cancel(&self, now: Timestamp) -> Result<Self, IllegalTransition> {
        let started_at = self.started_at();
        match self {
            Self::Queued | Self::Running { .. } => Ok(Self::Canceled { started_at, canceled_at: now }),
            other => Err(other.illegal("be canceled")),
        }
    }

    /// Failed or canceled → queued.
    pub fn requeue(&self) -> Result<Self, IllegalTransition> {
        match self {
            Self::Failed { .. } | Self::Canceled { .. } => Ok(Self::Queued),
            other => Err(other.illegal("be requeued")),
        }
    }

    /// Succeeded, failed or canceled → queued, to repeat samples that ended with an infrastructure-error.
    pub fn requeue_errors(&self) -> Result<Self, IllegalTransition> {
        match self {
            Self::Succeeded { .. } => Ok(Self::Queued),
            other => other.requeue(),
        }
    }

    /// Returns the time at which work began.
    pub const fn started_at(&self) -> Option<Timestamp> {
        match self {
            Self::Queued => None,
            Self::Running { started_at } | Self::Succeeded { started_at, .. } => Some(*started_at),
            Self::Failed { started_at, .. } | Self::Canceled { started_at, .. } => *started_at,
        }
    }

    /// Returns the time at which the run was over.
    pub const fn completed_at(&self) -> Option<Timestamp> {
        match self {
            Self::Queued | Self::Running { .. } => None,
            Self::Succeeded { completed_at, .. } | Self::Failed { completed_at, .. } => Some(*completed_at),
            Self::Canceled { canceled_at, .. } => Some(*canceled_at),
        }
    }

    /// Returns the unweighted mean of the benchmarks' scores, if the run succeeded.
    pub const fn overall_score(&self) -> Option<f64> {
        match self {
            Self::Succeeded { overall_score, .. } => *overall_score,
            _ => None,
        }
    }

    /// Returns the reason why the run failed, if it's one that callers distinguish.
    pub const fn failure_reason(&self) -> Option<FailureReason> {
        match self {
            Self::Failed { reason, .. } => *reason,
            _ => None,
        }
    }

    /// Returns true if the run was stopped while answers were in flight: by its budget, by refusals or by failures.
    /// These answers are still stored and counted, and the run's benchmarks fail with reports.
    pub const fn is_stopped(&self) -> bool {
        matches!(self, Self::Failed { reason: Some(_), .. })
    }

    /// Returns the code of the error, if the run failed and the code is known.
    pub fn error_code(&self) -> Option<Code> {
        match self {
            Self::Failed { code, reason, .. } => code.or(reason.map(FailureReason::code)),
            _ => None,
        }
    }

    /// Returns the error message, if the run failed.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000);

    #[test]
    fn a_run_that_is_over_stays_as_it_is() {
        let running = RunState::Queued.start(NOW).unwrap();
        let canceled = running.cancel(NOW).unwrap();
        assert!(canceled.succeed(NOW, Some(1.0)).is_err());
        assert!(canceled.fail(NOW, Code::InvalidKey, "x").is_err());
        assert!(canceled.cancel(NOW).is_err());
        let succeeded = running.succeed(NOW, Some(0.5)).unwrap();
        assert!(succeeded.cancel(NOW).is_err());
        assert_eq!(succeeded.requeue().unwrap_err().to_string(), "a succeeded run cannot be requeued");
    }

    #[test]
    fn only_failed_and_canceled_runs_are_requeued() {
        let failed = RunState::Queued.fail(NOW, Code::ModelNotFound, "no model").unwrap();
        assert_eq!(failed.requeue(), Ok(RunState::Queued));
        assert!(RunState::Queued.requeue().is_err());
        assert_eq!(failed.error(), Some("no model"));
    }

    #[test]
    fn a_succeeded_run_is_requeued_for_its_errors_only() {
        let running = RunState::Queued.start(NOW).unwrap();
        let succeeded = running.succeed(NOW, Some(0.5)).unwrap();
        assert_eq!(succeeded.requeue_errors(), Ok(RunState::Queued));
        assert_eq!(running.cancel(NOW).unwrap().requeue_errors(), Ok(RunState::Queued));
        assert!(running.requeue_errors().is_err() && RunState::Queued.requeue_errors().is_err());
    }

    #[test]
    fn states_survive_json() {
        for state in [
            RunState::Queued,
            RunState::Queued.start(NOW).unwrap(),
            RunState::Queued.cancel(NOW).unwrap(),
            RunState::Queued.start(NOW).unwrap().succeed(NOW, None).unwrap(),
            RunState::Queued.fail(NOW, Code::InvalidKey, "x").unwrap(),
            RunState::Queued.fail(NOW, Code::BudgetReached, "x").unwrap(),
        ] {
            let text = serde_json::to_string(&state).unwrap();
            assert_eq!(serde_json::from_str::<RunState>(&text).unwrap(), state);
        }
    }

    #[test]
    fn a_failure_of_an_older_program_has_no_reason() {
        let plain = RunState::Queued.fail(NOW, Code::InvalidKey, "x").unwrap();
        assert!(!serde_json::to_string(&plain).unwrap().contains("reason"));
        assert_eq!(plain.failure_reason(), None);
        assert_eq!(serde_json::from_str::<RunState>(&serde_json::to_string(&plain).unwrap()).unwrap(), plain);
        let old =
            r#"{"status":"failed","started_at":null,"completed_at":"1970-01-01T00:00:01Z","error":"x"}"#;
        let old: RunState = serde_json::from_str(old).unwrap();
        assert_eq!((old.error(), old.error_code()), (Some("x"), None));
        let stopped = RunState::Queued.fail(NOW, Code::BudgetReached, "x").unwrap();
        let text = serde_json::to_string(&stopped).unwrap().replace(r#","code":"budget_reached""#, "");
        let old: RunState = serde_json::from_str(&text).unwrap();
        assert!(!text.contains("code") && old.error_code() == Some(Code::BudgetReached), "{text}");
        assert!(stopped.is_stopped() && stopped.requeue().is_ok());
        assert!(serde_json::to_string(&stopped).unwrap().contains(r#""reason":"budget""#));
        let refused = RunState::Queued.fail(NOW, Code::AllRequestsRejected, "x").unwrap();
        assert!(refused.is_stopped() && refused.requeue().is_ok() && !plain.is_stopped());
        assert!(serde_json::to_string(&refused).unwrap().contains(r#""reason":"refused""#));
    }
}
