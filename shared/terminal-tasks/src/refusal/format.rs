//! Problems of configuration files.

use std::borrow::Cow;

use super::Quoted;

/// Reason for which a configuration file of a task is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatProblem {
    /// The file is too large to be parsed.
    #[error("the file has more than {bytes_max} bytes; shorten it")]
    TooLarge {
        /// Limit in bytes.
        bytes_max: usize,
    },
    /// The file isn't valid UTF-8.
    #[error("the file is not valid UTF-8; save it as UTF-8")]
    NotUtf8,
    /// The file isn't valid TOML, YAML or JSON.
    #[error("the file is not valid {language}: {cause}")]
    Syntax {
        /// `TOML`, `YAML` or `JSON`.
        language: &'static str,
        /// Message of the parser.
        cause: String,
    },
    /// Values are nested too deeply, or aliases make too many of them.
    #[error("the file has more than {values_max} values or {depth_max} levels; simplify it")]
    TooComplex {
        /// Limit on the number of values, aliases expanded.
        values_max: usize,
        /// Limit on the depth of nested values.
        depth_max: usize,
    },
    /// A key occurs twice in the same table.
    #[error("the key {} occurs twice; keep one of them", Quoted(key))]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A required field is missing.
    #[error("the field {} is missing; add it", Quoted(key))]
    MissingField {
        /// Path of the field.
        key: String,
    },
    /// A field has a value of the wrong type.
    #[error("{} must be {expected}, not {found}", Quoted(key))]
    WrongType {
        /// Path of the field.
        key: String,
        /// Expected type.
        expected: Cow<'static, str>,
        /// Type of the value.
        found: Cow<'static, str>,
    },
    /// A field has a value that isn't allowed.
    #[error("{} is {}; it must be {expected}", Quoted(key), Quoted(value))]
    InvalidValue {
        /// Path of the field.
        key: String,
        /// The value.
        value: String,
        /// Values that are allowed.
        expected: &'static str,
    },
    /// Two fields contradict each other.
    #[error("{} contradicts {}; remove one of them", Quoted(key), Quoted(other))]
    Conflict {
        /// Path of a field.
        key: String,
        /// Path of the other field.
        other: String,
    },
}

impl FormatProblem {
    /// Returns the stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "config_too_large",
            Self::NotUtf8 => "not_utf8",
            Self::Syntax { .. } => "invalid_syntax",
            Self::TooComplex { .. } => "too_complex",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::MissingField { .. } => "missing_field",
            Self::WrongType { .. } => "wrong_type",
            Self::InvalidValue { .. } => "invalid_value",
            Self::Conflict { .. } => "conflicting_fields",
        }
    }
}
