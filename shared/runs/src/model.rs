//! Resolution of an order's model.

use std::time::{Duration, Instant};

use bench_catalog::is_synchronized;
use bench_domain::run::{AuthMode, ModelRef};
use bench_domain::{ModelId, ModelRole, Price, RunSpec};
use bench_inference::{Endpoint, EndpointError, ModelName, ModelSource, Provider};
use bench_state::ModelRecord;
use uuid::Uuid;

use crate::orders::lock;
use crate::{Order, Orderer, Orders, RunError};

/// Minimum interval between two synchronizations of the catalog that orders for unknown models cause.
const SYNC_EVERY: Duration = Duration::from_secs(60);

/// Resolved model of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundModel {
    /// Model as recorded in runs.
    pub model: ModelRef,
    /// Source of its answers.
    pub source: ModelSource,
    /// The provider's own id.
    pub chute_id: Option<String>,
    /// Price according to the catalog.
    pub price: Option<Price>,
}

impl Orders {
    /// Finds the model of an order, and the host that serves it. `orderer` is `None` while the caller is unknown.
    ///
    /// # Errors
    /// If the model doesn't exist, or its provider isn't configured.
    pub async fn find_model(&self, order: &Order, orderer: Option<&Orderer>) -> Result<FoundModel, RunError> {
        let mut found = self.find(order, orderer).await?;
        let inference = &self.runs.config.inference;
        if let ModelSource::Provider(provider) = found.source {
            found.model.endpoint_host = inference.host(provider, found.model.base_url.as_deref());
        }
        Ok(found)
    }

    /// Finds the model of an order that isn't placed: asks no provider and needs no key.
    ///
    /// # Errors
    /// If the model doesn't exist, or its provider has no address here.
    pub async fn find_model_offline(&self, order: &Order) -> Result<FoundModel, RunError> {
        if let Some(found) = self.find_custom_agent(order, None).await? {
            return Ok(found);
        }
        let source = requested_source(order.provider.as_deref())?;
        let models = self.models().await?;
        let mut found = match find_in_catalog(&models, &order.model, source)? {
            Some(record) => found_model(record, order)?,
            None => Self::parse_model(order, source)?.ok_or(RunError::ModelNotFound)?,
        };
        if found.price.is_none() && found.model.base_url.is_none() {
            let listed = models
                .iter()
                .find(|model| model.provider == found.model.provider && model.slug == found.model.slug);
            found.price = listed.and_then(|model| model.price);
        }
        if let ModelSource::Provider(provider) = found.source {
            if found.model.base_url.is_none() && !self.can_order(found.source) {
                return Err(RunError::ProviderNotSetUp(EndpointError::NoBaseUrl { provider }));
            }
            let inference = &self.runs.config.inference;
            found.model.endpoint_host = inference.host(provider, found.model.base_url.as_deref());
        }
        Ok(found)
    }

    async fn find(&self, order: &Order, orderer: Option<&Orderer>) -> Result<FoundModel, RunError> {
        if let Some(found) = self.find_custom_agent(order, orderer).await? {
            return Ok(found);
        }
        let source = requested_source(order.provider.as_deref())?;
        if let Some(found) = replay_model(order)? {
            return Ok(found);
        }
        let with_key = orderer.is_some_and(|orderer| orderer.api_key.is_some());
        if let Some(record) = find_in_catalog(&self.models().await?, &order.model, source)? {
            return found_model(record, order);
        }
        if let Some(found) = self.find_by_name(order, source, orderer)? {
            return Ok(found);
        }
        let may_be_listed = source.is_none_or(|source| is_synchronized(source.as_str()));
        let pays = with_key || orderer.is_some_and(|orderer| orderer.session.is_some());
        if pays && may_be_listed && self.may_sync() {
            match self.sync_models().await {
                Ok(_) => {
                    if let Some(record) = find_in_catalog(&self.models().await?, &order.model, source)? {
                        return found_model(record, order);
                    }
                }
                Err(error) => tracing::warn!(%error, "The catalog could not be read again: {error}"),
            }
        }
        Err(if with_key { RunError::ModelNotFoundWithKey } else { RunError::ModelNotFound })
    }

