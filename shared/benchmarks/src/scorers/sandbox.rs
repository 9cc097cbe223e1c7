//! What is run in a sandbox to grade an answer, and what comes of it.

use std::collections::BTreeMap;

use bench_domain::{Code, JobReport, JobSpec, SampleBody, StoredFile, Verdict};
use bench_items::Item;
use serde::Serialize;

use crate::item_problem::ItemProblem;
use crate::material::Templates;

/// What does not change about the execution of a benchmark's answers.
#[derive(Debug, Clone, Serialize)]
pub struct SandboxFacts {
    /// What has to be there beside Python 3 and bash, for people.
    pub needs: &'static str,
    /// Python packages without which nothing can be graded, as they are imported.
    pub packages: &'static [&'static str],
    /// The official program that grades, by name.
    pub grader: &'static str,
    /// How many sandboxes a sample may use up before it ends without a verdict.
    pub rounds_max: u32,
    /// What a verdict is, in one sentence.
    pub verdict: &'static str,
}

/// What a job may be made of besides the item and the answer.
#[derive(Debug, Clone, Copy)]
pub struct JobMaterial<'a> {
    /// The official texts and programs that were loaded.
    pub templates: &'a Templates,
    /// Files beside the items, by name.
    pub attachments: &'a BTreeMap<String, StoredFile>,
    /// Random text of this round, which nobody outside knows: for sealing what graders leave.
    pub nonce: &'a str,
}

/// Which of a sample's sandboxes a report comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round<'a> {
    /// Its number, from 1.
    pub number: u32,
    /// What its job was made with.
    pub nonce: &'a str,
}

/// A report that holds no verdict: nothing can be said about the answer yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no verdict: {why}")]
pub struct Unread {
    /// Why, for people.
    pub why: String,
    /// Code of the cause.
    pub code: Code,
    /// Whether another sandbox may come to a verdict; where not, the sample ends at once.
    pub again: bool,
}

impl Unread {
    /// Another sandbox may do better.
    pub fn again(why: impl Into<String>) -> Self {
        Self { why: why.into(), code: Code::SandboxNoVerdict, again: true }
    }

    /// Every sandbox would end like that until somebody does something: `why` says what.
    pub fn for_good(code: Code, why: impl Into<String>) -> Self {
        Self { why: why.into(), code, again: false }
    }

    /// The same, where it lies in the item or in what belongs to it.
    pub(crate) fn ungradable(why: &str) -> Self {
        Self::for_good(Code::InvalidItem, format!("The item cannot be graded: {why}"))
    }
}

/// Where a program's results are compared with the right ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GradingMode {
    /// In a process that the program cannot reach.
    Isolated,
    /// In the program's own process, as in official programs.
    Official,
}

impl GradingMode {
    /// Name of the option that chooses the mode.
    pub(crate) const OPTION: &'static str = "grading";

    /// Returns its name in options and verdicts.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::Official => "official",
        }
    }

    /// Returns the mode of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Isolated, Self::Official].into_iter().find(|mode| mode.as_str() == name)
    }
}

/// How answers to a benchmark are graded by running them. Pure functions: who runs a job is not known here.
pub trait SandboxGrader: Send + Sync {
    /// What it is.
    fn facts(&self) -> &'static SandboxFacts;

    /// The job that grades an answer. Model output goes into files, never into the script's text.
    ///
    /// # Errors
    /// When the item is not as its dataset promises.
    fn job(&self, item: &Item, body: &SampleBody, material: &JobMaterial<'_>)
    -> Result<JobSpec, ItemProblem>;

    /// The code of an answer as the job runs it, for people; `None` takes what the verdict says was extracted.
    fn code(&self, body: &SampleBody) -> Option<String> {
        let _ = body;
        None
    }

    /// The verdict in what a job left behind, in this round: what is there was written beside untrusted
    /// programs. Results that depend on the machine, such as a time limit, may ask for another round.
    ///
    /// # Errors
    /// [`Unread`] when nothing can be said: where that helps the job is run again, up to [`SandboxFacts::rounds_max`].
    fn read(
        &self,
        item: &Item,
        body: &SampleBody,
        report: &JobReport,
        round: Round<'_>,
    ) -> Result<Verdict, Unread>;
}
