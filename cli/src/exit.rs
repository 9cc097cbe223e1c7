//! Exit statuses of commands, and error reports.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use bench_domain::Code;
use bench_embedded::EmbeddedError;
use bench_stack::sandboxes::SandboxesError;
use bench_stack::sandboxes::python::PythonEnvironmentError;
use bench_stack::{AttachError, SettingError};

use crate::output;
use crate::refusal::Refusal;

/// Advice if another process uses the data directory.
pub(crate) const IN_USE_HINT: &str = "wait until it ends, or give another --data-dir";

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

    /// Reports that the user interrupted the command.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, status: ExitStatus::Interrupted }
    }

    /// Adds advice.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the advice.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Adds advice, if there is any.
    #[must_use]
    pub(crate) fn hint_if(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// Reports that there is no room in a data directory.
pub(crate) fn disk_full(data_dir: &Path) -> Problem {
    Problem::failure(format!("the disk of `{}` is full", data_dir.display()))
        .hint("free some space, or use another disk with --data-dir; stored runs can be read meanwhile")
}

/// Returns true if a text of the services in this process says that the disk is full: of the store of objects, of the
/// database, or of the operating system.
pub(crate) fn says_disk_full(text: &str) -> bool {
    ["InsufficientStorage", "database or disk is full", "No space left on device"]
        .iter()
        .any(|part| text.contains(part))
}

/// Prints an error on standard error, and returns the exit status for it.
pub(crate) fn report(error: &anyhow::Error) -> ExitStatus {
    let problem = error.chain().find_map(|cause| cause.downcast_ref::<Problem>());
    let refused = error.chain().find_map(|cause| cause.downcast_ref::<Refusal>());
    let in_use = error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(EmbeddedError::InUse { .. }))
            || matches!(cause.downcast_ref(), Some(AttachError::OtherVersion { .. }))
    });
    let is_silent =
        error.chain().any(|cause| matches!(cause.downcast_ref(), Some(AttachError::Silent { .. })));
    let is_denied = error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(EmbeddedError::File { source, .. })
            if source.kind() == ErrorKind::PermissionDenied)
    });
    let hint = match problem {
        Some(problem) => problem.hint.as_deref(),
        None if refused.is_some_and(Refusal::is_unauthorized) => Some(
            "set BENCH_API_KEY to an access token or a provider key, or BENCH_ADMIN_SECRET to the operator's secret",
        ),
        None if is_unusable_python(error) => Some("`bench sandy setup` creates one"),
        None if refused.and_then(Refusal::code) == Some(Code::RunNotFound) => {
            Some("`bench runs` lists the runs")
        }
        None if refused.and_then(Refusal::code) == Some(Code::TaskNotFound) => {
            Some("`bench tasks list --all` lists the tasks")
        }
        None if refused.and_then(Refusal::code) == Some(Code::RunNotOver) => Some(
            "`bench runs RUN` shows its state, `bench runs RUN --items` its answers so far, and `bench run --resume RUN` \
             continues it if it was interrupted",
        ),
        None if in_use => Some(IN_USE_HINT),
        None if is_denied => {
            Some("it may belong to another user: give a folder of your own with --data-dir or BENCH_HOME")
        }
        None if is_silent => Some("continue it with `fg` in its terminal if it was stopped there, or end it"),
        None => None,
    };
    output::error(&sentence(error));
    if let Some(hint) = hint {
        output::hint(hint);
    }
    match problem {
        Some(problem) => problem.status,
        None if refused.and_then(Refusal::code).is_some_and(is_wrong_usage) => ExitStatus::Usage,
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
            | Code::UserKeyRequired
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

/// Returns the last line of a program's error output that isn't blank.
pub(crate) fn last_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// Formats an error and its causes in one line, without repeating causes that a text already contains.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        let cause = cause.trim().trim_end_matches('.');
        if text.is_empty() {
            text.push_str(&lowercase_start(cause));
        } else if !text.contains(cause) {
            text = format!("{text}: {}", lowercase_start(cause));
        }
    }
    text.replace('\n', " ")
}

/// First words of sentences that libraries and servers write. Other words may be names, and keep their case.
const FIRST_WORDS: [&str; 31] = [
    "Access",
    "Demo",
    "None",
    "A",
    "An",
    "Another",
    "Benchmark",
    "Cannot",
    "Could",
    "Invalid",
    "Item",
    "It",
    "Maximum",
    "Missing",
    "Model",
    "No",
    "Not",
    "Nothing",
    "Only",
    "Provider",
    "Run",
    "Sample",
    "Schedule",
    "Sign",
    "Stored",
    "Storing",
    "The",
    "There",
    "This",
    "Too",
    "You",
];

/// Formats a sentence of a library or server as all messages of this program: one line that starts in lower case and has
/// no final period.
pub(crate) fn plain(text: &str) -> String {
    lowercase_start(text.trim().trim_end_matches('.')).replace('\n', " ")
}

/// Makes the first letter of a sentence lower-case, as in all messages of this program.
fn lowercase_start(text: &str) -> String {
    let first = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    match FIRST_WORDS.contains(&first) {
        true => format!("{}{}", first.to_ascii_lowercase(), text.get(first.len()..).unwrap_or_default()),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use bench_stack::sandboxes::python::PythonEnvironment;
    use http::StatusCode;

    use super::*;

    #[test]
    fn causes_are_not_repeated() {
        let error = std::io::Error::other("disk on fire");
        let error =
            Err::<(), _>(error).context("could not write x: disk on fire").context("no export").unwrap_err();
        assert_eq!(sentence(&error), "no export: could not write x: disk on fire");
    }

    #[test]
    fn sentences_start_in_lower_case_and_names_are_kept() {
        for (text, shown) in [
            ("Run not found", "run not found"),
            ("The data directory /x is in use.", "the data directory /x is in use"),
            ("Chutes can't be reached", "Chutes can't be reached"),
            ("HF_TOKEN: two words", "HF_TOKEN: two words"),
            ("Runaway", "Runaway"),
        ] {
            assert_eq!(sentence(&anyhow::anyhow!("{text}")), shown);
        }
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
            let error = Refusal::new(status, code, "no");
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
