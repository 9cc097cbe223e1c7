//! Problems of compose files.

use super::Quoted;

/// Reason for which a compose file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeProblem {
    /// The output of `docker compose config` isn't what the checker reads.
    #[error("the output of `docker compose config` is not usable: {cause}")]
    InvalidOutput {
        /// Part that is wrong.
        cause: String,
    },
    /// A key isn't on the list of allowed keys.
    #[error("{owner} uses {}, which tasks must not use; {}", Quoted(key), advice_for(meant.as_deref(), advice))]
    KeyNotAllowed {
        /// Service, network, volume or other element that has the key.
        owner: String,
        /// Path of the key inside the element.
        key: String,
        /// Allowed key with a similar name, which may be meant.
        meant: Option<String>,
        /// Advice on what to do if no key is similar.
        advice: &'static str,
    },
    /// An allowed key has a value that isn't allowed.
    #[error("{owner} sets {} to {}, which tasks must not do; {advice}", Quoted(key), Quoted(value))]
    ValueNotAllowed {
        /// Service, network, volume or other element that has the key.
        owner: String,
        /// Path of the key inside the element.
        key: String,
        /// Value as JSON, or as text if it is a string.
        value: String,
        /// Advice on what to do.
        advice: &'static str,
    },
    /// There are too many services, networks or volumes.
    #[error("the project has more than {max} {what}; remove some")]
    TooMany {
        /// Kind of element.
        what: &'static str,
        /// Limit on their number.
        max: usize,
    },
    /// The service in which the agent works is missing.
    #[error("the service {} is missing, in which the agent works; add it", Quoted(service))]
    MissingService {
        /// Name of the service.
        service: String,
    },
}

fn advice_for(meant: Option<&str>, advice: &str) -> String {
    meant.map_or_else(|| advice.to_owned(), |meant| format!("did you mean {}?", Quoted(meant)))
}

impl ComposeProblem {
    /// Returns the stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidOutput { .. } => "compose_output_invalid",
            Self::KeyNotAllowed { .. } => "compose_key_not_allowed",
            Self::ValueNotAllowed { .. } => "compose_value_not_allowed",
            Self::TooMany { .. } => "compose_too_large",
            Self::MissingService { .. } => "compose_service_missing",
        }
    }
}
