//! Where a sample's stored prompt and answer are.

use crate::StateError;
use crate::attributes::Reader;

/// The stored body of a sample: its key is made of run, benchmark, position and attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyRef {
    /// The attempt that wrote it.
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
