//! Base URL and key of requests.

use bench_domain::Secret;
use reqwest::Url;
use reqwest::header::InvalidHeaderValue;

use crate::address::join;

/// Base URL and key of the requests to an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    base_url: Url,
    key: Option<Secret>,
}

/// Why a request can't be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The key does not have the form that the protocol or HTTP asks for.
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
        Self { base_url, key }
    }

    /// The part before the protocol's own paths.
    pub(crate) const fn base_url(&self) -> &Url {
        &self.base_url
    }

    /// The key, if there is one.
    pub(crate) const fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// The same address with another key.
    pub(crate) fn with_key(&self, key: Secret) -> Self {
        Self { base_url: self.base_url.clone(), key: Some(key) }
    }

    /// Address of a path below the base URL, by its segments. A slash within a segment is encoded.
    ///
    /// # Errors
    /// [`RequestError::Address`].
    pub(crate) fn url<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Result<Url, RequestError> {
        join(&self.base_url, segments).ok_or(RequestError::Address)
    }
}

impl From<InvalidHeaderValue> for RequestError {
    fn from(_: InvalidHeaderValue) -> Self {
        Self::Key
    }
}
