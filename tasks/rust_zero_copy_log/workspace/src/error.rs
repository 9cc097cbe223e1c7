//! Errors in logs.

use std::fmt;

/// Error in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    pub line: usize,
    pub column: usize,
    pub kind: ErrorKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorKind {
    /// A field begins with `=`.
    ExpectedKey,
    QuoteInKey,
    QuoteInValue,
    Control(char),
    DuplicateKey(String),
    UnknownEscape(char),
    /// The character after a string is no blank.
    AfterString(char),
    /// The place is that of the string's beginning.
    UnterminatedString,
    InvalidUtf8,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.kind)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExpectedKey => f.write_str("expected a key, found `=`"),
            Self::QuoteInKey => f.write_str("unexpected `\"` in a key"),
            Self::QuoteInValue => f.write_str("unexpected `\"` in a value that doesn't begin with it"),
            Self::Control(character) => write!(f, "control character U+{:04X}", u32::from(*character)),
            Self::DuplicateKey(key) => write!(f, "the key `{key}` comes twice"),
            Self::UnknownEscape(character) => write!(f, "unknown escape `\\{}`", character.escape_debug()),
            Self::AfterString(character) => write!(f, "expected a blank after the string, found `{}`", character.escape_debug()),
            Self::UnterminatedString => f.write_str("unterminated string"),
            Self::InvalidUtf8 => f.write_str("invalid UTF-8"),
        }
    }
}

impl std::error::Error for ParseError {}
