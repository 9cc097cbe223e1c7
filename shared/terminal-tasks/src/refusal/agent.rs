//! Problems of custom agents.

use super::Quoted;

/// Reason for which the folder of a custom agent is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentProblem {
    /// No folder of the archive is an agent.
    #[error(
        "there is no agent: `agent.toml` is neither at the root nor in the only top folder; pack the folder that has it"
    )]
    NoAgent,
    /// A file lies outside the agent's folder.
    #[error(
        "the file is outside the agent's folder {}; move it into the folder or leave it out",
        Quoted(folder)
    )]
    OutsideAgent {
        /// Folder of the agent.
        folder: String,
    },
    /// The archive, or its files, are too large.
    #[error("the agent has more than {bytes_max} bytes {}; let its install script download large files", if *.packed { "as a ZIP archive" } else { "in its files" })]
    TooLarge {
        /// Limit in bytes.
        bytes_max: u64,
        /// True for the archive, false for the files in it.
        packed: bool,
    },
    /// `agent.toml` has a key that the format doesn't know.
    #[error("the key {} is not known; the keys are {known}", Quoted(key))]
    UnknownKey {
        /// Path of the key.
        key: String,
        /// Keys that the format knows.
        known: &'static str,
    },
    /// The install script isn't a file of the folder.
    #[error(
        "`install` names {}, which is not a file of the agent's folder; give the path of a script in it",
        Quoted(path)
    )]
    NoInstallScript {
        /// Path in `agent.toml`.
        path: String,
    },
}

impl AgentProblem {
    /// Returns the stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoAgent => "no_agent",
            Self::OutsideAgent { .. } => "outside_agent",
            Self::TooLarge { .. } => "agent_too_large",
            Self::UnknownKey { .. } => "unknown_key",
            Self::NoInstallScript { .. } => "no_install_script",
        }
    }
}