    /// Returns true if models of this source can be ordered by some caller: a provider needs an address, and callers may
    /// bring their own keys.
    pub fn can_order(&self, source: ModelSource) -> bool {
        match source {
            ModelSource::Provider(provider) => {
                self.runs.config.inference.host(provider, None).is_some() && !self.is_out_of_reach(provider)
            }
            ModelSource::Oracle | ModelSource::Nop | ModelSource::Custom => true,
            ModelSource::Replay => false,
        }
    }

    /// Returns true if this is a public server and only the default address of a provider on the same machine is
    /// configured: callers can't have meant the server's own machine.
    fn is_out_of_reach(&self, provider: &'static Provider) -> bool {
        !self.runs.config.local && self.runs.config.inference.is_local_by_default(provider)
    }

    /// Returns the provider's address with the key that the run will use.
    ///
    /// # Errors
    /// If the provider isn't configured.
    pub fn endpoint(
        &self,
        provider: &'static Provider,
        orderer: Option<&Orderer>,
    ) -> Result<Endpoint, EndpointError> {
        let inference = &self.runs.config.inference;
        if self.is_out_of_reach(provider) {
            return Err(EndpointError::NoBaseUrl { provider });
        }
        match orderer.and_then(|orderer| orderer.api_key.clone()) {
            Some(key) => inference.endpoint_with_key(provider, key),
            None if orderer.is_some_and(|orderer| orderer.needs_no_key(provider.name)) => {
                inference.session_endpoint(provider)
            }
            None => inference.endpoint(provider),
        }
    }

    /// Checks that the model, the judge and the user simulator of a stored run can be asked, and at the hosts that the run was
    /// ordered with.
    ///
    /// # Errors
    /// If a provider isn't configured, or has another address than when the run was ordered.
    pub fn check_stored_models(&self, spec: &RunSpec) -> Result<(), RunError> {
        for role in ModelRole::ALL {
            // A run that judges answers again doesn't ask the model.
            if role == ModelRole::Model && spec.rejudges.is_some() {
                continue;
            }
            let Some((model, auth)) = spec.asked_model(role) else { continue };
            let checked = self.check_stored_model(model, auth);
            checked.map_err(|error| RunError::ModelCannotBeAsked(error).about(role))?;
        }
        Ok(())
    }

    fn check_stored_model(&self, model: &ModelRef, auth: AuthMode) -> Result<(), EndpointError> {
        let Some(provider) = Provider::from_name(&model.provider) else { return Ok(()) };
        let inference = &self.runs.config.inference;
        match (&model.base_url, auth) {
            (None, AuthMode::System) => drop(inference.endpoint(provider)?),
            (_, AuthMode::Idp) => drop(inference.session_endpoint(provider)?),
            (None, AuthMode::ApiKey) if inference.host(provider, None).is_none() => {
                return Err(EndpointError::NoBaseUrl { provider });
            }
            _ => {}
        }
        inference.check_host(provider, model.base_url.as_deref(), model.endpoint_host.as_deref())
    }

    /// Finds a model by `provider/slug`, or by a slug with a separate provider, if that provider is configured.
    fn find_by_name(
        &self,
        order: &Order,
        requested: Option<ModelSource>,
        orderer: Option<&Orderer>,
    ) -> Result<Option<FoundModel>, RunError> {
        let found = Self::parse_model(order, requested)?;
        if let Some(FoundModel { model, source: ModelSource::Provider(provider), .. }) = &found
            && model.base_url.is_none()
        {
            self.endpoint(provider, orderer).map_err(RunError::ProviderNotSetUp)?;
        }
        Ok(found)
    }

