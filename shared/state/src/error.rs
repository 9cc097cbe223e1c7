//! Errors of the state.

use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use bench_domain::IllegalTransition;

/// State that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// DynamoDB rejected the call or couldn't be reached. A retry may succeed.
    #[error("could not {verb}: {problem}")]
    Service {
        /// Action that failed.
        verb: &'static str,
        /// Error message of DynamoDB.
        problem: String,
    },
    /// A record exists but can't be parsed. Retries don't help.
    #[error("record {key} is damaged: {problem}")]
    Damaged {
        /// Key of the record.
        key: String,
        /// Problem with the record.
        problem: String,
    },
    /// The current state doesn't allow the transition.
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
    /// There is no record with this key.
    #[error("there is no {0}")]
    Missing(String),
    /// A caller's key couldn't be sealed or opened.
    #[error("the caller's key could not be {verb}: {problem}")]
    Secret {
        /// `sealed` or `opened`.
        verb: &'static str,
        /// Reason; never contains the key.
        problem: String,
    },
}

impl StateError {
    pub(crate) fn sdk<E>(verb: &'static str, error: SdkError<E>) -> Self
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        Self::Service { verb, problem: service_message(error) }
    }

    pub(crate) fn damaged(key: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Self::Damaged { key: key.into(), problem: problem.to_string() }
    }

    /// Returns true if the same call may succeed later.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Service { .. })
    }
}

/// Returns the service's error message, without the rest of its response.
fn service_message<E>(error: SdkError<E>) -> String
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
{
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => DisplayErrorContext(error).to_string(),
    }
}
