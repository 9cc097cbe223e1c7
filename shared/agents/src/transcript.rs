//! Transcripts: everything that agent and model wrote, each text once.

use serde::{Deserialize, Serialize};

use crate::dialogue::{DialogueMessage, DialogueOpening};
use crate::model::{ModelCall, ModelFailure, ModelReply};
use crate::usage::Usage;

/// Transcript of an episode. Steps add parts at its end and change none, so that stored bytes grow linearly with
/// turns; conversations are rebuilt from the parts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Transcript {
    parts: Vec<Part>,
}

/// Part of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Part {
    /// Message to the model.
    Message(Message),
    /// The model's reply to the message before it.
    Reply(Reply),
    /// Failure of the call with the message before it.
    Failure(ModelFailure),
    /// The conversation is shortened to its first messages.
    Shorten {
        /// Number of messages that are kept.
        messages: usize,
    },
    /// The conversation is replaced.
    Replace {
        /// Places of the new conversation's messages and replies in the transcript.
        parts: Vec<usize>,
    },
    /// Beginning of a conversation with a simulated user.
    Opening(Box<DialogueOpening>),
    /// Message of a conversation with a simulated user.
    Dialogue(Box<DialogueMessage>),
}

/// Message to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Purpose.
    pub purpose: Purpose,
    /// Text.
    pub text: String,
    /// Time of day as ISO 8601 text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// Purposes of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// First message: instructions and task.
    Task,
    /// Result of the turn.
    Observation,
    /// Question whether the task is complete.
    Confirmation,
    /// The reply had no valid form, and nothing was executed.
    FormatError,
    /// The reply was cut by the length limit, and nothing was executed.
    OutputCut,
    /// The conversation continues from a summary.
    HandOver,
    /// Request for a summary.
    Summary,
    /// Request for questions about a summary.
    Questions,
    /// Request for answers to these questions.
    Answers,
    /// Request for a summary in few sentences.
    ShortSummary,
}

impl Purpose {
    /// Returns true for messages of the conversation; the others belong to calls beside it.
    pub(crate) const fn is_in_conversation(self) -> bool {
        !matches!(self, Self::Summary | Self::Questions | Self::Answers | Self::ShortSummary)
    }
}

/// Reply of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Number of the turn, from 1.
    pub turn: u32,
    /// Text.
    pub text: String,
    /// Length of its beginning that counts, in bytes, if that is less than the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<usize>,
    /// True if it answers a call beside the conversation.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_aside: bool,
    /// True if the length limit cut it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_cut: bool,
    /// Reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Name of the model that answered, if it differs from the one that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens and cost.
    pub usage: Usage,
    /// Time from request to reply in milliseconds.
    pub latency_ms: u64,
    /// Time of day as ISO 8601 text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Reply {
    pub(crate) fn new(turn: u32, reply: ModelReply, at: Option<String>) -> Self {
        let ModelReply { text, reasoning, is_cut, model, usage, latency_ms } = reply;
        Self {
            turn,
            text,
            used_bytes: None,
            is_aside: false,
            is_cut,
            reasoning,
            model,
            usage,
            latency_ms,
            at,
        }
    }

    /// Returns the text that counts.
    pub fn used_text(&self) -> &str {
        self.used_bytes.and_then(|end| self.text.get(..end)).unwrap_or(&self.text)
    }
}

/// Writer of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// We.
    User,
    /// The model.
    Assistant,
}

/// Message of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChatMessage<'a> {
    /// Writer.
    pub role: Role,
    /// Text.
    pub content: &'a str,
}

impl Transcript {
    /// Creates a transcript of parts that were stored.
    pub fn new(parts: Vec<Part>) -> Self {
        Self { parts }
    }

    /// Returns all parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the beginning of a conversation with a simulated user; `None` in other transcripts.
    pub fn opening(&self) -> Option<&DialogueOpening> {
        self.parts.iter().find_map(|part| match part {
            Part::Opening(opening) => Some(opening.as_ref()),
            _ => None,
        })
    }

    /// Returns the messages of a conversation with a simulated user.
    pub fn dialogue(&self) -> Vec<DialogueMessage> {
        let messages = self.parts.iter().filter_map(|part| match part {
            Part::Dialogue(message) => Some(message.as_ref().clone()),
            _ => None,
        });
        messages.collect()
    }

    /// Adds the parts of a step.
    pub fn extend(&mut self, parts: impl IntoIterator<Item = Part>) {
        self.parts.extend(parts);
    }

    /// Returns the messages of a model call, in order.
    pub fn request(&self, call: &ModelCall) -> Vec<ChatMessage<'_>> {
        call.parts.iter().filter_map(|at| self.chat_message(*at)).collect()
    }

    fn chat_message(&self, at: usize) -> Option<ChatMessage<'_>> {
        match self.parts.get(at)? {
            Part::Message(message) => Some(ChatMessage { role: Role::User, content: &message.text }),
            Part::Reply(reply) => Some(ChatMessage { role: Role::Assistant, content: reply.used_text() }),
            Part::Failure(_)
            | Part::Shorten { .. }
            | Part::Replace { .. }
            | Part::Opening(_)
            | Part::Dialogue(_) => None,
        }
    }

    /// Returns the place of the last message with a purpose.
    pub(crate) fn last_message(&self, purpose: Purpose) -> Option<usize> {
        self.parts
            .iter()
            .rposition(|part| matches!(part, Part::Message(message) if message.purpose == purpose))
    }

    /// Returns the last reply.
    pub(crate) fn last_reply(&self) -> Option<&Reply> {
        self.parts.iter().rev().find_map(|part| match part {
            Part::Reply(reply) => Some(reply),
            _ => None,
        })
    }
}
