//! Model calls: requests, replies and failures.

use serde::{Deserialize, Serialize};

use crate::output::beginning;
use crate::usage::Usage;

/// Maximum length of a reply and of its reasoning in bytes. Longer ones count as cut by the length limit.
pub const REPLY_BYTES_MAX: usize = 16 << 20;
/// Maximum length of a failure's message in bytes.
const FAILURE_BYTES_MAX: usize = 4_096;

/// Messages of a model call, by their places in the transcript. [`Transcript::request`](crate::Transcript::request)
/// returns their texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCall {
    pub(crate) parts: Vec<usize>,
}

/// Reply of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelReply {
    /// Text.
    pub text: String,
    /// Reasoning, if the provider returns it. It isn't part of later requests.
    pub reasoning: Option<String>,
    /// True if the length limit cut the text.
    pub is_cut: bool,
    /// Name of the model that answered, if it differs from the one that was asked.
    pub model: Option<String>,
    /// Tokens and cost.
    pub usage: Usage,
    /// Time from request to reply in milliseconds.
    pub latency_ms: u64,
}

impl ModelReply {
    /// Cuts texts that are too long.
    pub(crate) fn bounded(mut self) -> Self {
        if self.text.len() > REPLY_BYTES_MAX {
            self.text = beginning(&self.text, REPLY_BYTES_MAX).to_owned();
            self.is_cut = true;
        }
        self.reasoning = self.reasoning.map(|text| beginning(&text, REPLY_BYTES_MAX).to_owned());
        self
    }
}

/// Failure of a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// Kind.
    pub kind: ModelFailureKind,
    /// Sentence for people.
    pub message: String,
    /// Time from request to failure in milliseconds.
    #[serde(default)]
    pub latency_ms: u64,
}

impl ModelFailure {
    pub(crate) fn bounded(mut self) -> Self {
        self.message = beginning(&self.message, FAILURE_BYTES_MAX).to_owned();
        self
    }
}

/// Kinds of failures that agents distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFailureKind {
    /// The messages don't fit into the model's context.
    ContextExceeded,
    /// Anything else.
    Other,
}
