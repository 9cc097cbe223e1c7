//! Grading by running answers in a sandbox: jobs, and verdicts read from their reports.

use std::collections::BTreeMap;

use bench_domain::{Code, EpisodeLog, JobReport, JobSpec, SampleBody, StoredFile, Verdict};
use bench_items::Item;
use serde::Serialize;

use crate::item_problem::ItemProblem;
use crate::material::Templates;

/// Constant properties of a benchmark's execution of answers.
#[derive(Debug, Clone, Serialize)]
pub struct SandboxMetadata {
    /// Description of the requirements in addition to Python 3 and bash.
    pub needs: &'static str,
    /// Import names of the Python packages that grading requires.
    pub packages: &'static [&'static str],
    /// Name of the official grading program.
    pub grader: &'static str,
    /// Maximum number of sandboxes that a sample may use before it ends without a verdict.
    pub rounds_max: u32,
    /// Description of a valid verdict, in one sentence.
    pub verdict: &'static str,
}

/// Material for a job, in addition to the item and the answer.
#[derive(Debug, Clone, Copy)]
pub struct JobMaterial<'a> {
    /// Official texts and programs that were loaded.
    pub templates: &'a Templates,
    /// Files that accompany the items, by name.
    pub attachments: &'a BTreeMap<String, StoredFile>,
    /// Random secret of this round that graders use to authenticate their results.
    pub nonce: &'a str,
}

/// Round of a sample: one use of a sandbox, which a report belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round<'a> {
    /// Number of the round, from 1.
    pub number: u32,
    /// Nonce of the round's job.
    pub nonce: &'a str,
}

/// A report without a verdict. The answer can't be graded yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no verdict: {why}")]
pub struct UnreadableReport {
    /// Explanation for people.
    pub why: String,
    /// Code of the cause.
    pub code: Code,
    /// If true, another sandbox may produce a verdict; otherwise the sample ends at once.
    pub retry: bool,
}

impl UnreadableReport {
    /// Creates the error for a failure that another sandbox may not have.
    pub fn retry(why: impl Into<String>) -> Self {
        Self { why: why.into(), code: Code::SandboxNoVerdict, retry: true }
    }

    /// Creates the error for a failure that every sandbox would have until an operator fixes the cause, which `why`
    /// explains.
    pub fn permanent(code: Code, why: impl Into<String>) -> Self {
        Self { why: why.into(), code, retry: false }
    }

    /// Creates the error for a failure caused by the item or its files.
    pub(crate) fn ungradable(why: &str) -> Self {
        Self::permanent(Code::InvalidItem, format!("The item cannot be graded: {why}"))
    }
}

/// Place where a program's results are compared with the expected ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GradingMode {
    /// In a process that the program can't access.
    Isolated,
    /// In the program's own process, as official programs do.
    Official,
}

impl GradingMode {
    /// Name of the option that selects the mode.
    pub(crate) const OPTION: &'static str = "grading";

    /// Returns the name used in options and verdicts.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::Official => "official",
        }
    }

    /// Returns the mode with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Isolated, Self::Official].into_iter().find(|mode| mode.as_str() == name)
    }
}

/// Protocol for grading a benchmark's answers by running them. All functions are pure; callers run the jobs.
pub trait SandboxGrader: Send + Sync {
    /// Returns the description of the grader.
    fn metadata(&self) -> &'static SandboxMetadata;

    /// Returns the job that grades an answer. Model output is written to files, never into the text of the script.
    ///
    /// # Errors
    /// Returns an error if the item doesn't match the format of its dataset.
    fn job(&self, item: &Item, body: &SampleBody, material: &JobMaterial<'_>)
    -> Result<JobSpec, ItemProblem>;

    /// Returns the code of an answer as the job runs it, for display; `None` takes the code that the verdict extracted, and an
    /// empty text shows none.
    fn code(&self, body: &SampleBody) -> Option<String> {
        let _ = body;
        None
    }

    /// Returns what is kept of a stored attempt, as files for people.
    fn artifacts(&self, item: &Item, body: &SampleBody) -> Vec<EpisodeLog> {
        let _ = (item, body);
        Vec::new()
    }

    /// Reads the verdict from a job's report in this round. The report's files were written next to untrusted programs.
    /// Results that depend on the machine, such as a time limit, can request another round.
    ///
    /// # Errors
    /// Returns [`UnreadableReport`] if the report has no verdict. If a retry can help, callers run the job again, up to
    /// [`SandboxMetadata::rounds_max`] times.
    fn read(
        &self,
        item: &Item,
        body: &SampleBody,
        report: &JobReport,
        round: Round<'_>,
    ) -> Result<Verdict, UnreadableReport>;
}
