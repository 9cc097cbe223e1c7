//! Where a model is asked, and with which key.

use bench_domain::Secret;
use bench_domain::secret::MASK;
use reqwest::Url;

use crate::{Keys, ProviderKind};

/// A provider's address and key. The key is sent to this address and to nowhere else.
#[derive(Debug, Clone)]
pub struct Endpoint {
    provider: ProviderKind,
    base_url: Url,
    chat_url: Url,
    key: Option<Secret>,
    /// The same key, to be found in what comes back.
    keys: Keys,
}

/// Why nobody can be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The address is no address.
    #[error("`{given}` is no usable base URL for {provider}: {problem}")]
    BadBaseUrl {
        /// Whose address it is.
        provider: ProviderKind,
        /// What was given, cut to 200 characters, without a password.
        given: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// An `openai-compatible` model without `OPENAI_COMPATIBLE_BASE_URL`.
    #[error("{provider} needs a base URL: set OPENAI_COMPATIBLE_BASE_URL")]
    NoBaseUrl {
        /// Which provider.
        provider: ProviderKind,
    },
    /// The provider answers nobody without a key, and there is none.
    #[error("{} needs a key: set {variable}", provider.display_name())]
    NoKey {
        /// Which provider.
        provider: ProviderKind,
        /// The variable that would give it one.
        variable: &'static str,
    },
    /// The oracle and stored responses have no address.
    #[error("{} is not asked over the network", provider.display_name())]
    NotRemote {
        /// Which kind.
        provider: ProviderKind,
    },
}

impl Endpoint {
    /// An endpoint at `base_url`, the part before `/chat/completions`, such as `https://llm.chutes.ai/v1`.
    ///
    /// # Errors
    /// [`EndpointError::BadBaseUrl`] unless the address is `http` or `https` with a host, without user,
    /// query and fragment.
    pub fn new(provider: ProviderKind, base_url: &str, key: Option<Secret>) -> Result<Self, EndpointError> {
        let bad = |problem| EndpointError::BadBaseUrl { provider, given: printable(base_url), problem };
        let url = parse_base(base_url).map_err(bad)?;
        let chat_url = join(&url, "chat/completions").ok_or_else(|| bad("nothing can be appended to it"))?;
        let keys = Keys::new(&key);
        Ok(Self { provider, base_url: url, chat_url, key, keys })
    }

    /// Who answers.
    pub const fn provider(&self) -> ProviderKind {
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

    pub(crate) const fn chat_url(&self) -> &Url {
        &self.chat_url
    }

    pub(crate) fn url(&self, path: &str) -> Option<Url> {
        join(&self.base_url, path)
    }
}

/// Reads an address that paths are appended to; the slash at its end does not matter.
pub(crate) fn parse_base(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text.trim()).map_err(|_| "it must be like https://host/v1")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it must start with http:// or https://");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it names no host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must not contain a user or password");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must not contain ? or #");
    }
    Ok(url)
}

/// The address of `path` below `base`.
pub(crate) fn join(base: &Url, path: &str) -> Option<Url> {
    let mut url = base.clone();
    url.path_segments_mut().ok()?.pop_if_empty().extend(path.split('/'));
    Some(url)
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

    #[test]
    fn paths_are_appended_whether_or_not_there_is_a_slash() {
        for base in ["https://host.example/api/v1", "https://host.example/api/v1/"] {
            let endpoint = Endpoint::new(ProviderKind::OpenRouter, base, None).unwrap();
            assert_eq!(endpoint.chat_url().as_str(), "https://host.example/api/v1/chat/completions");
            assert_eq!(endpoint.url("models").unwrap().as_str(), "https://host.example/api/v1/models");
            assert_eq!(endpoint.base_url(), "https://host.example/api/v1");
        }
        let bare = Endpoint::new(ProviderKind::LmStudio, "http://127.0.0.1:9", None).unwrap();
        assert_eq!(bare.chat_url().as_str(), "http://127.0.0.1:9/chat/completions");
    }

    #[test]
    fn addresses_that_would_mislead_are_refused_without_showing_a_password() {
        let bases =
            ["ftp://h/v1", "host/v1", "", "https://u:hidden@h/v1", "https://h/v1?x=1", "https://h/v1#x"];
        for base in bases {
            let error = Endpoint::new(ProviderKind::OpenAiCompatible, base, None).unwrap_err();
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
    }

    #[test]
    fn an_endpoint_does_not_print_its_key() {
        let key = Secret::new("cpk_abc");
        let endpoint = Endpoint::new(ProviderKind::Chutes, "https://h.example/v1", key).unwrap();
        assert!(!format!("{endpoint:?}").contains("cpk_abc"));
    }
}
