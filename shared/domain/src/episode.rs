//! Episodes: what an agent did in the environment of a terminal task, and how its work was verified.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Timestamp, Usage};

/// Checkpoint of an episode: what its next turn needs. Saved before each side effect outside the sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpisodeState {
    /// Number of the sample's sandbox, from 1. An episode whose sandbox was lost starts over in another.
    pub round: u32,
    /// Random text of this round, in the names of its environments.
    pub nonce: String,
    /// Id of the sandbox at its host; `None` before it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Time at which the sample's first sandbox was there; `None` while the sample waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Small results of operations that are over, by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub done: Map<String, Value>,
    /// Operation that was running when the last turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenOperation>,
    /// Agent that asks a model, while it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentProgress>,
    /// Tokens of all model calls of the sample, those of earlier rounds included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid: Option<Usage>,
    /// Tokens of all calls of the user simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_paid: Option<Usage>,
    /// Number of earlier rounds that ended with an exception. Rounds whose sandbox was lost don't count. Checkpoints of older
    /// versions don't have it.
    #[serde(default, skip_serializing_if = "is_no_exception")]
    pub exceptions: u32,
}

/// Tells serde to leave the number out of checkpoints without exceptions.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_no_exception(exceptions: &u32) -> bool {
    *exceptions == 0
}

/// Start of an episode, as its checkpoint has it: the part of [`EpisodeState`] that views need. An episode starts when it has
/// its first sandbox; before that, it waits for one, though a worker may hold its sample.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct EpisodeStart {
    /// Time of the first sandbox. Checkpoints of older versions don't have it.
    #[serde(default)]
    pub started_at: Option<Timestamp>,
    #[serde(default)]
    sandbox: Option<IgnoredAny>,
}

impl EpisodeStart {
    /// Returns true once the episode has started. It stays true while a lost sandbox is replaced.
    pub const fn is_made(&self) -> bool {
        self.started_at.is_some() || self.sandbox.is_some()
    }
}

/// Progress of an agent that asks a model. Its transcript is stored in records, one for each of its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentProgress {
    /// Index of the task's step on which it works.
    pub task_step: usize,
    /// Number of stored records of its transcript.
    pub records: u32,
    /// State of the agent as JSON; its size is bounded.
    pub state: Value,
    /// Milliseconds that count against its time limit: those of model calls and commands, without waits for a provider, a
    /// sandbox or a message.
    pub elapsed_ms: u64,
    /// What it has used.
    #[serde(default)]
    pub totals: AgentTotals,
}

impl AgentProgress {
    /// Creates the progress of an agent that hasn't begun.
    pub const fn new(task_step: usize) -> Self {
        let totals = AgentTotals {
            turns: 0,
            calls: 0,
            input_tokens: 0,
            cached_tokens: 0,
            output_tokens: 0,
            cost_usd: 0.0,
            model_ms: 0,
        };
        Self { task_step, records: 0, state: Value::Null, elapsed_ms: 0, totals }
    }
}

/// Record of a step of an agent: its progress afterwards, and what the step adds to the transcript. Written once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Progress after the step.
    pub progress: AgentProgress,
    /// Parts of the transcript as JSON, in order.
    pub parts: Vec<Value>,
    /// Tokens of the step's model call; `None` if it made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid: Option<Usage>,
    /// Tokens of the step's call of the user simulator; `None` if it made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_paid: Option<Usage>,
}

/// Sums over the model calls of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentTotals {
    /// Turns that were begun.
    pub turns: u32,
    /// Model calls that were answered.
    pub calls: u32,
    /// Tokens of requests, those read from a cache included.
    pub input_tokens: u64,
    /// Part of the requests' tokens that was read from a cache.
    pub cached_tokens: u64,
    /// Tokens of replies, reasoning included.
    pub output_tokens: u64,
    /// Cost in US dollars; 0 if it is unknown.
    pub cost_usd: f64,
    /// Milliseconds of model calls.
    pub model_ms: u64,
}

/// End of an agent that asks a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentOutcome {
    /// Reason for the end, such as `completed` or `turn_limit`.
    pub end: String,
    /// Exception that Harbor raises for it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<EpisodeException>,
    /// Origin of the agent's own texts: `official` or `own`.
    pub prompt: String,
    /// Milliseconds that counted against its time limit.
    pub elapsed_ms: u64,
    /// What it used.
    pub totals: AgentTotals,
    /// Number of stored records of its transcript.
    pub records: u32,
}

/// Operation that hasn't ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenOperation {
    /// Name of its environment.
    pub environment: String,
    /// Name of the operation.
    pub name: String,
    /// Number of turns that left it running.
    pub polls: u32,
}

