//! Agent `bash`: one command per turn, in a fixed folder, until the model says that it is done.
//!
//! Each command is a process of its own, so nothing but files and background processes remains of it. A reply has one
//! fenced block: `bash` runs its text, `done` ends the episode.

mod machine;
mod reply;
mod settings;
mod state;
mod texts;
mod trajectory;

pub use machine::BashAgent;
pub use reply::{Action, FormatError, parse_action};
pub use settings::BashSettings;
pub use state::BashState;
pub use texts::{prompt_parts, workspace_first_message, workspace_prompt_parts};
