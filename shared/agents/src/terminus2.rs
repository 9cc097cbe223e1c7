//! Agent `terminus-2`: keystrokes in a terminal, until the model has said twice that the task is complete.
//!
//! Replies, messages, screens and keystrokes equal those of Harbor 0.25.0, apart from [`DEVIATIONS`].

mod deviations;
mod machine;
mod reply;
mod screen;
mod settings;
mod state;
mod texts;
mod trajectory;

pub use deviations::DEVIATIONS;
pub use machine::{TaskText, Terminus2};
pub use reply::{ParsedCommand, ParsedReply, ReplyFormat, parse_reply, salvage_truncated_xml};
pub use screen::{CaptureMark, incremental_output};
pub use settings::Terminus2Settings;
pub use state::Terminus2State;
pub use texts::{OFFICIAL_PROGRAM, OfficialFile, OfficialTextError, Terminus2Texts, official_template};
