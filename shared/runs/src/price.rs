//! Prices of models when a run is ordered.

use bench_domain::Price;
use bench_inference::{ModelSource, Provider};

use crate::{FoundModel, Order, Orderer, Orders, RunError};

impl Orders {
    /// Returns the price for the run of this order.
    ///
    /// The price is looked up again only for a budget in dollars: at the provider itself, if the catalog doesn't have
    /// it.
    ///
    /// # Errors
    /// [`RunError::PriceUnknown`] for a budget in dollars without a price.
    pub(crate) async fn price_for(
        &self,
        order: &Order,
        found: &FoundModel,
        orderer: &Orderer,
    ) -> Result<Option<Price>, RunError> {
        let known = order.trusted.price.or(found.price).filter(|price| price.is_believable());
        // The oracle and stored responses cost nothing.
        let ModelSource::Provider(provider) = found.source else { return Ok(known) };
        if known.is_some() || order.budget.usd.is_none() {
            return Ok(known);
        }
        // A server at an address from the command line has no price list that could be trusted.
        let asked = match found.model.base_url {
            Some(_) => None,
            None => self.listed_price(provider, &found.model.slug, orderer).await,
        };
        asked.map(Some).ok_or(RunError::PriceUnknown)
    }

    async fn listed_price(
        &self,
        provider: &'static Provider,
        slug: &str,
        orderer: &Orderer,
    ) -> Option<Price> {
        let endpoint = self.endpoint(provider, Some(orderer)).ok()?;
        match self.chat.list_gateway_models(&endpoint).await {
            Ok(models) => models.into_iter().find(|model| model.slug == slug)?.price,
            Err(error) => {
                tracing::warn!(%error, "The prices of {provider} are not known: {error}");
                None
            }
        }
    }
}
