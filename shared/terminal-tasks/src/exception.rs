//! Exceptions of Harbor by name, and the outcome of an episode that ends with one.

use bench_domain::{Code, Outcome};

/// Cause of an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExceptionCause {
    /// The environment could not be built, started or reached.
    Sandbox,
    /// The model's provider failed and may succeed later.
    ProviderTransient,
    /// The model's provider rejects the request, and would reject it again.
    ProviderPermanent,
    /// The agent used up its time or its context. The reward is valid.
    AgentBudget,
    /// The agent or its provider refused the task. The reward is valid.
    AgentRefused,
    /// The verification ended without a reward.
    Verifier,
    /// The harness can't do what the task needs.
    Harness,
    /// The run was canceled.
    Canceled,
    /// Any other exception.
    Unclassified,
}

/// Outcome of an episode that ends with an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exception {
    /// Cause.
    pub cause: ExceptionCause,
    /// Outcome of an episode without a reward.
    pub outcome: Outcome,
    /// Code of the outcome; `None` if it is graded.
    pub code: Option<Code>,
    /// True if the verification follows all the same, and its reward counts.
    pub is_verified: bool,
    /// True if another attempt may end differently.
    pub is_retried: bool,
}

impl Exception {
    /// Returns the outcome for an exception by its name. Unknown names are unclassified.
    pub fn of(name: &str) -> Self {
        let entry = TABLE.iter().find(|(_, names)| names.contains(&name));
        let cause = entry.map_or(ExceptionCause::Unclassified, |(cause, _)| *cause);
        let code = code(name, cause);
        Self {
            cause,
            outcome: match cause {
                ExceptionCause::AgentRefused => Outcome::Refused,
                ExceptionCause::AgentBudget => budget_outcome(name),
                _ => Outcome::InfrastructureError,
            },
            code,
            is_verified: cause.has_valid_reward() || name == "NonZeroAgentExitCodeError",
            is_retried: is_retried(name, cause),
        }
    }
}

impl ExceptionCause {
    /// Returns true if a reward is a valid measurement in spite of the exception.
    pub const fn has_valid_reward(self) -> bool {
        matches!(self, Self::AgentBudget | Self::AgentRefused)
    }
}

/// Returns the outcome of an agent that used up its budget and whose episode has no reward.
fn budget_outcome(name: &str) -> Outcome {
    match name {
        "OutputTokenExceededError" | "OutputLengthExceededError" => Outcome::Truncated,
        // Without a reward nothing is known about the agent's work.
        _ => Outcome::TooLong,
    }
}

fn code(name: &str, cause: ExceptionCause) -> Option<Code> {
    Some(match (cause, name) {
        (ExceptionCause::Sandbox, "EnvironmentStartTimeoutError" | "SSHAccessError") => {
            Code::SandboxUnavailable
        }
        (ExceptionCause::Sandbox, _) => Code::SandboxFailed,
        (
            ExceptionCause::ProviderTransient,
            "ApiRateLimitError" | "RateLimitError" | "ApiOverloadedError",
        ) => Code::RateLimited,
        (ExceptionCause::ProviderTransient, "ApiUsageLimitError") => Code::QuotaExhausted,
        (ExceptionCause::ProviderTransient, "Timeout" | "ApiResponseStalledError") => Code::ProviderTimeout,
        (
            ExceptionCause::ProviderTransient,
            "NetworkConnectionError"
            | "ApiConnectionError"
            | "APIConnectionError"
            | "ApiConnectionClosedError",
        ) => Code::ProviderUnreachable,
        (ExceptionCause::ProviderTransient, _) => Code::ProviderError,
        (
            ExceptionCause::ProviderPermanent,
            "AgentAuthenticationError" | "AuthenticationError" | "PermissionDeniedError",
        ) => Code::InvalidKey,
        (
            ExceptionCause::ProviderPermanent,
            "ModelNotFoundError" | "NotFoundError" | "ApiProviderResourceNotFoundError",
        ) => Code::ModelNotFound,
        (ExceptionCause::ProviderPermanent, "BudgetExceededError") => Code::BudgetReached,
        (ExceptionCause::ProviderPermanent, _) => Code::RequestRejected,
        (ExceptionCause::AgentBudget, "OutputTokenExceededError" | "OutputLengthExceededError") => {
            return None;
        }
        (ExceptionCause::AgentBudget, "AgentTimeoutError") => Code::AnswerTimeout,
        (ExceptionCause::AgentBudget, _) => Code::ContextTooLong,
        (ExceptionCause::AgentRefused, "ContentPolicyViolationError") => Code::ContentFiltered,
        (ExceptionCause::AgentRefused, _) => return None,
        (ExceptionCause::Verifier, _) => Code::SandboxNoVerdict,
        (ExceptionCause::Harness, _) => Code::InvalidItem,
        (ExceptionCause::Canceled, _) => Code::RunEnded,
        (ExceptionCause::Unclassified, _) => Code::SandboxFailed,
    })
}

