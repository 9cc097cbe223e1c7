//! Lists of a provider's models.
//!
//! Some providers publish a list of all models. In addition, every provider's gateway lists the models that the key
//! may use.

use std::collections::HashSet;
use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Method, Request};
use tokio::time::Instant;

use crate::address::parse_base;
use crate::failure::{Failure, FailureKind, GaveUpBy, quote_bytes};
use crate::transport::{
    Watch, error_chain, invalid_request_failure, missing_client_failure, network_failure, read_refusal,
    timeout_failure,
};
use crate::{ChatClient, Endpoint, Keys, Provider};

pub use crate::listed_model::CatalogModel;

/// Maximum number of pages of a list.
const PAGES_MAX: usize = 200;
/// Maximum size of one list or page in bytes.
const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Time limit for one list or page.
const LIST_SECONDS_MAX: u64 = 60;

/// Failure to get a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// The request failed.
    #[error("the list of models could not be read: {0}")]
    Request(#[from] Failure),
    /// The provider has no public list of models.
    #[error("{} has no public list of models", provider.display_name)]
    NoPublicList {
        /// The provider.
        provider: &'static Provider,
    },
    /// The configured address can't be used.
    #[error("`{address}` is not a usable address of a list of models: {problem}")]
    BadAddress {
        /// The address as given, cut to 200 characters.
        address: String,
        /// The problem.
        problem: &'static str,
    },
    /// More than 64 MiB in one list or page, or more than 200 pages.
    #[error("the list of models of {} is too large", provider.display_name)]
    TooLarge {
        /// The provider whose list it is.
        provider: &'static Provider,
    },
    /// The body is not a list of models.
    #[error("{} sent no list of models: {problem}", provider.display_name)]
    Malformed {
        /// The provider whose list it is.
        provider: &'static Provider,
        /// The problem, with the beginning of the body.
        problem: String,
    },
}

impl ChatClient {
    /// Reads a provider's public list page by page. Sends no key, because Chutes refuses requests with one.
    ///
    /// Entries without a name are left out. If several entries have the same name, the first one stays. An example of
    /// `base_url` is `https://api.chutes.ai`.
    ///
    /// # Errors
    /// Returns a [`CatalogError`], never an incomplete list.
    pub async fn list_public_models(
        &self,
        provider: &'static Provider,
        base_url: &str,
    ) -> Result<Vec<CatalogModel>, CatalogError> {
        let list = provider.public_list.as_ref().ok_or(CatalogError::NoPublicList { provider })?;
        let bad =
            |problem| CatalogError::BadAddress { address: base_url.chars().take(200).collect(), problem };
        let base = parse_base(base_url).map_err(bad)?;
        let (mut models, mut seen, mut items) = (Vec::new(), HashSet::new(), 0_u64);
        for number in 0..PAGES_MAX {
            let url = (list.page)(&base, number).ok_or_else(|| bad("nothing can be appended to it"))?;
            let mut request = Request::new(Method::GET, url);
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
            let body = self.fetch(provider, request, &Keys::default()).await?;
            let page = (list.split)(&body)
                .map_err(|problem| malformed(provider, &problem, &body, &Keys::default()))?;
            items += page.entries.len() as u64;
            for model in page.entries.iter().filter_map(|entry| (list.entry)(entry)) {
                if seen.insert(model.slug.clone()) {
                    models.push(model);
                }
            }
            let is_last =
                page.entries.len() < list.page_models || page.total.is_some_and(|total| items >= total);
            if is_last {
                return Ok(models);
            }
        }
        Err(CatalogError::TooLarge { provider })
    }

    /// Reads the models that an endpoint offers to its key, page by page. Redacts the key in the entries.
    ///
    /// # Errors
    /// Returns a [`CatalogError`], never an incomplete list.
    pub async fn list_gateway_models(&self, endpoint: &Endpoint) -> Result<Vec<CatalogModel>, CatalogError> {
        let (provider, keys) = (endpoint.provider(), endpoint.keys());
        let (mut models, mut seen, mut next) = (Vec::new(), HashSet::new(), None);
        for _ in 0..PAGES_MAX {
            let request = provider.protocol.models_request(endpoint.target(), next.as_deref());
            let request = request.map_err(|error| invalid_request_failure(provider, &error))?;
            let body = self.fetch(provider, request, keys).await.map_err(|error| match error {
                CatalogError::Request(failure) => CatalogError::Request(endpoint.redact(failure)),
                other => other,
            })?;
            let page = provider.protocol.split_models(&body);
            let page = page.map_err(|problem| malformed(provider, &problem, &body, keys))?;
            // Redacted before the texts of an entry are cut.
            let entries = page.entries.iter().filter_map(|entry| provider.listed_model(&keys.redact(entry)));
            models.extend(entries.filter(|model| seen.insert(model.slug.clone())));
            match page.next {
                None => return Ok(models),
                named => next = named,
            }
        }
        Err(CatalogError::TooLarge { provider })
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn fetch(
        &self,
        provider: &'static Provider,
        request: Request,
        keys: &Keys,
    ) -> Result<Vec<u8>, CatalogError> {
        let client =
            self.http.client(request.url()).map_err(|problem| missing_client_failure(provider, problem))?;
        let longest = Duration::from_secs(LIST_SECONDS_MAX);
        let mut watch = Watch::start(longest, Instant::now() + longest);
        let mut response = match watch.guard(client.execute(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(network_failure(provider, &error).into()),
            Err(why) => return Err(timeout_failure(provider, why, &watch, 0).into()),
        };
        if !response.status().is_success() {
            return Err((*read_refusal(provider, response, &mut watch, None, keys).await.failure).into());
        }
        let mut body = Vec::new();
        loop {
            match watch.guard(response.chunk()).await {
                Ok(Ok(None)) => return Ok(body),
                Ok(Ok(Some(chunk))) if body.len() + chunk.len() > LIST_BYTES_MAX => {
                    return Err(CatalogError::TooLarge { provider });
                }
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                Ok(Err(error)) => {
                    let cause = format!(
                        "The list from {} broke off after {} bytes: {}",
                        provider.display_name,
                        body.len(),
                        error_chain(&error.without_url()),
                    );
                    return Err(Failure::new(FailureKind::Transient, GaveUpBy::Provider, cause).into());
                }
                Err(why) => return Err(timeout_failure(provider, why, &watch, body.len()).into()),
            }
        }
    }
}

fn malformed(provider: &'static Provider, problem: &str, body: &[u8], keys: &Keys) -> CatalogError {
    let quoted = quote_bytes(&keys.redact_beginning(body));
    CatalogError::Malformed { provider, problem: format!("{problem}: {quoted}") }
}
