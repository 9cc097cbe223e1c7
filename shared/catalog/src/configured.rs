//! Models in addition to the providers' lists: the oracle, and models that the operator configured.

use std::collections::{HashMap, HashSet};

use bench_domain::{ModelId, Price, Timestamp};
use bench_inference::{ChatClient, InferenceConfig, ModelName, ModelSource, Provider};
use bench_state::{ModelRecord, State, StateError};

use crate::is_synchronized;

/// Returns the stored catalog, plus the oracle and the configured models.
///
/// # Errors
/// Returns an error if the catalog can't be read.
pub async fn all_models(state: &State, configured: &[ModelName]) -> Result<Vec<ModelRecord>, StateError> {
    let mut models = state.models().await?;
    let built_in = built_in_models(configured);
    // A configured model is stored only for its price. A stored model that is no longer configured is left out.
    let configured: HashSet<ModelId> = built_in.iter().map(|model| model.id).collect();
    models.retain(|model| is_synchronized(&model.provider) || configured.contains(&model.id));
    let known: HashSet<ModelId> = models.iter().map(|model| model.id).collect();
    models.extend(built_in.into_iter().filter(|model| !known.contains(&model.id)));
    Ok(models)
}

/// Updates the prices of configured models whose provider has no public list. A provider whose list can't be read keeps
/// its old prices.
///
/// # Errors
/// Returns an error if the catalog can't be written.
pub async fn sync_prices(
    state: &State,
    chat: &ChatClient,
    inference: &InferenceConfig,
    configured: &[ModelName],
    now: Timestamp,
) -> Result<(), StateError> {
    let mut by_provider: HashMap<&'static Provider, Vec<ModelRecord>> = HashMap::new();
    for model in built_in_models(configured) {
        match Provider::from_name(&model.provider) {
            Some(provider) if provider.public_list.is_none() => {
                by_provider.entry(provider).or_default().push(model);
            }
            _ => {}
        }
    }
    for (provider, models) in by_provider {
        let Ok(endpoint) = inference.endpoint(provider) else { continue };
        let listed = match chat.list_gateway_models(&endpoint).await {
            Ok(listed) => listed,
            Err(error) => {
                tracing::warn!(%error, "cannot read the prices of {provider}: {error}");
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

fn built_in_models(configured: &[ModelName]) -> Vec<ModelRecord> {
    let oracle = ModelName { source: ModelSource::Oracle, slug: ModelSource::Oracle.as_str().to_owned() };
    let mut names = vec![oracle];
    names.extend(configured.iter().filter(|model| model.source != ModelSource::Oracle).cloned());
    names
        .into_iter()
        .map(|ModelName { source, slug }| {
            let is_oracle = source == ModelSource::Oracle;
            ModelRecord {
                id: ModelId::from_name(source.as_str(), &slug),
                name: slug.clone(),
                slug,
                provider: source.as_str().to_owned(),
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