/// Returns true if another attempt may end differently. Harbor's list of exceptions that aren't retried wins over the
/// cause.
fn is_retried(name: &str, cause: ExceptionCause) -> bool {
    match cause {
        ExceptionCause::Sandbox | ExceptionCause::Unclassified => true,
        ExceptionCause::ProviderTransient => name != "ApiUsageLimitError",
        _ => false,
    }
}

/// Names of exceptions by cause.
const TABLE: &[(ExceptionCause, &[&str])] = &[
    (
        ExceptionCause::Sandbox,
        &[
            "EnvironmentStartTimeoutError",
            "SandboxBuildFailedError",
            "AgentSetupTimeoutError",
            "HealthcheckError",
            "SandboxLikelyOutOfMemoryError",
            "MemoryLimitExceededError",
            "SSHAccessError",
            "AddTestsDirError",
            "DownloadVerifierDirError",
            "RuntimeRequestError",
        ],
    ),
    (
        ExceptionCause::ProviderTransient,
        &[
            "ApiError",
            "ApiRateLimitError",
            "ApiInternalServerError",
            "ApiOverloadedError",
            "ApiConnectionClosedError",
            "ApiResponseStalledError",
            "UnknownApiError",
            "NetworkConnectionError",
            "ApiConnectionError",
            "ApiUsageLimitError",
            "RateLimitError",
            "InternalServerError",
            "ServiceUnavailableError",
            "APIConnectionError",
            "APIError",
            "Timeout",
        ],
    ),
    (
        ExceptionCause::ProviderPermanent,
        &[
            "BadRequestError",
            "UnprocessableEntityError",
            "UnsupportedParamsError",
            "UnsupportedModelParametersError",
            "APIResponseValidationError",
            "BudgetExceededError",
            "AgentAuthenticationError",
            "ModelNotFoundError",
            "ApiProviderResourceNotFoundError",
            "AuthenticationError",
            "PermissionDeniedError",
            "NotFoundError",
        ],
    ),
    (
        ExceptionCause::AgentBudget,
        &[
            "AgentTimeoutError",
            "ContextWindowExceededError",
            "OutputTokenExceededError",
            "ContextLengthExceededError",
            "OutputLengthExceededError",
        ],
    ),
    (ExceptionCause::AgentRefused, &["AgentSafetyRefusalError", "ContentPolicyViolationError"]),
    (
        ExceptionCause::Verifier,
        &[
            "VerifierTimeoutError",
            "RewardFileNotFoundError",
            "RewardFileEmptyError",
            "VerifierOutputParseError",
        ],
    ),
    (ExceptionCause::Harness, &["ServiceOperationsUnsupportedError", "MissingExtraError", "RegradeError"]),
    (ExceptionCause::Canceled, &["CancelledError"]),
    (ExceptionCause::Unclassified, &["NonZeroAgentExitCodeError"]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bench_domain::Verdict;

    use super::*;

    #[test]
    fn every_name_has_one_outcome() {
        let names: Vec<&str> = TABLE.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert_eq!(names.len(), 10 + 16 + 12 + 5 + 2 + 4 + 3 + 1 + 1);
        for name in names {
            let exception = Exception::of(name);
            // The outcome is the one that verdicts with this code have.
            match exception.code {
                Some(Code::ContentFiltered) | None => assert!(exception.outcome.is_graded(), "{name}"),
                Some(code) => assert_eq!(Verdict::ungraded(code, "").outcome, exception.outcome, "{name}"),
            }
        }
    }

    #[test]
    fn examples_have_their_outcomes() {
        for (name, outcome, is_verified, is_retried) in [
            ("AgentTimeoutError", Outcome::TooLong, true, false),
            ("ContextLengthExceededError", Outcome::TooLong, true, false),
            ("OutputLengthExceededError", Outcome::Truncated, true, false),
            ("AgentSafetyRefusalError", Outcome::Refused, true, false),
            ("NonZeroAgentExitCodeError", Outcome::InfrastructureError, true, true),
            ("HealthcheckError", Outcome::InfrastructureError, false, true),
            ("RateLimitError", Outcome::InfrastructureError, false, true),
            ("ApiUsageLimitError", Outcome::InfrastructureError, false, false),
            ("AuthenticationError", Outcome::InfrastructureError, false, false),
            ("VerifierTimeoutError", Outcome::InfrastructureError, false, false),
            ("CancelledError", Outcome::InfrastructureError, false, false),
            ("SomethingNewError", Outcome::InfrastructureError, false, true),
        ] {
            let exception = Exception::of(name);
            assert_eq!(
                (exception.outcome, exception.is_verified, exception.is_retried),
                (outcome, is_verified, is_retried),
                "{name}"
            );
        }
    }

    #[test]
    fn what_harbor_never_retries_is_not_retried() {
        for name in [
            "AgentTimeoutError",
            "VerifierTimeoutError",
            "RewardFileNotFoundError",
            "RewardFileEmptyError",
            "VerifierOutputParseError",
            "ApiUsageLimitError",
            "AgentSafetyRefusalError",
            "AgentAuthenticationError",
            "ModelNotFoundError",
            "UnsupportedModelParametersError",
        ] {
            assert!(!Exception::of(name).is_retried, "{name}");
        }
    }
}
