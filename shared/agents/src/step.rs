//! Steps of an agent: what it asks for, and what it gets.

use crate::end::End;
use crate::keys::Keystrokes;
use crate::model::{ModelCall, ModelFailure, ModelReply};
use crate::transcript::{Part, Transcript};

/// What the agent needs next. It follows from state and transcript, so it can be asked for again at any time.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Ask the model. Answered by [`Seen::Reply`] or [`Seen::ModelFailed`].
    AskModel(ModelCall),
    /// Type keystrokes one after the other, waiting after each, then capture the terminal. Without keystrokes only
    /// capture it. Answered by [`Seen::Terminal`].
    Type(Vec<Keystrokes>),
    /// Capture the visible screen; the history isn't needed. Answered by [`Seen::Terminal`].
    Look,
    /// Run a command. Answered by [`Seen::Command`].
    Run(BashCommand),
    /// Nothing: the agent has ended.
    End(End),
}

/// Command of the agent `bash`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BashCommand {
    /// Script, to be run by `bash -c`.
    pub script: String,
    /// Folder in which it starts.
    pub folder: String,
    /// Time after which it is killed, in milliseconds.
    pub time_limit_ms: u64,
    /// Maximum length of output to fetch in bytes, at each end.
    pub output_bytes_max: usize,
}

/// Answer to an [`Act`].
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Number of the step that it answers, as the state has it.
    pub step: u32,
    /// Time since the agent began, in milliseconds.
    pub elapsed_ms: u64,
    /// Time of day as ISO 8601 text, for trajectories.
    pub at: Option<String>,
    /// Answer.
    pub seen: Seen,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// The model's reply.
    Reply(ModelReply),
    /// The model call failed for good: callers repeat it before, if that helps.
    ModelFailed(ModelFailure),
    /// State of the terminal after keystrokes.
    Terminal(TerminalState),
    /// Result of a command.
    Command(CommandResult),
}

/// State of a terminal. Its texts are untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalState {
    /// False if the session is gone.
    pub is_alive: bool,
    /// Pane with everything that has scrolled away (`tmux capture-pane -p -S -`); may be empty after [`Act::Look`].
    pub history: String,
    /// Visible part (`tmux capture-pane -p`).
    pub screen: String,
}

/// Result of a [`BashCommand`]. Its output is untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandResult {
    /// Exit code; `None` if the command was killed.
    pub exit_code: Option<i32>,
    /// True if it was killed because its time was over.
    pub is_timed_out: bool,
    /// Standard output and standard error, in the order of writing.
    pub output: String,
    /// Bytes that the caller left out between the halves of the output.
    pub omitted_bytes: u64,
}

/// Result of a step, to be saved before its act is carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Step<S> {
    /// Next state.
    pub state: S,
    /// Parts that follow in the transcript.
    pub parts: Vec<Part>,
}

/// Error of a step. The state stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The observation was already used, or belongs to another agent.
    #[error("the observation answers step {given}, but step {expected} waits for one")]
    OtherStep {
        /// Number in the observation.
        given: u32,
        /// Number of the step that waits.
        expected: u32,
    },
    /// The observation answers another act.
    #[error("step {step} waits for {expected}, not for {given}")]
    OtherKind {
        /// Number of the step.
        step: u32,
        /// What it waits for.
        expected: &'static str,
        /// What was given.
        given: &'static str,
    },
    /// State and transcript don't belong together.
    #[error("the state was saved after {expected} parts of the transcript, but {given} are loaded")]
    OtherTranscript {
        /// Number of parts that are loaded.
        given: usize,
        /// Number of parts at the state.
        expected: usize,
    },
}

impl Seen {
    /// Returns the kind, for messages.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Reply(_) | Self::ModelFailed(_) => "a reply of the model",
            Self::Terminal(_) => "the terminal",
            Self::Command(_) => "the result of a command",
        }
    }
}

/// Checks that state and transcript belong together.
pub(crate) fn check_transcript(expected: usize, transcript: &Transcript) -> Result<(), StepError> {
    let given = transcript.parts().len();
    if given == expected { Ok(()) } else { Err(StepError::OtherTranscript { given, expected }) }
}