impl EpisodeState {
    /// Name of the reason, among the small results, for which an operation that failed is repeated later.
    pub const DELAY_REASON: &str = "delay-reason";

    /// Returns why an operation that failed is repeated later; `None` if none is.
    pub fn delay_reason(&self) -> Option<&str> {
        self.done.get(Self::DELAY_REASON)?.as_str()
    }

    /// Creates the state of a round that hasn't begun.
    pub fn new(round: u32, nonce: impl Into<String>) -> Self {
        Self {
            round,
            nonce: nonce.into(),
            sandbox: None,
            started_at: None,
            done: Map::new(),
            open: None,
            agent: None,
            paid: None,
            user_paid: None,
            exceptions: 0,
        }
    }
}

/// Result of an episode. Containers have written its texts and numbers, so all of them are untrusted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EpisodeReport {
    /// Name of the agent.
    pub agent: String,
    /// Number of the sample's sandbox, from 1.
    pub round: u32,
    /// Name and version of the container engine; empty if none was reached.
    #[serde(default)]
    pub engine: String,
    /// Steps that were begun, at least one unless the environment failed.
    pub steps: Vec<EpisodeStep>,
    /// Exception that ended the episode outside of its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<EpisodeException>,
    /// Rewards of the episode by key, combined from those of its steps; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewards: Option<BTreeMap<String, f64>>,
    /// Milliseconds from the start of the first operation to the running environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_ms: Option<u64>,
    /// Files of the environment that were kept, and outputs of the engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<EpisodeLog>,
    /// End of the test script's output.
    #[serde(default)]
    pub test_output: String,
    /// Conversation with a simulated user; `None` for other episodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialogue: Option<Box<DialogueReport>>,
}

/// Conversation of an agent with a simulated user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DialogueReport {
    /// Official name of the reason for its end, such as `user_stop`; empty if it was not ended.
    pub termination: String,
    /// Messages in order, in the form of the official package, with times, tokens and cost. Long texts are cut.
    pub messages: Vec<Value>,
    /// Number of messages passed on.
    pub steps: u32,
    /// Number of failed tool calls.
    pub errors: u32,
    /// Index of the sample among those of its item, from 0.
    pub trial: u32,
    /// Seed of the trial. Each model is sent it, unless the order names a seed for that model.
    pub seed: i64,
    /// Name of the user simulator's model, with its provider.
    pub user_model: String,
    /// Version and digest of the package that held environment and evaluator.
    pub package: String,
    /// Reward of the conversation; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<f64>,
    /// Reward with its parts, as the evaluator reports them.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub reward_info: Value,
    /// What the agent used.
    pub agent: AgentTotals,
    /// What the user simulator used.
    pub user: AgentTotals,
}

/// Step of an episode. A task without steps has one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EpisodeStep {
    /// Name; `None` if the task has no steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Rewards by key; `None` if the verification ended without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewards: Option<BTreeMap<String, f64>>,
    /// First exception, or the one that decides the grade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<EpisodeException>,
    /// Run time of the agent in milliseconds; `None` if it did not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_ms: Option<u64>,
    /// End of an agent that asks a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentOutcome>,
    /// Run time of the test script in milliseconds; `None` if it did not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier_ms: Option<u64>,
    /// Numbers of tests, as the test script reports them. They have no effect on the reward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
}

/// Exception of an episode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeException {
    /// Name, such as `AgentTimeoutError`.
    pub name: String,
    /// Sentence for people.
    pub message: String,
}

/// Numbers of tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    /// All tests.
    pub total: u64,
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
}

/// Text file of an episode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeLog {
    /// Path among the kept files, such as `verifier/test-stdout.txt`.
    pub name: String,
    /// Text; bytes that aren't UTF-8 are replaced. If bytes were left out, a line in its middle says so.
    pub text: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of bytes that were left out in the middle.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl EpisodeReport {
    /// Returns the exception that ended the episode or a step of it, the last one.
    pub fn last_exception(&self) -> Option<&EpisodeException> {
        let of_step = || self.steps.iter().rev().find_map(|step| step.exception.as_ref());
        self.exception.as_ref().or_else(of_step)
    }

    /// Returns the time of setup, agent and verifier together in milliseconds; `None` if no part was measured.
    pub fn duration_ms(&self) -> Option<u64> {
        let parts = self.steps.iter().flat_map(|step| [step.agent_ms, step.verifier_ms]);
        parts.chain([self.setup_ms]).flatten().reduce(u64::saturating_add)
    }

    /// Returns a kept file.
    pub fn log(&self, name: &str) -> Option<&EpisodeLog> {
        self.logs.iter().find(|log| log.name == name)
    }
}
