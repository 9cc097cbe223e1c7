//! Base URL and key of requests.

use bench_domain::Secret;
use reqwest::Url;
use reqwest::header::{HeaderValue, InvalidHeaderValue};

use crate::address::join;

/// Base URL and key of the requests to an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    base_url: Url,
    key: Option<Secret>,
    /// Value of the `Host` header, if it isn't the base URL's host.
    host: Option<HeaderValue>,
}

/// Reason why a request can't be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The key doesn't have the form that the protocol or HTTP requires.
    #[error("the key has a wrong form")]
    Key,
    /// No path can be appended to the base URL.
    #[error("nothing can be appended to the base URL")]
    Address,
    /// The body can't be written.
    #[error(transparent)]
    Body(#[from] serde_json::Error),
}

impl Target {
    pub(crate) const fn new(base_url: Url, key: Option<Secret>) -> Self {
        Self { base_url, key, host: None }
    }

    /// Returns the part before the protocol's own paths.
    pub(crate) const fn base_url(&self) -> &Url {
        &self.base_url
    }

    /// Returns the key, if there is one.
    pub(crate) const fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// Returns the same address with another key.
    pub(crate) fn with_key(&self, key: Secret) -> Self {
        Self { base_url: self.base_url.clone(), key: Some(key), host: self.host.clone() }
    }

    /// Returns the same target with another value of the `Host` header.
    pub(crate) fn with_host(self, host: &str) -> Self {
        Self { host: HeaderValue::from_str(host).ok(), ..self }
    }

    /// Returns the value of the `Host` header, if it isn't the base URL's host.
    pub(crate) const fn host(&self) -> Option<&HeaderValue> {
        self.host.as_ref()
    }

    /// Returns the address of a path below the base URL, given its segments. A slash within a segment is encoded.
    ///
    /// # Errors
    /// Returns [`RequestError::Address`].
    pub(crate) fn url<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Result<Url, RequestError> {
        join(&self.base_url, segments).ok_or(RequestError::Address)
    }
}

impl From<InvalidHeaderValue> for RequestError {
    fn from(_: InvalidHeaderValue) -> Self {
        Self::Key
    }
}
