//! Replies of the model: commands, completion, and feedback about their form.

mod json;
mod repair;
mod salvage;
mod xml;
mod xml_commands;
mod xml_tags;

use serde::{Deserialize, Serialize};

pub use salvage::salvage_truncated_xml;

use crate::keys::Keystrokes;

/// Maximum number of commands of a reply.
const COMMANDS_MAX: usize = 1_000;
/// Maximum wait after keystrokes, in seconds.
const WAIT_S_MAX: f64 = 60.0;

/// Form of the model's replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFormat {
    /// One JSON object.
    #[default]
    Json,
    /// One `<response>` element.
    Xml,
}

impl ReplyFormat {
    /// Returns the name in settings and trajectories.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Xml => "xml",
        }
    }
}

/// Keystrokes that the model asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedCommand {
    /// Keystrokes for tmux, word for word.
    pub keystrokes: String,
    /// Seconds to wait after sending them, as written: possibly negative, infinite or not a number.
    pub duration_s: f64,
}

impl ParsedCommand {
    /// Returns the keystrokes to send, with a wait of at most 60 seconds; of none if the duration isn't a number.
    pub fn keystrokes(&self) -> Keystrokes {
        let duration_s = if self.duration_s.is_nan() { 0.0 } else { self.duration_s.min(WAIT_S_MAX) };
        Keystrokes { keys: self.keystrokes.clone(), duration_s }
    }
}

/// Result of parsing a reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParsedReply {
    /// Commands, in the order of the reply.
    pub commands: Vec<ParsedCommand>,
    /// True if the model says that the task is complete.
    pub is_complete: bool,
    /// Reason for which nothing may be executed; empty if there is none.
    pub error: String,
    /// Problems that don't prevent execution, as lines that begin with `- `; empty if there are none.
    pub warning: String,
    /// Text of the field or section `analysis`; other JSON values as JSON, `null` as nothing.
    pub analysis: String,
    /// Text of the field or section `plan`, in the same way.
    pub plan: String,
}

impl ParsedReply {
    /// Returns what the model is told about the form of its reply; empty if it is flawless.
    pub fn feedback(&self) -> String {
        match (self.error.is_empty(), self.warning.is_empty()) {
            (true, true) => String::new(),
            (true, false) => format!("WARNINGS: {}", self.warning),
            (false, true) => format!("ERROR: {}", self.error),
            (false, false) => format!("ERROR: {}\nWARNINGS: {}", self.error, self.warning),
        }
    }
}

/// Parses a reply as the parsers of Harbor 0.25.0 do, including their repairs and messages.
///
/// Takes time linear in the length of the reply. Where an exception leaves the official parser, the result is the one
/// that it intends:
///
/// | reply | result |
/// | --- | --- |
/// | a duration that is an integer too big for a floating-point number | warning, 1 second |
/// | JSON nested more than 900 levels deep | error `Invalid JSON: Nested too deeply: …` |
/// | a tag of blanks only, as in `< >` | warning `Unknown tag found: <>, …` |
/// | more than 1,000 commands, which the official program types | error |
pub fn parse_reply(format: ReplyFormat, reply: &str) -> ParsedReply {
    let mut parsed = match format {
        ReplyFormat::Json => json::parse(reply),
        ReplyFormat::Xml => xml::parse(reply),
    };
    let count = parsed.commands.len();
    if count > COMMANDS_MAX {
        parsed.commands = Vec::new();
        parsed.error = format!("Reply has {count} commands, but at most {COMMANDS_MAX} are executed");
    }
    parsed
}

/// Collects warnings, and writes them as lines.
#[derive(Debug, Default)]
struct Warnings(Vec<String>);

impl Warnings {
    fn add(&mut self, warning: impl Into<String>) {
        self.0.push(warning.into());
    }

    fn into_lines(self) -> String {
        let lines: Vec<_> = self.0.iter().map(|warning| format!("- {warning}")).collect();
        lines.join("\n")
    }

    /// Returns a reply that only has an error.
    fn into_error(self, error: impl Into<String>) -> ParsedReply {
        ParsedReply { error: error.into(), warning: self.into_lines(), ..ParsedReply::default() }
    }
}

/// Returns the warning about sections or fields in another order than expected. Takes those that were found with their
/// positions, in the expected order.
fn order_warning(kind: &str, mut found: Vec<(&str, usize)>) -> Option<String> {
    let expected: Vec<_> = found.iter().map(|(name, _)| *name).collect();
    found.sort_by_key(|(_, position)| *position);
    let actual: Vec<_> = found.iter().map(|(name, _)| *name).collect();
    (actual != expected).then(|| {
        let (actual, expected) = (actual.join(" → "), expected.join(" → "));
        format!("{kind} appear in wrong order. Found: {actual}, expected: {expected}")
    })
}

/// Warning about keystrokes that run into the next ones.
fn newline_warning(number: usize) -> String {
    format!(
        "Command {number} should end with newline when followed by another command. Otherwise the two commands will be \
         concatenated together on the same line."
    )
}
