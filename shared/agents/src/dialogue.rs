//! Conversations of an agent with a simulated user, each of whom may call tools, by the rules of tau2's orchestrator
//! (version 1.0.1, turns of whole messages).
//!
//! Agent and user are both models. The machine says who speaks next ([`Dialogue::need`]), and takes what was said
//! ([`Dialogue::say`]) or what tools returned ([`Dialogue::observe`]). One step passes one message on: a text to the other
//! party, calls to the environment, or results back. Limits of steps and errors are checked only while no call waits for its
//! result, and a limit that is reached with the last message counts instead of it, as in the official program.

mod machine;
mod message;
mod oracle;
mod reply;
mod request;

pub use machine::{Dialogue, DialogueError, DialogueNeed, DialogueState, Termination};
pub use message::{DialogueCall, DialogueMessage, PackageCall, PackageMessage, Party, Speaker};
pub use oracle::{gold_reply, silent_reply};
pub use reply::{DialogueReply, UnusableReply};
pub use request::{DialogueOpening, PartyTexts, SeenMessage};
