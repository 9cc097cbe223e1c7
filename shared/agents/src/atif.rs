//! Trajectories in the Agent Trajectory Interchange Format, version 1.8.
//!
//! Fields without a value are left out. Only what our agents produce is here: no images, no log probabilities.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Version of the format.
pub const ATIF_VERSION: &str = "ATIF-v1.8";

/// Course of an episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trajectory {
    /// [`ATIF_VERSION`].
    pub schema_version: String,
    /// Name of the session, which calls beside the conversation extend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Agent.
    pub agent: AtifAgent,
    /// Steps, at least one, numbered from 1.
    pub steps: Vec<AtifStep>,
    /// Totals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_metrics: Option<FinalMetrics>,
    /// Further values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// Agent of a trajectory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtifAgent {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Name of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// Further values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// Source of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtifSource {
    /// The harness.
    System,
    /// Who gives the task.
    User,
    /// The agent.
    Agent,
}

/// Step of a trajectory. The fields from `model_name` to `metrics` belong to steps of the agent only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtifStep {
    /// Number, from 1 without gaps.
    pub step_id: usize,
    /// Time of day as ISO 8601 text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Source.
    pub source: AtifSource,
    /// Text.
    pub message: String,
    /// Name of the model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// Reasoning; absent without a model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// What the agent did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What it saw afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<AtifObservation>,
    /// Tokens and cost; absent without a model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Number of model calls, if it isn't one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_call_count: Option<u32>,
    /// Further values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// Action of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Id, unique in the trajectory.
    pub tool_call_id: String,
    /// Name of the action.
    pub function_name: String,
    /// Arguments.
    pub arguments: Map<String, Value>,
}

/// Observations of a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtifObservation {
    /// Observations.
    pub results: Vec<AtifResult>,
}

/// Observation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtifResult {
    /// Id of the tool call of the same step that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_call_id: Option<String>,
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Trajectories of other agents that caused it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagent_trajectory_ref: Vec<SubagentRef>,
}

/// Reference to a trajectory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubagentRef {
    /// File.
    pub trajectory_path: String,
    /// Name of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Tokens and cost of a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Tokens of the request.
    pub prompt_tokens: u64,
    /// Tokens of the reply.
    pub completion_tokens: u64,
    /// Part of the request's tokens that was read from a cache; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Cost in dollars; absent if it is 0 or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Further values, such as `latency_ms`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// Totals of a trajectory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinalMetrics {
    /// Tokens of all requests.
    pub total_prompt_tokens: u64,
    /// Tokens of all replies.
    pub total_completion_tokens: u64,
    /// Tokens that were read from a cache.
    pub total_cached_tokens: u64,
    /// Cost in dollars; absent if it is 0 or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cost_usd: Option<f64>,
    /// Number of steps.
    pub total_steps: usize,
}
