//! Errors in configuration files.

use std::fmt;
use std::rc::Rc;

/// Place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: Rc<str>,
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    Syntax,
    Escape,
    Duplicate,
    Conflict,
}

impl ErrorKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Escape => "escape",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
        }
    }
}

#[derive(Debug)]
pub enum ConfigError {
    /// A file can't be read.
    Read { file: String, message: String },
    /// A file has an error.
    At { kind: ErrorKind, place: Place, message: String },
}

impl ConfigError {
    pub fn at(kind: ErrorKind, place: Place, message: impl Into<String>) -> Self {
        Self::At { kind, place, message: message.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { file, message } => write!(f, "can't read `{file}`: {message}"),
            Self::At { kind, place, message } => write!(f, "{place}: {}: {message}", kind.name()),
        }
    }
}

impl std::error::Error for ConfigError {}
