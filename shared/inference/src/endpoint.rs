//! Where a model is asked, and with which key.

use bench_domain::Secret;
use bench_domain::secret::MASK;
use reqwest::Url;

use crate::address::{join, parse_base};
use crate::{Failure, Keys, Provider};

/// A provider's address and key. The key is sent to this address and to nowhere else.
#[derive(Debug, Clone)]
pub struct Endpoint {
    provider: &'static Provider,
    base_url: Url,
    answer_url: Url,
    key: Option<Secret>,
    /// The same key, to be found in what comes back.
    keys: Keys,
}

/// Why nobody can be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The address is no address.
    #[error("`{given}` is no usable base URL for {}: {problem}", provider.name)]
    BadBaseUrl {
        /// Whose address it is.
        provider: &'static Provider,
        /// What was given, cut to 200 characters, without a password.
        given: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The provider has no default address, and none is configured.
    #[error("{} needs a base URL: set {}", provider.name, provider.base_url_variable)]
    NoBaseUrl {
        /// Which provider.
        provider: &'static Provider,
    },
    /// The provider answers nobody without a key, and there is none.
    #[error("{} needs a key: set {}", provider.display_name, provider.key_variable)]
    NoKey {
        /// Which provider.
        provider: &'static Provider,
    },
}

impl Endpoint {
    /// An endpoint at `base_url`, the part before the protocol's own paths, such as `https://openrouter.ai/api/v1`.
    ///
    /// # Errors
    /// [`EndpointError::BadBaseUrl`] unless the address is `http` or `https` with a host, without user,
    /// query and fragment.
    pub fn new(
        provider: &'static Provider,
        base_url: &str,
        key: Option<Secret>,
    ) -> Result<Self, EndpointError> {
        let bad = |problem| EndpointError::BadBaseUrl { provider, given: printable(base_url), problem };
        let url = parse_base(base_url).map_err(bad)?;
        let answer_url = join(&url, provider.protocol.answer_path())
            .ok_or_else(|| bad("nothing can be appended to it"))?;
        let keys = Keys::new(&key);
        Ok(Self { provider, base_url: url, answer_url, key, keys })
    }

    /// Who answers.
    pub const fn provider(&self) -> &'static Provider {
        self.provider
    }

    /// The address that it was made of, without a slash at its end.
    pub fn base_url(&self) -> &str {
        self.base_url.as_str().trim_end_matches('/')
    }

    /// The same address with another key.
    #[must_use]
    pub fn with_key(&self, key: Secret) -> Self {
        Self { keys: Keys::new([&key]), key: Some(key), ..self.clone() }
    }

    /// The key that is sent, as something to be removed from what comes back.
    pub const fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(crate) const fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// Removes the key that was sent, in case that the provider echoed it. In an error, which is no answer to be graded,
    /// also one that is too short to be looked for elsewhere.
    pub(crate) fn redact(&self, mut failure: Failure) -> Failure {
        failure.redact(&self.keys);
        if let Some(key) = self.key.as_ref().filter(|key| failure.cause.contains(key.expose())) {
            failure.cause = key.redact(&failure.cause);
        }
        failure
    }

    pub(crate) const fn answer_url(&self) -> &Url {
        &self.answer_url
    }

    pub(crate) fn models_url(&self) -> Option<Url> {
        join(&self.base_url, self.provider.protocol.models_path())
    }
}

fn printable(base_url: &str) -> String {
    // Between scheme and `@` there may be a password.
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
    use super::*;
    use crate::failure::{FailureKind, Fatal, GaveUpBy};
    use crate::providers::{CHUTES, LMSTUDIO, OPENAI_COMPATIBLE, OPENROUTER};

    #[test]
    fn paths_are_appended_whether_or_not_there_is_a_slash() {
        for base in ["https://host.example/api/v1", "https://host.example/api/v1/"] {
            let endpoint = Endpoint::new(&OPENROUTER, base, None).unwrap();
            assert_eq!(endpoint.answer_url().as_str(), "https://host.example/api/v1/chat/completions");
            assert_eq!(endpoint.models_url().unwrap().as_str(), "https://host.example/api/v1/models");
            assert_eq!(endpoint.base_url(), "https://host.example/api/v1");
        }
        let bare = Endpoint::new(&LMSTUDIO, "http://127.0.0.1:9", None).unwrap();
        assert_eq!(bare.answer_url().as_str(), "http://127.0.0.1:9/chat/completions");
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
            let said = format!("bad key {key}");
            let failure = Failure::new(FailureKind::FatalForRun(Fatal::Key), GaveUpBy::Provider, said);
            assert_eq!(endpoint.redact(failure).cause, cause);
        }
    }
}
