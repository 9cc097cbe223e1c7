//! Protocols by which an agent changes an item's files in a sandbox.

use std::time::Duration;

use bench_domain::{Answer, JobReport, JobSpec};
use bench_items::Item;

use crate::grading::Grading;
use crate::item_problem::ItemProblem;
use crate::options::Options;

/// Command of an agent in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceCommand {
    /// Script for `bash`.
    pub script: String,
    /// Time after which it is killed.
    pub time_limit: Duration,
    /// Maximum number of bytes of output to keep, at each end.
    pub output_bytes_max: usize,
}

/// End of a command. Its output is untrusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceCommandEnd {
    /// Exit code; `None` if the command was killed.
    pub exit_code: Option<i32>,
    /// True if it was killed because its time was over.
    pub is_timed_out: bool,
    /// Standard output and standard error, in the order of writing.
    pub output: String,
    /// Bytes left out between the halves of the output.
    pub omitted_bytes: u64,
    /// Run time in milliseconds.
    pub elapsed_ms: u64,
}

/// Change that an agent made in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceChange {
    /// The change in a form that [`WorkspaceProtocol::grade`] reads; empty if nothing has changed.
    pub reply: String,
    /// Files that aren't part of it, a line each with the reason.
    pub left_out: String,
}

/// Reason why an agent's work has no change that can be graded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceError {
    /// It is larger than a change may be, in one sentence.
    #[error("{0}")]
    TooLarge(String),
    /// The job wrote no result that can be read.
    #[error("the agent's files could not be read: {0}")]
    Unreadable(String),
}

/// Protocol by which an agent changes an item's files in a sandbox, and the change is graded as a model's reply would be. All
/// functions are pure; callers run the jobs, all of them in one sandbox.
pub trait WorkspaceProtocol: Send + Sync {
    /// Returns the text about the item for the agent.
    ///
    /// # Errors
    /// If the item doesn't match the format of its dataset.
    fn instruction(&self, item: &Item) -> Result<String, ItemProblem>;

    /// Returns the agent's first message, with this text about an item, under a benchmark's options. `{folder}` in it stands for
    /// the workspace's folder, which only a sandbox knows.
    fn first_message(&self, instruction: &str, options: &Options) -> String;

    /// Returns the maximum time of the agent's work, in which its model's replies and its commands count.
    fn time_limit(&self) -> Duration;

    /// Returns the job that lays out the workspace. Its probe says what a sandbox lacks.
    ///
    /// # Errors
    /// If the item doesn't match the format of its dataset.
    fn layout(&self, item: &Item) -> Result<JobSpec, ItemProblem>;

    /// Returns the workspace's folder from the report of [`Self::layout`].
    fn folder(&self, report: &JobReport) -> Option<String>;

    /// Returns the job that runs a command in the workspace.
    ///
    /// # Errors
    /// If the item doesn't match the format of its dataset.
    fn command(&self, item: &Item, command: &WorkspaceCommand) -> Result<JobSpec, ItemProblem>;

    /// Reads the report of [`Self::command`].
    fn command_end(&self, report: &JobReport) -> WorkspaceCommandEnd;

    /// Returns the job that collects the changed files as data.
    ///
    /// # Errors
    /// If the item doesn't match the format of its dataset.
    fn collection(&self, item: &Item) -> Result<JobSpec, ItemProblem>;

    /// Computes the change from the report of [`Self::collection`].
    ///
    /// # Errors
    /// If there is none that can be graded.
    fn change(&self, item: &Item, report: &JobReport) -> Result<WorkspaceChange, WorkspaceError>;

    /// Grades the change, or names the stage that does.
    fn grade(&self, item: &Item, change: &Answer) -> Grading;
}
