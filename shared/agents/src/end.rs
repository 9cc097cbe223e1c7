//! Ends of agents.

use serde::{Deserialize, Serialize};

/// Reason for the end of an agent. Its work is verified after each of them, except [`End::ModelFailed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum End {
    /// The agent says that the task is complete.
    Completed,
    /// The maximum number of turns is reached.
    TurnLimit,
    /// The budget of tokens is spent.
    TokenLimit,
    /// The budget of dollars is spent.
    CostLimit,
    /// The time is over.
    TimeLimit,
    /// The conversation doesn't fit into the model's context, and isn't summarized.
    ContextExceeded,
    /// Too many replies in a row were cut by the length limit.
    OutputExceeded,
    /// Too many replies in a row had no valid form.
    FormatErrors,
    /// The terminal session is gone.
    TerminalEnded,
    /// The model can't be asked.
    ModelFailed {
        /// Sentence for people.
        message: String,
    },
}

impl End {
    /// Returns the exception of Harbor 0.25 for this end; `None` where an official run ends without one.
    pub const fn exception(&self) -> Option<&'static str> {
        match self {
            Self::Completed | Self::TurnLimit | Self::TerminalEnded | Self::FormatErrors => None,
            Self::TokenLimit | Self::CostLimit => Some("BudgetExceededError"),
            Self::TimeLimit => Some("AgentTimeoutError"),
            Self::ContextExceeded => Some("ContextLengthExceededError"),
            Self::OutputExceeded => Some("OutputLengthExceededError"),
            Self::ModelFailed { .. } => Some("UnknownApiError"),
        }
    }
}
