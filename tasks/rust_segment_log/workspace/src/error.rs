//! Errors of the log.

use std::fmt;
use std::io;

#[derive(Debug)]
pub enum LogError {
    Io(io::Error),
    /// The segment isn't as the format requires from a position on.
    Corrupt { segment: String, position: u64 },
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Corrupt { segment, position } => write!(f, "segment `{segment}` is corrupt at {position}"),
        }
    }
}

impl std::error::Error for LogError {}
