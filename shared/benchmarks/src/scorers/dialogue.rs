//! Protocols of conversations between an agent and a simulated user, with tools in a sandbox.

use bench_agents::dialogue::{Dialogue, DialogueCall, DialogueMessage, DialogueOpening};
use bench_domain::{DialogueReport, Generation, JobReport, JobSpec, Verdict};
use bench_items::Item;
use serde::Serialize;
use serde_json::Value;

use crate::item_problem::ItemProblem;
use crate::metadata::serialize_generation;

/// Constant properties of a benchmark's user simulator.
#[derive(Debug, Clone, Serialize)]
pub struct UserMetadata {
    /// Model of the official protocol's user simulator, as its authors name it.
    pub official_model: &'static str,
    /// Default generation settings of the user simulator.
    #[serde(serialize_with = "serialize_generation")]
    pub generation: fn() -> Generation,
}

/// Step that a sandbox carries out.
#[derive(Debug, Clone, Copy)]
pub enum DialogueStep<'a> {
    /// Return texts, tools and first messages.
    Open,
    /// Return the actions of a right conversation.
    Gold,
    /// Replay these messages, and execute these calls.
    Call {
        /// Messages before the one with the calls.
        messages: &'a [DialogueMessage],
        /// The calls.
        calls: &'a [DialogueCall],
    },
    /// Compute the reward of the whole conversation.
    Evaluate {
        /// All messages.
        messages: &'a [DialogueMessage],
        /// Official name of the reason for the end.
        termination: &'static str,
    },
}

/// Answer to [`DialogueStep::Open`].
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedDialogue {
    /// Texts and tools.
    pub opening: DialogueOpening,
    /// First messages, at least one.
    pub messages: Vec<DialogueMessage>,
}

/// Failure of a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepProblem {
    /// The sandbox lacks the package, or has another version. The sentence says what to do.
    #[error("{0}")]
    Setup(String),
    /// The task is unknown to the package, or the request is invalid.
    #[error("{0}")]
    Refused(String),
    /// The recorded messages can't be replayed.
    #[error("the conversation could not be replayed: {0}")]
    ReplayDiffers(String),
    /// The step has no result that can be read. Another try may have one.
    #[error("{0}")]
    Unreadable(String),
}

/// Protocol of a benchmark's conversations. All functions are pure; callers run the jobs, ask the models and keep the messages.
pub trait DialogueProtocol: Send + Sync {
    /// Returns the description of the user simulator.
    fn user(&self) -> &'static UserMetadata;

    /// Returns the limits of a conversation with these marks that end it.
    fn rules(&self, stop_tokens: &[String]) -> Dialogue;

    /// Returns the seed of both models in a sample with this index (from 0) of an item.
    fn seed(&self, trial: u32) -> i64;

    /// Returns the name of the agent in results.
    fn agent(&self) -> &'static str;

    /// Returns the job that carries out a step. Jobs depend on no other job, so each can run in any sandbox.
    ///
    /// # Errors
    /// If the item doesn't match the format of its dataset.
    fn job(&self, item: &Item, step: DialogueStep<'_>) -> Result<JobSpec, ItemProblem>;

    /// Reads the report of [`DialogueStep::Open`].
    ///
    /// # Errors
    /// Returns the problem of the step.
    fn opened(&self, report: &JobReport) -> Result<OpenedDialogue, StepProblem>;

    /// Reads the results of these calls from the report of [`DialogueStep::Call`].
    ///
    /// # Errors
    /// Returns the problem of the step.
    fn results(
        &self,
        calls: &[DialogueCall],
        report: &JobReport,
    ) -> Result<Vec<DialogueMessage>, StepProblem>;

    /// Reads the reward with its parts from the report of [`DialogueStep::Evaluate`].
    ///
    /// # Errors
    /// Returns the problem of the step.
    fn reward_info(&self, report: &JobReport) -> Result<Value, StepProblem>;

    /// Reads the actions of a right conversation from the report of [`DialogueStep::Gold`].
    ///
    /// # Errors
    /// Returns the problem of the step.
    fn gold(&self, report: &JobReport) -> Result<Vec<DialogueCall>, StepProblem>;

    /// Returns the verdict on a conversation with a reward.
    fn verdict(&self, report: &DialogueReport) -> Verdict;
}
