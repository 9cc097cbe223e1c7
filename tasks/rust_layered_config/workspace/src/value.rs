//! Values and their text.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Bool(bool),
    Integer(i64),
    String(String),
    List(Vec<Value>),
}

impl Value {
    /// Returns the value that bare text stands for.
    pub fn of_bare(text: &str) -> Self {
        match text {
            "true" => Self::Bool(true),
            "false" => Self::Bool(false),
            _ => parse_integer(text).map_or_else(|| Self::String(text.to_owned()), Self::Integer),
        }
    }

    /// Returns the text that `get` prints.
    pub fn to_plain(&self) -> String {
        match self {
            Self::String(text) => text.clone(),
            value => value.to_string(),
        }
    }
}

/// Parses an integer with an optional sign and `_` between digits.
pub fn parse_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.split('_').all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::String(text) => quote(f, text),
            Self::List(values) => {
                f.write_str("[")?;
                for (number, value) in values.iter().enumerate() {
                    if number > 0 {
                        f.write_str(", ")?;
                    }
                    value.fmt(f)?;
                }
                f.write_str("]")
            }
        }
    }
}

fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '\\' => f.write_str("\\\\")?,
            '"' => f.write_str("\\\"")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            control if control.is_control() => write!(f, "\\u{{{:x}}}", u32::from(control))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}
