//! The result of a check.

use std::future::Future;
use std::time::Duration;

use serde::Serialize;

/// Maximum length of a fact, in characters.
const FACT_CHARS_MAX: usize = 300;

/// Status of a check. The names are part of `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Status {
    /// Works.
    Ok,
    /// Works, with a limit.
    Warning,
    /// Doesn't work.
    Problem,
    /// Optional and missing.
    NotSetUp,
    /// Not checked.
    Skipped,
}

impl Status {
    /// Returns the status as shown in tables.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
            Self::NotSetUp => "not set up",
            Self::Skipped => "skipped",
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// Stable name, for programs.
    pub(super) name: String,
    /// Name of the check, for people.
    #[serde(skip)]
    pub(super) title: String,
    pub(super) status: Status,
    /// Result, as a short phrase.
    pub(super) fact: String,
    /// Advice, for each status except `ok` and `skipped`.
    pub(super) fix: Option<String>,
}

/// Name of a check, for programs and for people.
#[derive(Debug, Clone)]
pub(super) struct Check {
    name: String,
    title: String,
}

impl Check {
    pub(super) fn new(name: impl Into<String>, title: impl Into<String>) -> Self {
        Self { name: name.into(), title: title.into() }
    }

    pub(super) fn ok(&self, fact: impl Into<String>) -> Finding {
        self.finding(Status::Ok, fact.into(), None)
    }

    pub(super) fn skipped(&self, fact: impl Into<String>) -> Finding {
        self.finding(Status::Skipped, fact.into(), None)
    }

    pub(super) fn warning(&self, fact: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.finding(Status::Warning, fact.into(), Some(fix.into()))
    }

    pub(super) fn problem(&self, fact: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.finding(Status::Problem, fact.into(), Some(fix.into()))
    }

    pub(super) fn not_set_up(&self, fact: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.finding(Status::NotSetUp, fact.into(), Some(fix.into()))
    }

    fn finding(&self, status: Status, fact: String, fix: Option<String>) -> Finding {
        Finding { name: self.name.clone(), title: self.title.clone(), status, fact: one_line(&fact), fix }
    }
}

/// Formats a fact as one line without a final period, and truncates long texts from servers.
fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() > FACT_CHARS_MAX {
        return text.chars().take(FACT_CHARS_MAX).chain(['…']).collect();
    }
    text.trim_end_matches('.').to_owned()
}

/// Waits for a result, or returns `None` once the limit has passed.
pub(super) async fn with_timeout<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_one_line() {
        let check = Check::new("x", "X");
        assert_eq!(check.ok("Could not read\n  it.").fact, "Could not read it");
        assert_eq!(check.ok("x".repeat(1_000)).fact.chars().count(), FACT_CHARS_MAX + 1);
        assert_eq!(check.problem("no answer", "wait").fix.as_deref(), Some("wait"));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_hangs_is_given_up() {
        assert_eq!(with_timeout(Duration::from_secs(5), std::future::pending::<()>()).await, None);
        assert_eq!(with_timeout(Duration::from_secs(5), async { 7 }).await, Some(7));
    }
}
