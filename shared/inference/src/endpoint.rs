//! A provider's address and key.

use bench_domain::Secret;
use bench_domain::secret::MASK;

use crate::address::parse_base;
use crate::protocols::Target;
use crate::settings::SettingFields;
use crate::{Failure, Keys, Provider};

/// A provider's address and key. The key is sent only to this address.
#[derive(Debug, Clone)]
pub struct Endpoint {
    provider: &'static Provider,
    target: Target,
    /// The same key, for redaction of responses.
    keys: Keys,
}

/// Reason why a provider can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The base URL can't be used.
    #[error("`{given}` is not a usable base URL for {}: {problem}", provider.name)]
    BadBaseUrl {
        /// The provider.
        provider: &'static Provider,
        /// The address as given, cut to 200 characters, without a password.
        given: String,
        /// The problem.
        problem: &'static str,
    },
    /// The provider has no default address, and none is configured.
    #[error("{} needs a base URL: set {}", provider.name, provider.base_url_variable)]
    NoBaseUrl {
        /// The provider.
        provider: &'static Provider,
    },
    /// The provider requires a key, and none is set.
    #[error("{} needs a key: set {}", provider.display_name, provider.key_variable)]
    NoKey {
        /// The provider.
        provider: &'static Provider,
    },
    /// The provider takes no access tokens of signed-in users.
    #[error("the account of a signed-in user can't pay for models of {}", provider.display_name)]
    NoSessions {
        /// The provider.
        provider: &'static Provider,
    },
    /// The provider's address has changed since the run was ordered.
    #[error(
        "the run was ordered with {} at {ordered}, which is at {configured} now: set {} to the run's address, or start a \
         new run, since one score is never made of the answers of two hosts",
        provider.display_name, provider.base_url_variable
    )]
    OtherHost {
        /// The provider.
        provider: &'static Provider,
        /// Host when the run was ordered.
        ordered: String,
        /// Host according to the settings.
        configured: String,
    },
}

impl Endpoint {
    /// Creates an endpoint at `base_url`, the part before the protocol's own paths, such as
    /// `https://openrouter.ai/api/v1`.
    ///
    /// # Errors
    /// Returns [`EndpointError::BadBaseUrl`] unless the address is `http` or `https` with a host, and without user,
    /// query and fragment.
    pub fn new(
        provider: &'static Provider,
        base_url: &str,
        key: Option<Secret>,
    ) -> Result<Self, EndpointError> {
        let bad = |problem| EndpointError::BadBaseUrl { provider, given: printable(base_url), problem };
        let url = parse_base(base_url).map_err(bad)?;
        let keys = Keys::new(&key);
        Ok(Self { provider, target: Target::new(url, key), keys })
    }

    /// Returns the provider.
    pub const fn provider(&self) -> &'static Provider {
        self.provider
    }

    /// Returns the base URL without a trailing slash.
    pub fn base_url(&self) -> &str {
        self.target.base_url().as_str().trim_end_matches('/')
    }

    /// Returns the same address with another key.
    #[must_use]
    pub fn with_key(&self, key: Secret) -> Self {
        Self { keys: Keys::new([&key]), target: self.target.with_key(key), ..*self }
    }

    /// Returns the same endpoint, whose requests name another host than that of the address.
    #[must_use]
    pub(crate) fn with_host(self, host: &str) -> Self {
        Self { target: self.target.with_host(host), ..self }
    }

    /// Returns the key for redaction of responses.
    pub const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the fields of its API for generation settings.
    pub(crate) fn setting_fields(&self) -> &'static SettingFields {
        self.provider.setting_fields(self.target.base_url().host_str())
    }

    /// Returns the key.
    pub const fn key(&self) -> Option<&Secret> {
        self.target.key()
    }

    /// Removes the key, in case the provider repeated it. Unlike in answers, which are graded, this includes keys too
    /// short to search for elsewhere.
    pub(crate) fn redact(&self, mut failure: Failure) -> Failure {
        failure.redact(&self.keys);
        if let Some(key) = self.key().filter(|key| failure.cause.contains(key.expose())) {
            failure.cause = key.redact(&failure.cause);
        }
        failure
    }

    /// Returns base URL and key for the protocol's requests.
    pub(crate) const fn target(&self) -> &Target {
        &self.target
    }
}

fn printable(base_url: &str) -> String {
    // There may be a password between the scheme and `@`.
    let shown = match (base_url.find("://"), base_url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 <= at => {
            let (head, tail) = (base_url.get(..scheme + 3), base_url.get(at..));
            format!("{}{}{}", head.unwrap_or(""), MASK, tail.unwrap_or(""))
        }
        _ => base_url.to_owned(),
    };
    shown.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use bench_domain::{Generation, Prompt};

    use super::*;
    use crate::ChatRequest;
    use crate::failure::{FailureKind, Fatal, GaveUpBy};
    use crate::protocols::{Dialect, PreparedRequest};
    use crate::providers::{CHUTES, LMSTUDIO, OPENAI_COMPATIBLE, OPENROUTER};
    use crate::settings::COMMON;

    fn answer_url(endpoint: &Endpoint) -> String {
        let (prompt, generation) = (Prompt::user("Hi"), Generation::default());
        let request = ChatRequest {
            model: "m",
            prompt: &prompt,
            generation: &generation,
            reply_schema: None,
            tools: None,
            is_continued: false,
        };
        let prepared = PreparedRequest { request: &request, fields: &COMMON, dialect: Dialect::default() };
        endpoint.provider().protocol.answer_request(endpoint.target(), prepared).unwrap().url().to_string()
    }

    #[test]
    fn paths_are_appended_whether_or_not_there_is_a_slash() {
        for base in ["https://host.example/api/v1", "https://host.example/api/v1/"] {
            let endpoint = Endpoint::new(&OPENROUTER, base, None).unwrap();
            assert_eq!(answer_url(&endpoint), "https://host.example/api/v1/chat/completions");
            let models = OPENROUTER.protocol.models_request(endpoint.target(), None).unwrap();
            assert_eq!(models.url().as_str(), "https://host.example/api/v1/models");
            assert_eq!(endpoint.base_url(), "https://host.example/api/v1");
        }
        let bare = Endpoint::new(&LMSTUDIO, "http://127.0.0.1:9", None).unwrap();
        assert_eq!(answer_url(&bare), "http://127.0.0.1:9/chat/completions");
    }

    #[test]
    fn addresses_that_would_mislead_are_refused_without_showing_a_password() {
        let bases =
            ["ftp://h/v1", "host/v1", "", "https://u:hidden@h/v1", "https://h/v1?x=1", "https://h/v1#x"];
        for base in bases {
            let error = Endpoint::new(&OPENAI_COMPATIBLE, base, None).unwrap_err();
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
    }

    #[test]
    fn an_endpoint_does_not_print_its_key() {
        let key = Secret::new("cpk_abc");
        let endpoint = Endpoint::new(&CHUTES, "https://h.example/v1", key).unwrap();
        assert!(!format!("{endpoint:?}").contains("cpk_abc"));
    }

    #[test]
    fn an_echoed_key_is_masked() {
        for (key, cause) in [("cpk_abc", "bad key ***"), ("cpk_0123456789", "bad key [redacted]")] {
            let endpoint = Endpoint::new(&CHUTES, "https://h.example/v1", Secret::new(key)).unwrap();
            let text = format!("bad key {key}");
            let failure = Failure::new(FailureKind::FatalForRun(Fatal::Key), GaveUpBy::Provider, text);
            assert_eq!(endpoint.redact(failure).cause, cause);
        }
    }
}
