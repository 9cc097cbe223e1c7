//! Availability of models: checks within a few seconds whether the provider would answer.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use bench_domain::run::AuthMode;
use bench_domain::{Generation, Prompt};
use bench_inference::catalog::CatalogError;
use bench_inference::{ChatRequest, Endpoint, ModelSource};

use crate::orders::lock;
use crate::{FoundModel, Orderer, Orders, RunError};

/// Maximum number of keys whose model lists are cached.
const OFFERS_MAX: usize = 64;

impl Orders {
    /// Rejects an order if its provider needs a key and there is none, refuses the key, or doesn't have the model. Any
    /// other problem with the provider lets the order through, since it may be gone when the run starts.
    pub(crate) async fn check_available(
        &self,
        found: &FoundModel,
        orderer: &Orderer,
    ) -> Result<(), RunError> {
        let ModelSource::Provider(provider) = found.source else { return Ok(()) };
        if found.model.base_url.is_some() {
            return Ok(());
        }
        let endpoint = self.endpoint(provider, Some(orderer)).map_err(RunError::ModelCannotBeAsked)?;
        // An access token isn't spent on a check: the user's account may use every public model.
        let is_session = orderer.auth_for(&found.model) == AuthMode::Idp;
        if is_session || provider.public_list.is_none() || !self.config.sync_models {
            return Ok(());
        }
        let refused = || RunError::KeyNotAuthorized { provider, own: orderer.api_key.is_some() };
        let offered = match self.offered_models(&endpoint, orderer).await {
            Ok(offered) => offered,
            Err(Some(401 | 403)) => return Err(refused()),
            Err(_) => return Ok(()),
        };
        let is_offered = |id: &str| offered.contains(id);
        if offered.is_empty()
            || is_offered(&found.model.slug)
            || found.chute_id.as_deref().is_some_and(is_offered)
        {
            return Ok(());
        }
        match self.probe(&endpoint, &found.model.slug).await {
            Some(401 | 403) => Err(refused()),
            Some(404) => Err(RunError::ModelNotOffered { provider }),
            _ => Ok(()),
        }
    }

    /// Returns the models that the gateway offers to this key, or the HTTP status of its error if it responded at all.
    async fn offered_models(
        &self,
        endpoint: &Endpoint,
        orderer: &Orderer,
    ) -> Result<Arc<HashSet<String>>, Option<u16>> {
        let holder = orderer.api_key.as_ref().map_or_else(String::new, |key| self.owner_key.owner_of(key));
        let kept = lock(&self.offers).get(&holder).cloned();
        if let Some((at, models)) = kept
            && at.elapsed() < self.runs.config.inference.models_cache_ttl
        {
            return Ok(models);
        }
        let listing = self.chat.list_gateway_models(endpoint);
        let models = match tokio::time::timeout(self.config.availability_wait, listing).await {
            Err(_) => return Err(None),
            Ok(Err(CatalogError::Request(failure))) => return Err(failure.status),
            Ok(Err(_)) => return Err(None),
            Ok(Ok(models)) => models,
        };
        let ids = models.into_iter().filter(|model| model.is_language_model);
        let ids = ids.flat_map(|model| [Some(model.slug), Some(model.name), model.chute_id]).flatten();
        let models = Arc::new(ids.collect::<HashSet<String>>());
        let mut offers = lock(&self.offers);
        if offers.len() >= OFFERS_MAX {
            offers.clear();
        }
        offers.insert(holder, (Instant::now(), Arc::clone(&models)));
        Ok(models)
    }

    /// Requests one token. Returns the HTTP status if the provider rejected the request.
    async fn probe(&self, endpoint: &Endpoint, slug: &str) -> Option<u16> {
        let prompt = Prompt::user("ping");
        let generation = Generation { temperature: Some(0.0), max_tokens: Some(1), ..Generation::default() };
        let request = ChatRequest {
            model: slug,
            prompt: &prompt,
            generation: &generation,
            reply_schema: None,
            tools: None,
            is_continued: false,
        };
        let answer = self.chat.complete(endpoint, &request, None);
        match tokio::time::timeout(self.config.availability_wait, answer).await {
            Ok(Err(failure)) => failure.status,
            _ => None,
        }
    }
}
