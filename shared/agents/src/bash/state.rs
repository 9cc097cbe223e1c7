//! State of `bash` between steps.

use serde::{Deserialize, Serialize};

use crate::end::End;
use crate::usage::Usage;

/// State of `bash`, a part of an episode's checkpoint. Its size is bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BashState {
    /// Number of the step that waits for an observation.
    pub(super) step: u32,
    /// Number of parts of the transcript.
    pub(super) parts: usize,
    /// Turns that were begun.
    pub(super) turn: u32,
    /// What the step waits for.
    pub(super) phase: Phase,
    /// Tokens and cost of all model calls.
    #[serde(default)]
    pub(super) used: Usage,
    /// Replies in a row without a valid form.
    #[serde(default)]
    pub(super) format_errors: u32,
}

/// What a step waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub(super) enum Phase {
    /// Reply of the model.
    Asking,
    /// Result of the last reply's command.
    Running,
    /// Nothing.
    Ended { end: End },
}

impl BashState {
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

    /// Returns tokens and cost of all model calls.
    pub const fn used(&self) -> Usage {
        self.used
    }

    /// Returns the end of the agent; `None` while it works.
    pub const fn end(&self) -> Option<&End> {
        match &self.phase {
            Phase::Ended { end } => Some(end),
            Phase::Asking | Phase::Running => None,
        }
    }
}
