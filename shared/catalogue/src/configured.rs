//! Models that are there besides the provider's list: the oracle, and those that the operator has configured.

use std::collections::{HashMap, HashSet};

use bench_domain::{ModelId, Price, Timestamp};
use bench_inference::{ChatClient, InferenceConfig, ModelName, ProviderKind};
use bench_state::{ModelRecord, State, StateError};

use crate::CATALOGUE_PROVIDER;

/// The catalogue, and what is always or by configuration there besides.
///
/// # Errors
/// When the catalogue cannot be read.
pub async fn all_models(state: &State, configured: &[ModelName]) -> Result<Vec<ModelRecord>, StateError> {
    let mut models = state.models().await?;
    let built_in = built_in(configured);
    // What was stored of a configured model is its price; one that is not configured any more is none of ours.
    let configured: HashSet<ModelId> = built_in.iter().map(|model| model.id).collect();
    models.retain(|model| model.provider == CATALOGUE_PROVIDER || configured.contains(&model.id));
    let known: HashSet<ModelId> = models.iter().map(|model| model.id).collect();
    models.extend(built_in.into_iter().filter(|model| !known.contains(&model.id)));
    Ok(models)
}

/// Takes over the prices of the configured models of providers whose list is not synchronised whole. A list that
/// cannot be read leaves them as they are.
///
/// # Errors
/// When the catalogue cannot be written.
pub async fn sync_prices(
    state: &State,
    chat: &ChatClient,
    inference: &InferenceConfig,
    configured: &[ModelName],
    now: Timestamp,
) -> Result<(), StateError> {
    let mut by_provider: HashMap<ProviderKind, Vec<ModelRecord>> = HashMap::new();
    for model in built_in(configured) {
        match ProviderKind::from_name(&model.provider) {
            Some(kind) if kind.is_remote() && model.provider != CATALOGUE_PROVIDER => {
                by_provider.entry(kind).or_default().push(model);
            }
            _ => {}
        }
    }
    for (kind, models) in by_provider {
        let Ok(endpoint) = inference.endpoint(kind) else { continue };
        let listed = match chat.list_gateway_models(&endpoint).await {
            Ok(listed) => listed,
            Err(error) => {
                tracing::warn!(%error, "The prices of {kind} are not known: {error}");
                continue;
            }
        };
        let prices: HashMap<String, Price> =
            listed.into_iter().filter_map(|model| Some((model.slug, model.price?))).collect();
        for model in models {
            let price = prices.get(&model.slug).copied();
            state.put_model(&ModelRecord { price, synced_at: now, ..model }).await?;
        }
    }
    Ok(())
}

fn built_in(configured: &[ModelName]) -> Vec<ModelRecord> {
    let oracle = ModelName { provider: ProviderKind::Oracle, slug: ProviderKind::Oracle.as_str().to_owned() };
    let mut names = vec![oracle];
    names.extend(configured.iter().filter(|model| model.provider != ProviderKind::Oracle).cloned());
    names
        .into_iter()
        .map(|ModelName { provider, slug }| {
            let is_oracle = provider == ProviderKind::Oracle;
            ModelRecord {
                id: ModelId::of(provider.as_str(), &slug),
                name: slug.clone(),
                slug,
                provider: provider.as_str().to_owned(),
                tagline: is_oracle
                    .then(|| "Answers with each item's own gold answer; no key, no network".to_owned()),
                user: None,
                logo: None,
                chute_id: None,
                instance_count: 0,
                is_active: true,
                price: None,
                synced_at: Timestamp::default(),
            }
        })
        .collect()
}