    /// Returns the model that an order names by `provider/slug`, or by a slug with a separate provider.
    fn parse_model(order: &Order, requested: Option<ModelSource>) -> Result<Option<FoundModel>, RunError> {
        let name = match (ModelName::parse(&order.model), requested) {
            (Ok(name), None) => name,
            (Ok(name), Some(source)) if name.source == source => name,
            (Ok(name), Some(source)) if name.source.is_remote() && !is_slug_of(&name, source) => {
                return Err(RunError::ProviderMismatch);
            }
            // Providers with a synchronized list have only the models in it; for other providers, any name may exist.
            (_, Some(source))
                if source.is_remote()
                    && !is_synchronized(source.as_str())
                    && !order.model.trim().is_empty() =>
            {
                ModelName { source, slug: order.model.trim().to_owned() }
            }
            _ => return Ok(None),
        };
        if name.source == ModelSource::Replay {
            return Ok(None);
        }
        let model = ModelRef {
            id: ModelId::from_name(name.source.as_str(), &name.slug),
            provider: name.source.as_str().to_owned(),
            slug: name.slug,
            base_url: order.trusted.base_url.clone(),
            replay_key: None,
            endpoint_host: None,
        };
        Ok(Some(FoundModel { model, source: name.source, chute_id: None, price: None }))
    }

    fn may_sync(&self) -> bool {
        let mut synced = lock(&self.synced);
        let due = self.config.sync_models && synced.is_none_or(|at| at.elapsed() >= SYNC_EVERY);
        if due {
            *synced = Some(Instant::now());
        }
        due
    }
}

fn requested_source(name: Option<&str>) -> Result<Option<ModelSource>, RunError> {
    match name.map(str::trim) {
        None | Some("") => Ok(None),
        Some("gremium-openai" | "gremium-anthropic") => Err(RunError::ProviderNotEnabled),
        Some(name) => match ModelSource::from_name(name) {
            Some(source) if source != ModelSource::Replay => Ok(Some(source)),
            _ => Err(RunError::ProviderUnknown),
        },
    }
}

/// Returns the model of stored responses, which only the command line can order.
fn replay_model(order: &Order) -> Result<Option<FoundModel>, RunError> {
    let Some(replay_key) = &order.trusted.replay_key else { return Ok(None) };
    let name = ModelName::parse(&order.model).map_err(RunError::ModelName)?;
    if name.source != ModelSource::Replay {
        return Err(RunError::ResponsesMisplaced);
    }
    let provider = name.source.as_str();
    let model = ModelRef {
        id: ModelId::from_name(provider, &name.slug),
        provider: provider.to_owned(),
        slug: name.slug,
        base_url: None,
        replay_key: Some(replay_key.clone()),
        endpoint_host: None,
    };
    Ok(Some(FoundModel { model, source: ModelSource::Replay, chute_id: None, price: None }))
}

/// Finds a model by id, provider's id or slug. If no source is wanted, models of synchronized lists take precedence.
fn find_in_catalog<'a>(
    models: &'a [ModelRecord],
    requested: &str,
    source: Option<ModelSource>,
) -> Result<Option<&'a ModelRecord>, RunError> {
    let requested = requested.trim();
    if requested.is_empty() {
        return Ok(None);
    }
    let first = |matches: &dyn Fn(&ModelRecord) -> bool| match source {
        Some(source) => models.iter().find(|model| model.provider == source.as_str() && matches(model)),
        None => {
            let listed = models.iter().find(|model| is_synchronized(&model.provider) && matches(model));
            listed.or_else(|| models.iter().find(|model| matches(model)))
        }
    };
    if let Ok(id) = Uuid::try_parse(requested) {
        if let Some(model) = models.iter().find(|model| model.id == ModelId(id)) {
            let matches = source.is_none_or(|source| source.as_str() == model.provider);
            return if matches { Ok(Some(model)) } else { Err(RunError::ProviderMismatch) };
        }
        let is_chute =
            |text: &Option<String>| text.as_deref().and_then(|text| Uuid::try_parse(text).ok()) == Some(id);
        if let Some(model) = first(&|model| is_chute(&model.chute_id)) {
            return Ok(Some(model));
        }
    }
    Ok(first(&|model| model.slug == requested)
        .or_else(|| first(&|model| model.chute_id.as_deref() == Some(requested))))
}

