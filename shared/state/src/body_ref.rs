//! References to the stored prompt and answer of a sample.

use crate::StateError;
use crate::attributes::Reader;

/// Reference to the stored body of a sample, whose key consists of run, benchmark, position and attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyRef {
    /// Attempt that wrote the body.
    pub attempt: u32,
    /// SHA-256 of the stored bytes, lowercase hex.
    pub sha256: String,
}

impl BodyRef {
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Option<Self>, StateError> {
        Ok(match (reader.maybe_number("body_attempt")?, reader.maybe_text("body_sha256")) {
            (Some(attempt), Some(sha256)) => Some(Self { attempt, sha256: sha256.to_owned() }),
            _ => None,
        })
    }
}
