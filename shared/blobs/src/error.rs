//! What can go wrong with an object.

use std::error::Error;
use std::fmt::Display;

use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStreamError;

/// An object that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The store refused or could not be reached. May succeed when repeated.
    #[error("could not {verb} object `{key}`: {problem}")]
    Store {
        /// What was tried.
        verb: &'static str,
        /// Key or prefix.
        key: String,
        /// What the store said.
        problem: String,
    },
    /// The object is there and is not what it should be. Repeating does not help.
    #[error("object `{key}` is damaged: {problem}")]
    Damaged {
        /// The key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The object is larger than what is read at once.
    #[error("object `{key}` has more than {limit_bytes} bytes")]
    TooLarge {
        /// The key.
        key: String,
        /// The limit.
        limit_bytes: usize,
    },
    /// The request itself is wrong.
    #[error("request for object `{key}` failed: {problem}")]
    Request {
        /// Key or prefix.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl BlobError {
    pub(crate) fn sdk<E>(verb: &'static str, key: &str, error: SdkError<E>) -> Self
    where
        E: Error + ProvideErrorMetadata + 'static,
    {
        let is_refused = error.raw_response().is_some_and(|answer| answer.status().as_u16() == 403);
        let problem = match (error.code(), error.message()) {
            // S3 does not always say which right is missing, and to HEAD it says nothing at all.
            (_, message) if is_refused && !message.is_some_and(|text| text.contains("s3:")) => {
                let said = message.map(|text| format!(": {text}")).unwrap_or_default();
                format!("AccessDenied{said} (it takes {})", right_to(verb))
            }
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(code), None) => code.to_owned(),
            _ => DisplayErrorContext(error).to_string(),
        };
        Self::Store { verb, key: key.to_owned(), problem }
    }

    /// Whether an object in the making is not, or not as it was left, in the store any more: it has to be begun anew.
    pub fn is_upload_gone(&self) -> bool {
        let gone = ["NoSuchUpload", "InvalidPart"];
        matches!(self, Self::Store { problem, .. } if gone.iter().any(|code| problem.starts_with(code)))
    }

    pub(crate) fn stream(key: &str, error: ByteStreamError) -> Self {
        Self::Store { verb: "read", key: key.to_owned(), problem: error.to_string() }
    }

    pub(crate) fn request(key: &str, problem: impl Display) -> Self {
        Self::Request { key: key.to_owned(), problem: problem.to_string() }
    }
}

/// The right that a call takes, as a role's policy names it.
fn right_to(verb: &str) -> &'static str {
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
