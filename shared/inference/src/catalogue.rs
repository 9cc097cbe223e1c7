//! Which models a provider has.
//!
//! Chutes lists all models in public, with prices; every provider's gateway lists what the key may use.

mod entry;

use std::collections::HashSet;
use std::time::Duration;

use bench_domain::Price;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use reqwest::{Method, Request, Url};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::call::{expired, network, no_client, refused};
use crate::client::authorization;
use crate::collect::quote_bytes;
use crate::endpoint::{join, parse_base};
use crate::failure::{Failure, FailureKind, GaveUpBy};
use crate::http::chain;
use crate::watch::Watch;
use crate::{ChatClient, Endpoint, Keys, ProviderKind};

/// Models on one page of the public list.
const PAGE_MODELS: usize = 500;
/// Pages that are read at most.
const PAGES_MAX: usize = 200;
/// Bytes of one list or page.
const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest time for one list or page.
const LIST_SECONDS_MAX: u64 = 60;

/// One model as its provider lists it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CatalogueModel {
    /// The id that requests name.
    pub slug: String,
    /// The name for people; often the slug.
    pub name: String,
    /// Chutes' id of the deployment.
    pub chute_id: Option<String>,
    /// What it is, in one line.
    pub tagline: Option<String>,
    /// Who published it.
    pub user: Option<String>,
    /// Address of its picture.
    pub logo: Option<String>,
    /// Running instances; 0 where the provider does not say.
    pub instance_count: u32,
    /// Whether the entry shows that it answers chats: by a price or a limit in tokens. Providers other than
    /// Chutes list little else, so all their entries count.
    pub is_language_model: bool,
    /// What tokens cost.
    pub price: Option<Price>,
    /// Tokens of prompt and answer together.
    pub context_length: Option<u64>,
    /// Tokens of an answer.
    pub max_output: Option<u64>,
}

/// Why there is no list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// The provider did not answer well.
    #[error("the list of models could not be read: {0}")]
    Request(#[from] Failure),
    /// The configured address is none.
    #[error("`{address}` is no usable address of a list of models: {problem}")]
    BadAddress {
        /// What was given, cut to 200 characters.
        address: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// More than 64 MiB in one list or page, or more than 200 pages.
    #[error("the list of models of {} is too large", provider.display_name())]
    TooLarge {
        /// Whose list.
        provider: ProviderKind,
    },
    /// The body is not what the API promises.
    #[error("{} sent no list of models: {problem}", provider.display_name())]
    Malformed {
        /// Whose list.
        provider: ProviderKind,
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
    /// Reads Chutes' public list page by page. No key is sent: with one the platform refuses.
    ///
    /// Entries without a name are left out; of equal names the first one stays. `base_url` is such as
    /// `https://api.chutes.ai`.
    ///
    /// # Errors
    /// [`CatalogueError`]; half a list is never returned.
    pub async fn list_public_models(&self, base_url: &str) -> Result<Vec<CatalogueModel>, CatalogueError> {
        let bad =
            |problem| CatalogueError::BadAddress { address: base_url.chars().take(200).collect(), problem };
        let base = parse_base(base_url).map_err(bad)?;
        let provider = ProviderKind::Chutes;
        let (mut models, mut seen, mut items) = (Vec::new(), HashSet::new(), 0_u64);
        for number in 0..PAGES_MAX {
            let mut url = join(&base, "chutes/").ok_or_else(|| bad("nothing can be appended to it"))?;
            url.query_pairs_mut()
                .append_pair("include_public", "true")
                .append_pair("page", &number.to_string())
                .append_pair("limit", &PAGE_MODELS.to_string())
                .append_pair("include_schemas", "false");
            let body = self.get(provider, url, None, &Keys::default()).await?;
            let page = parse_page(provider, &body, &Keys::default())?;
            items += page.items.len() as u64;
            for model in page.items.iter().filter_map(|item| entry::public(item.get())) {
                if seen.insert(model.slug.clone()) {
                    models.push(model);
                }
            }
            let is_last = page.items.len() < PAGE_MODELS || page.total.is_some_and(|total| items >= total);
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
        let url = endpoint.url("models").ok_or_else(|| CatalogueError::BadAddress {
            address: endpoint.base_url().chars().take(200).collect(),
            problem: "nothing can be appended to it",
        })?;
        let (authorization, keys) = (authorization(endpoint)?, endpoint.keys());
        let body = self.get(provider, url, authorization, keys).await.map_err(|error| match error {
            CatalogueError::Request(failure) => CatalogueError::Request(failure.without(endpoint)),
            other => other,
        })?;
        let page = parse_page(provider, &body, keys)?;
        let mut seen = HashSet::new();
        // Before the texts of an entry are cut.
        let models = page.items.iter().filter_map(|item| entry::gateway(provider, &keys.redact(item.get())));
        Ok(models.filter(|model| seen.insert(model.slug.clone())).collect())
    }

    pub(crate) async fn get(
        &self,
        provider: ProviderKind,
        url: Url,
        authorization: Option<HeaderValue>,
        keys: &Keys,
    ) -> Result<Vec<u8>, CatalogueError> {
        let client = self.http.client(&url).map_err(|problem| no_client(provider, problem))?;
        let mut request = Request::new(Method::GET, url.clone());
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization);
        }
        let longest = Duration::from_secs(LIST_SECONDS_MAX);
        let mut watch = Watch::start(longest, Instant::now() + longest);
        let mut response = match watch.guard(client.execute(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(network(provider, &error).into()),
            Err(why) => return Err(expired(provider, why, &watch, 0).into()),
        };
        if !response.status().is_success() {
            return Err((*refused(provider, response, &mut watch, false, keys).await.failure).into());
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
                        provider.display_name(),
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

fn parse_page<'a>(provider: ProviderKind, body: &'a [u8], keys: &Keys) -> Result<Page<'a>, CatalogueError> {
    serde_json::from_slice(body).map_err(|error| CatalogueError::Malformed {
        provider,
        problem: format!("{error}: {}", quote_bytes(&keys.redact_beginning(body))),
    })
}