fn found_model(record: &ModelRecord, order: &Order) -> Result<FoundModel, RunError> {
    let source = ModelSource::from_name(&record.provider)
        .ok_or_else(|| RunError::Internal(format!("the catalog names provider `{}`", record.provider)))?;
    let model = ModelRef {
        id: record.id,
        provider: record.provider.clone(),
        slug: record.slug.clone(),
        base_url: order.trusted.base_url.clone(),
        replay_key: None,
        endpoint_host: None,
    };
    Ok(FoundModel { model, source, chute_id: record.chute_id.clone(), price: record.price })
}

/// Returns true if the name is a slug of the wanted provider that happens to start like another provider's name.
fn is_slug_of(name: &ModelName, requested: ModelSource) -> bool {
    requested.provider().is_some_and(|provider| provider.slug_prefixes.contains(&name.source.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_domain::{Code, Timestamp};

    fn model(provider: &str, slug: &str, chute_id: Option<&str>) -> ModelRecord {
        ModelRecord {
            id: ModelId::from_name(provider, slug),
            slug: slug.to_owned(),
            name: slug.to_owned(),
            provider: provider.to_owned(),
            tagline: None,
            user: None,
            logo: None,
            chute_id: chute_id.map(str::to_owned),
            instance_count: 1,
            is_active: false,
            price: None,
            synced_at: Timestamp::default(),
        }
    }

    #[test]
    fn a_model_is_found_by_every_identifier() {
        const CHUTE: &str = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90";
        let models = [
            model("openrouter", "a/b", None),
            model("chutes", "a/b", Some(CHUTE)),
            model("chutes", "c", Some("odd")),
        ];
        let find = |requested: &str, provider| {
            let found = find_in_catalog(&models, requested, provider).map_err(|error| error.to_string())?;
            Ok(found.map(|model| format!("{}/{}", model.provider, model.slug)))
        };
        let source = ModelSource::from_name;
        let chutes_ab = Ok(Some("chutes/a/b".to_owned()));
        assert_eq!(find("a/b", None), chutes_ab);
        assert_eq!(find("a/b", source("openrouter")), Ok(Some("openrouter/a/b".to_owned())));
        assert_eq!(find(CHUTE, None), chutes_ab);
        assert_eq!(find(&CHUTE.to_uppercase().replace('-', ""), None), chutes_ab);
        assert_eq!(find(&ModelId::from_name("chutes", "a/b").to_string(), None), chutes_ab);
        assert_eq!(find("odd", None), Ok(Some("chutes/c".to_owned())));
        let id = ModelId::from_name("openrouter", "a/b").to_string();
        assert_eq!(find(&id, source("chutes")), Err(RunError::ProviderMismatch.to_string()));
        assert_eq!(find(&id, None), Ok(Some("openrouter/a/b".to_owned())));
        for unknown in ["", "  ", "A/B", "00000000-0000-4000-8000-000000000000"] {
            assert_eq!(find(unknown, None), Ok(None), "{unknown}");
        }
    }

    #[test]
    fn providers_are_named_as_in_the_catalog() {
        assert_eq!(requested_source(None).unwrap(), None);
        assert_eq!(requested_source(Some(" ")).unwrap(), None);
        assert_eq!(requested_source(Some("oracle")).unwrap(), Some(ModelSource::Oracle));
        for (name, text) in [
            ("gremium-openai", "Gremium provider is not enabled."),
            ("replay", "Unsupported provider"),
            ("Chutes!", "Unsupported provider"),
        ] {
            let error = requested_source(Some(name)).unwrap_err();
            assert_eq!((error.code(), error.to_string().as_str()), (Code::UnsupportedProvider, text));
        }
    }
}
