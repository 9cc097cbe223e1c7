//! What can go wrong with the state.

use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use bench_domain::IllegalTransition;

/// State that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// DynamoDB refused or could not be reached. May succeed when repeated.
    #[error("could not {verb}: {problem}")]
    Service {
        /// What was tried.
        verb: &'static str,
        /// What DynamoDB said.
        problem: String,
    },
    /// A record is there and cannot be understood. Repeating does not help.
    #[error("record {key} is damaged: {problem}")]
    Damaged {
        /// Its key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The state does not allow it.
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
    /// Nothing under that key.
    #[error("there is no {0}")]
    Missing(String),
    /// A caller's key could not be sealed or opened.
    #[error("the caller's key could not be {verb}: {problem}")]
    Secret {
        /// `sealed` or `opened`.
        verb: &'static str,
        /// Why; never the key.
        problem: String,
    },
}

impl StateError {
    pub(crate) fn sdk<E>(verb: &'static str, error: SdkError<E>) -> Self
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        Self::Service { verb, problem: told(error) }
    }

    pub(crate) fn damaged(key: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Self::Damaged { key: key.into(), problem: problem.to_string() }
    }

    /// Whether the same call may succeed later.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Service { .. })
    }
}

/// What the service said, without the rest of its answer.
fn told<E>(error: SdkError<E>) -> String
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
{
    match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => DisplayErrorContext(error).to_string(),
    }
}
