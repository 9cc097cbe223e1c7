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
        let problem = match (error.code(), error.message()) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(code), None) => code.to_owned(),
            _ => DisplayErrorContext(error).to_string(),
        };
        Self::Store { verb, key: key.to_owned(), problem }
    }

    pub(crate) fn stream(key: &str, error: ByteStreamError) -> Self {
        Self::Store { verb: "read", key: key.to_owned(), problem: error.to_string() }
    }

    pub(crate) fn request(key: &str, problem: impl Display) -> Self {
        Self::Request { key: key.to_owned(), problem: problem.to_string() }
    }
}
