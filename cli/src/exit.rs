//! Exit statuses of commands, and error reports.

use std::fmt;
use std::process::ExitCode;

use bench_domain::Code;
use bench_embedded::EmbeddedError;
use bench_stack::SettingError;
use bench_stack::sandboxes::SandboxesError;
use bench_stack::sandboxes::python::PythonEnvironmentError;

use crate::output;
use crate::refused::Refused;

/// Advice if another process uses the data directory.
pub(crate) const IN_USE_HINT: &str = "wait until it is done, use another --data-dir, or give the address of a running `bench serve` with --server";

/// Exit status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// The command did what was asked: 0.
    Success,
    /// A run failed, a verification failed, or an error occurred: 1.
    Failure,
    /// The command line or a setting is unusable: 2.
    Usage,
    /// Ctrl-C ended the command: 130, as in shells.
    Interrupted,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(match status {
            ExitStatus::Success => 0,
            ExitStatus::Failure => 1,
            ExitStatus::Usage => 2,
            ExitStatus::Interrupted => 130,
        })
    }
}

/// A problem in one sentence, with advice.
#[derive(Debug)]
pub(crate) struct Problem {
    message: String,
    hint: Option<String>,
    status: ExitStatus,
}

impl Problem {
    /// Reports wrong usage.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, status: ExitStatus::Usage }
    }

    /// Reports any other failure.
    pub(crate) fn failure(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, status: ExitStatus::Failure }
    }

    /// Adds advice.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// Prints an error on standard error, and returns the exit status for it.
pub(crate) fn report(error: &anyhow::Error) -> ExitStatus {
    let problem = error.chain().find_map(|cause| cause.downcast_ref::<Problem>());
    let refused = error.chain().find_map(|cause| cause.downcast_ref::<Refused>());
    let in_use = error.chain().any(|cause| {
        cause
            .downcast_ref::<EmbeddedError>()
            .is_some_and(|error| matches!(error, EmbeddedError::InUse { .. }))
    });
    let hint = match problem {
        Some(problem) => problem.hint.as_deref(),
        None if refused.is_some_and(Refused::is_unauthorized) => Some(
            "BENCH_API_KEY is for an access token or a provider's key, BENCH_ADMIN_SECRET for the operator's secret",
        ),
        None if is_unusable_python(error) => Some("`bench sandy setup` makes one"),
        None if in_use => Some(IN_USE_HINT),
        None => None,
    };
    output::error(&sentence(error));
    if let Some(hint) = hint {
        output::hint(hint);
    }
    match problem {
        Some(problem) => problem.status,
        None if refused.and_then(Refused::code).is_some_and(is_wrong_usage) => ExitStatus::Usage,
        None if is_unusable_python(error) || is_unusable_setting(error) => ExitStatus::Usage,
        None => ExitStatus::Failure,
    }
}

/// Returns true if an order or request with this code is the caller's mistake, as a wrong flag is.
pub(crate) const fn is_wrong_usage(code: Code) -> bool {
    matches!(
        code,
        Code::BenchmarkNotOrdered
            | Code::IdempotencyKeyReused
            | Code::InvalidJson
            | Code::InvalidModel
            | Code::InvalidRequest
            | Code::JudgeKeyRequired
            | Code::JudgeMissing
            | Code::ModelNotFound
            | Code::NoBenchmarks
            | Code::PriceUnknown
            | Code::SamplesLimit
            | Code::UnsupportedProvider
    )
}

/// Returns true if the configured Python environment for sandboxes is unusable.
fn is_unusable_python(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let error = match cause.downcast_ref::<SandboxesError>() {
            Some(SandboxesError::Python(error)) => Some(error),
            _ => cause.downcast_ref(),
        };
        matches!(error, Some(PythonEnvironmentError::Unusable { .. }))
    })
}

/// Returns true if a variable has an unusable value.
fn is_unusable_setting(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<SettingError>() || matches!(cause.downcast_ref(), Some(SandboxesError::Variable { .. }))
    })
}

/// Formats an error and its causes in one line, without repeating causes that a text already contains.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        let cause = cause.trim().trim_end_matches('.');
        if text.is_empty() {
            text.push_str(cause);
        } else if !text.contains(cause) {
            text = format!("{text}: {cause}");
        }
    }
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anyhow::Context;
    use bench_stack::sandboxes::python::PythonEnvironment;
    use http::StatusCode;

    use super::*;

    #[test]
    fn causes_are_told_once() {
        let error = std::io::Error::other("disk on fire");
        let error =
            Err::<(), _>(error).context("could not write x: disk on fire").context("no export").unwrap_err();
        assert_eq!(sentence(&error), "no export: could not write x: disk on fire");
    }

    #[test]
    fn a_problem_decides_the_exit_code_also_behind_context() {
        let usage = anyhow::Error::new(Problem::usage("no such benchmark")).context("cannot start");
        assert_eq!(report(&usage), ExitStatus::Usage);
        assert_eq!(report(&anyhow::anyhow!("anything")), ExitStatus::Failure);
    }

    #[test]
    fn a_server_that_cannot_accept_what_was_given_means_wrong_usage() {
        let refused = |status, code| {
            let error = Refused::new(status, code, "no");
            report(&anyhow::Error::new(error).context("cannot start"))
        };
        assert_eq!(refused(StatusCode::NOT_FOUND, Some(Code::ModelNotFound)), ExitStatus::Usage);
        assert_eq!(refused(StatusCode::UNPROCESSABLE_ENTITY, None), ExitStatus::Usage);
        assert_eq!(refused(StatusCode::NOT_FOUND, Some(Code::RunNotFound)), ExitStatus::Failure);
        assert_eq!(refused(StatusCode::NOT_FOUND, None), ExitStatus::Failure);
        // The code takes precedence over the status.
        assert_eq!(refused(StatusCode::UNPROCESSABLE_ENTITY, Some(Code::RunNotOver)), ExitStatus::Failure);
    }

    #[test]
    fn a_python_environment_that_cannot_be_used_is_wrong_usage() {
        let unusable = || PythonEnvironment::open(Path::new("/nowhere")).unwrap_err();
        assert_eq!(report(&anyhow::Error::new(unusable()).context("cannot start")), ExitStatus::Usage);
        assert_eq!(report(&anyhow::Error::new(SandboxesError::from(unusable()))), ExitStatus::Usage);
    }
}
