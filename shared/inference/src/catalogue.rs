//! Which models a provider has.
//!
//! Some providers list all models in public; every provider's gateway lists what the key may use.

use std::collections::HashSet;
use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, Request, Url};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::address::parse_base;
use crate::call::{expired, network, no_client, refused};
use crate::client::headers;
use crate::failure::{Failure, FailureKind, GaveUpBy, quote_bytes};
use crate::http::chain;
use crate::watch::Watch;
use crate::{ChatClient, Endpoint, Keys, Provider};

pub use crate::listed_model::CatalogueModel;

/// Pages of a public list that are read at most.
const PAGES_MAX: usize = 200;
/// Bytes of one list or page.
const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest time for one list or page.
const LIST_SECONDS_MAX: u64 = 60;

/// Why there is no list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// The provider did not answer well.
    #[error("the list of models could not be read: {0}")]
    Request(#[from] Failure),
    /// The provider has no public list of models.
    #[error("{} has no public list of models", provider.display_name)]
    NoPublicList {
        /// Which provider.
        provider: &'static Provider,
    },
    /// The configured address is none.
    #[error("`{address}` is no usable address of a list of models: {problem}")]
    BadAddress {
        /// What was given, cut to 200 characters.
        address: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// More than 64 MiB in one list or page, or more than 200 pages.
    #[error("the list of models of {} is too large", provider.display_name)]
    TooLarge {
        /// Whose list.
        provider: &'static Provider,
    },
    /// The body is not what the API promises.
    #[error("{} sent no list of models: {problem}", provider.display_name)]
    Malformed {
        /// Whose list.
        provider: &'static Provider,
        /// What is wrong, with the beginning of what came.
        problem: String,
    },
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, alias = "data")]
    items: Vec<&'a RawValue>,
    #[serde(default)]
    total: Option<u64>,
}

impl ChatClient {
    /// Reads a provider's public list page by page. No key is sent: Chutes refuses a request with one.
    ///
    /// Entries without a name are left out; of equal names the first one stays. `base_url` is such as
    /// `https://api.chutes.ai`.
    ///
    /// # Errors
    /// [`CatalogueError`]; half a list is never returned.
    pub async fn list_public_models(
        &self,
        provider: &'static Provider,
        base_url: &str,
    ) -> Result<Vec<CatalogueModel>, CatalogueError> {
        let list = provider.public_list.as_ref().ok_or(CatalogueError::NoPublicList { provider })?;
        let bad =
            |problem| CatalogueError::BadAddress { address: base_url.chars().take(200).collect(), problem };
        let base = parse_base(base_url).map_err(bad)?;
        let (mut models, mut seen, mut items) = (Vec::new(), HashSet::new(), 0_u64);
        for number in 0..PAGES_MAX {
            let url = (list.page)(&base, number).ok_or_else(|| bad("nothing can be appended to it"))?;
            let body = self.get(provider, url, HeaderMap::new(), &Keys::default()).await?;
            let page = parse_page(provider, &body, &Keys::default())?;
            items += page.items.len() as u64;
            for model in page.items.iter().filter_map(|item| (list.entry)(item.get())) {
                if seen.insert(model.slug.clone()) {
                    models.push(model);
                }
            }
            let is_last =
                page.items.len() < list.page_models || page.total.is_some_and(|total| items >= total);
            if is_last {
                return Ok(models);
            }
        }
        Err(CatalogueError::TooLarge { provider })
    }

    /// Reads what an endpoint offers to its key: `GET <base URL>/models`. The key itself is in none of the entries, also
    /// when the provider repeats it.
    ///
    /// # Errors
    /// [`CatalogueError`].
    pub async fn list_gateway_models(
        &self,
        endpoint: &Endpoint,
    ) -> Result<Vec<CatalogueModel>, CatalogueError> {
        let provider = endpoint.provider();
        let url = endpoint.models_url().ok_or_else(|| CatalogueError::BadAddress {
            address: endpoint.base_url().chars().take(200).collect(),
            problem: "nothing can be appended to it",
        })?;
        let keys = endpoint.keys();
        let body = self.get(provider, url, headers(endpoint)?, keys).await.map_err(|error| match error {
            CatalogueError::Request(failure) => CatalogueError::Request(endpoint.redact(failure)),
            other => other,
        })?;
        let page = parse_page(provider, &body, keys)?;
        let mut seen = HashSet::new();
        // Before the texts of an entry are cut.
        let models = page.items.iter().filter_map(|item| provider.listed_model(&keys.redact(item.get())));
        Ok(models.filter(|model| seen.insert(model.slug.clone())).collect())
    }

    pub(crate) async fn get(
        &self,
        provider: &'static Provider,
        url: Url,
        headers: HeaderMap,
        keys: &Keys,
    ) -> Result<Vec<u8>, CatalogueError> {
        let client = self.http.client(&url).map_err(|problem| no_client(provider, problem))?;
        let mut request = Request::new(Method::GET, url.clone());
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        request.headers_mut().extend(headers);
        let longest = Duration::from_secs(LIST_SECONDS_MAX);
        let mut watch = Watch::start(longest, Instant::now() + longest);
        let mut response = match watch.guard(client.execute(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(network(provider, &error).into()),
            Err(why) => return Err(expired(provider, why, &watch, 0).into()),
        };
        if !response.status().is_success() {
            return Err((*refused(provider, response, &mut watch, None, keys).await.failure).into());
        }
        let mut body = Vec::new();
        loop {
            match watch.guard(response.chunk()).await {
                Ok(Ok(None)) => return Ok(body),
                Ok(Ok(Some(chunk))) if body.len() + chunk.len() > LIST_BYTES_MAX => {
                    return Err(CatalogueError::TooLarge { provider });
                }
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                Ok(Err(error)) => {
                    let cause = format!(
                        "The list from {} broke off after {} bytes: {}",
                        provider.display_name,
                        body.len(),
                        chain(&error.without_url()),
                    );
                    return Err(Failure::new(FailureKind::Transient, GaveUpBy::Provider, cause).into());
                }
                Err(why) => return Err(expired(provider, why, &watch, body.len()).into()),
            }
        }
    }
}

fn parse_page<'a>(
    provider: &'static Provider,
    body: &'a [u8],
    keys: &Keys,
) -> Result<Page<'a>, CatalogueError> {
    serde_json::from_slice(body).map_err(|error| CatalogueError::Malformed {
        provider,
        problem: format!("{error}: {}", quote_bytes(&keys.redact_beginning(body))),
    })
}
