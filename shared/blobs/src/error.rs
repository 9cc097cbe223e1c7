//! Errors of the object store.

use std::error::Error;
use std::fmt::Display;

use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStreamError;

/// Reasons for which an object can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The store refused the request or could not be reached. A retry may succeed.
    #[error("could not {verb} object `{key}`: {problem}")]
    Store {
        /// Operation that failed, as a verb.
        verb: &'static str,
        /// Key or prefix.
        key: String,
        /// Error of the store.
        problem: String,
    },
    /// The object exists but has invalid content. A retry doesn't help.
    #[error("object `{key}` is damaged: {problem}")]
    Damaged {
        /// Key of the object.
        key: String,
        /// Description of the problem.
        problem: String,
    },
    /// The object exceeds the limit for objects that are read at once.
    #[error("object `{key}` has more than {limit_bytes} bytes")]
    TooLarge {
        /// Key of the object.
        key: String,
        /// Limit in bytes.
        limit_bytes: usize,
    },
    /// The request itself is invalid.
    #[error("request for object `{key}` failed: {problem}")]
    Request {
        /// Key or prefix.
        key: String,
        /// Description of the problem.
        problem: String,
    },
}

impl BlobError {
    pub(crate) fn sdk<E>(verb: &'static str, key: &str, error: SdkError<E>) -> Self
    where
        E: Error + ProvideErrorMetadata + 'static,
    {
        let is_refused = error.raw_response().is_some_and(|response| response.status().as_u16() == 403);
        let problem = match (error.code(), error.message()) {
            // S3 doesn't always name the missing permission, and responses to HEAD have no text at all.
            (_, message) if is_refused && !message.is_some_and(|text| text.contains("s3:")) => {
                let message_text = message.map(|text| format!(": {text}")).unwrap_or_default();
                format!("AccessDenied{message_text} (requires {})", required_permission(verb))
            }
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(code), None) => code.to_owned(),
            _ => DisplayErrorContext(error).to_string(),
        };
        Self::Store { verb, key: key.to_owned(), problem }
    }

    /// Returns true if an unfinished upload no longer exists, or not in its saved state. It must be started again.
    pub fn is_upload_gone(&self) -> bool {
        let gone = ["NoSuchUpload", "InvalidPart"];
        matches!(self, Self::Store { problem, .. } if gone.iter().any(|code| problem.starts_with(code)))
    }

    /// Returns true if the disk of an embedded store is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Store { problem, .. } if problem.starts_with("InsufficientStorage"))
    }

    pub(crate) fn stream(key: &str, error: ByteStreamError) -> Self {
        Self::Store { verb: "read", key: key.to_owned(), problem: error.to_string() }
    }

    pub(crate) fn request(key: &str, problem: impl Display) -> Self {
        Self::Request { key: key.to_owned(), problem: problem.to_string() }
    }
}

/// Returns the permissions that a call requires, as named in policies.
fn required_permission(verb: &str) -> &'static str {
    match verb {
        "read" => "s3:GetObject",
        "look for" => "s3:GetObject, and s3:ListBucket where the object is not there",
        "remove" => "s3:DeleteObject and s3:ListBucket",
        "list" => "s3:ListBucket",
        "abort" => "s3:AbortMultipartUpload",
        "create the bucket" => "s3:CreateBucket",
        _ => "s3:PutObject",
    }
}
