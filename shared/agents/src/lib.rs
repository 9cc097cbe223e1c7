//! Agents that ask a model, as pure state machines: no I/O, no clock, no async.
//!
//! | agent | type | works by |
//! | --- | --- | --- |
//! | `terminus-2` | [`terminus2::Terminus2`] | keystrokes in a terminal, replies in JSON or XML; equals Harbor 0.25.0 |
//! | `bash` | [`bash::BashAgent`] | one command per turn, in a fixed folder, until an explicit end |
//!
//! An episode is a loop over saved states:
//!
//! 1. `start` returns a [`Step`]: the first state, and the beginning of the [`Transcript`]. Both are saved.
//! 2. `act` returns what the agent needs next, an [`Act`]: a model call, keystrokes, a command, or nothing because it
//!    has ended. It follows from state and transcript, so it is the same after a crash.
//! 3. The caller carries it out and gives the result to `step` as an [`Observation`], with times and token counts. The
//!    next [`Step`] has a state, which replaces the one before, and parts, which are added to the transcript. Both are
//!    saved, and 2. follows.
//!
//! States have a bounded size, and parts never change, so that stored bytes grow linearly with turns. The same
//! arguments give the same step; an observation of another step is refused by its number. Everything that a model or a
//! terminal has written is untrusted: it is bounded, and never causes a panic.
//!
//! [`Keystrokes::send_commands`] and [`session`] have the shell commands for tmux. [`Transcript::request`] rebuilds the
//! messages of a model call, and `trajectories` of each agent builds [`Trajectory`] values in the Agent Trajectory
//! Interchange Format.

mod atif;
pub mod bash;
mod conversation;
pub mod dialogue;
mod end;
mod keys;
mod model;
mod options;
mod output;
mod python;
pub mod session;
mod step;
mod template;
pub mod terminus2;
mod texts;
mod trajectory;
mod transcript;
mod usage;

pub use atif::{
    ATIF_VERSION, AtifAgent, AtifObservation, AtifResult, AtifSource, AtifStep, FinalMetrics, Metrics,
    SubagentRef, ToolCall, Trajectory,
};
pub use end::End;
pub use keys::Keystrokes;
pub use model::{ModelCall, ModelFailure, ModelFailureKind, ModelReply, REPLY_BYTES_MAX};
pub use options::OptionError;
pub use output::limit_output;
pub use step::{Act, BashCommand, CommandResult, Observation, Seen, Step, StepError, TerminalState};
pub use template::TemplateError;
pub use texts::TextSource;
pub use trajectory::{Trajectories, TrajectoryNames, dialogue_trajectory};
pub use transcript::{ChatMessage, Message, Part, Purpose, Reply, Role, Transcript};
pub use usage::{Budget, Usage};
