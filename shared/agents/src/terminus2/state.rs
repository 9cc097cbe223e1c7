//! State of `terminus-2` between steps.

use serde::{Deserialize, Serialize};

use super::CaptureMark;
use crate::end::End;
use crate::usage::Usage;

/// State of `terminus-2`, a part of an episode's checkpoint. Its size is bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terminus2State {
    /// Number of the step that waits for an observation.
    pub(super) step: u32,
    /// Number of parts of the transcript.
    pub(super) parts: usize,
    /// Turns that were begun.
    pub(super) turn: u32,
    /// What the step waits for.
    pub(super) phase: Phase,
    /// True if the last reply said that the task is complete.
    #[serde(default)]
    pub(super) is_confirming: bool,
    /// Last captured history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mark: Option<CaptureMark>,
    /// Tokens and cost of all model calls.
    #[serde(default)]
    pub(super) used: Usage,
    /// Summaries that were begun.
    #[serde(default)]
    pub(super) summaries: u32,
    /// Replies in a row that were cut by the length limit.
    #[serde(default)]
    pub(super) cuts: u32,
}

impl Terminus2State {
    /// Returns the state of an agent that hasn't begun.
    pub(super) const fn new() -> Self {
        Self {
            step: 0,
            parts: 0,
            turn: 0,
            phase: Phase::Opening,
            is_confirming: false,
            mark: None,
            used: Usage { input_tokens: 0, cached_tokens: 0, output_tokens: 0, cost_usd: 0.0 },
            summaries: 0,
            cuts: 0,
        }
    }

    /// Returns the number of the step that waits for an observation.
    pub const fn step(&self) -> u32 {
        self.step
    }

    /// Returns the number of parts that the transcript has. Further ones were stored by an attempt that was lost, and
    /// are written again.
    pub const fn parts(&self) -> usize {
        self.parts
    }

    /// Returns the number of turns that were begun.
    pub const fn turns(&self) -> u32 {
        self.turn
    }

    /// Returns the number of summaries that were begun.
    pub const fn summaries(&self) -> u32 {
        self.summaries
    }

    /// Returns tokens and cost of all model calls, those of cut replies and summaries included.
    pub const fn used(&self) -> Usage {
        self.used
    }

    /// Returns the end of the agent; `None` while it works.
    pub const fn end(&self) -> Option<&End> {
        match &self.phase {
            Phase::Ended { end } => Some(end),
            _ => None,
        }
    }
}

/// What a step waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub(super) enum Phase {
    /// First look at the terminal.
    Opening,
    /// Reply to the conversation. If it is asked for after a full context, a failure doesn't end the episode.
    Asking { is_last_attempt: bool },
    /// Terminal after the commands of the last reply.
    Acting,
    /// Call or look at the screen for a summary.
    Summarizing { cause: Cause, stage: Stage },
    /// Nothing.
    Ended { end: End },
}

/// Reason for a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    /// Few tokens are free.
    Threshold,
    /// A request didn't fit.
    Overflow,
}

/// Stages of a summary, in their order; the last two replace the others if one fails after an overflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub(super) enum Stage {
    Summary,
    Screen,
    Questions,
    Answers,
    ShortScreen,
    ShortSummary {
        /// End of the screen.
        screen: String,
    },
}
