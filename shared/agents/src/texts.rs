//! Origin of the texts that a model reads.

use serde::{Deserialize, Serialize};

/// Origin of an agent's prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextSource {
    /// The agent's authors; loaded at run time and checked by digest.
    Official,
    /// Us.
    Own,
}

impl TextSource {
    /// Returns the name in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Official => "official",
            Self::Own => "own",
        }
    }
}
