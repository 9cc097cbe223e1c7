//! Prices of models before a run is ordered.

use std::env;
use std::time::Duration;

use bench_domain::Price;
use bench_estimate::{KnownPrice, without_list};
use bench_inference::{ChatClient, HttpOptions, InferenceConfig, ModelSource, Provider};
use serde::Deserialize;

use crate::client::{Client, encode};
use crate::commands::run::models::Model;
use crate::commands::run::order::Plan;

/// Maximum time to wait for a provider's list.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of models of the catalog to read.
const MODELS_MAX: u32 = 500;

/// Prices in the catalog and in the lists of providers.
pub(super) struct PriceList<'a> {
    client: &'a Client,
    /// True if the models are asked from this machine, with its settings.
    is_local: bool,
}

#[derive(Debug, Deserialize)]
struct Models {
    models: Vec<ListedModel>,
}

#[derive(Debug, Deserialize)]
struct ListedModel {
    slug: String,
    #[serde(default)]
    input_per_million_usd: Option<f64>,
    #[serde(default)]
    output_per_million_usd: Option<f64>,
}

impl<'a> PriceList<'a> {
    pub(super) const fn new(client: &'a Client, is_local: bool) -> Self {
        Self { client, is_local }
    }

    /// Returns the price of an ordered model.
    pub(super) async fn of_model(&self, plan: &Plan, model: &Model) -> KnownPrice {
        self.of(model.source, &model.slug, plan.base_url.as_deref(), plan.price).await
    }

    /// Returns the price of a model at its provider or at `base_url`. `given` is the user's own price.
    pub(super) async fn of(
        &self,
        source: Option<ModelSource>,
        slug: &str,
        base_url: Option<&str>,
        given: Option<Price>,
    ) -> KnownPrice {
        let provider = match source {
            Some(ModelSource::Provider(provider)) => Some(provider),
            Some(_) => return KnownPrice::NoModel,
            None => None,
        };
        if let Some(price) = given {
            return KnownPrice::Listed(price);
        }
        let host = provider.filter(|_| self.is_local).and_then(|provider| host(provider, base_url));
        let without_list = match without_list(host.as_deref(), self.is_local) {
            KnownPrice::Local => return KnownPrice::Local,
            // Only the server knows the address. A provider without keys has no accounts to charge.
            _ if host.is_none() && provider.is_some_and(|provider| !provider.needs_key) => {
                KnownPrice::OwnServer
            }
            other => other,
        };
        // Another server of the same protocol has prices of its own.
        if base_url.is_some() {
            return without_list;
        }
        if let Some(price) = self.in_catalog(provider, slug).await {
            return KnownPrice::Listed(price);
        }
        let listed = match provider.filter(|_| self.is_local) {
            Some(provider) => {
                tokio::time::timeout(LIST_TIMEOUT, at_provider(provider, slug)).await.ok().flatten()
            }
            None => None,
        };
        listed.map_or(without_list, KnownPrice::Listed)
    }

    async fn in_catalog(&self, provider: Option<&'static Provider>, slug: &str) -> Option<Price> {
        let mut path = format!("/api/models?limit={MODELS_MAX}&search={}", encode(slug));
        if let Some(provider) = provider {
            path.push_str(&format!("&provider={}", encode(provider.name)));
        }
        let found: Models = self.client.get(&path).await.ok()?;
        let model = found.models.into_iter().find(|model| model.slug == slug)?;
        let price = Price::new(model.input_per_million_usd?, model.output_per_million_usd?)?;
        price.is_believable().then_some(price)
    }
}

/// Returns the host of the provider's API, with its port.
fn host(provider: &'static Provider, base_url: Option<&str>) -> Option<String> {
    settings().and_then(|settings| settings.host(provider, base_url))
}

/// Returns the price in the provider's own list, as far as it has prices.
async fn at_provider(provider: &'static Provider, slug: &str) -> Option<Price> {
    let endpoint = settings()?.endpoint(provider).ok()?;
    let models = ChatClient::new(HttpOptions::default()).list_gateway_models(&endpoint).await.ok()?;
    models.into_iter().find(|model| model.slug == slug)?.price.filter(|price| price.is_believable())
}

fn settings() -> Option<InferenceConfig> {
    InferenceConfig::from_vars(|name| env::var(name).ok()).ok()
}
