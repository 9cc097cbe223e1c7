//! Synchronizes the catalog of models with the providers' public lists: every hour, and when the API asks for it.

mod configured;

use std::collections::HashMap;

use bench_domain::{ModelId, Price};
use bench_inference::catalog::CatalogError;
use bench_inference::{ChatClient, InferenceConfig, Provider};
use bench_state::{ModelRecord, State, StateError};
use futures_util::{StreamExt, TryStreamExt, stream};

pub use self::configured::{all_models, sync_prices};

/// Maximum number of concurrent writes.
const WRITES_AT_ONCE: usize = 16;

/// Reason why a synchronization left the catalog unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// A provider's list cannot be read.
    #[error("{error}")]
    List {
        /// Provider whose list was read.
        provider: &'static Provider,
        /// Configured address of the list.
        address: String,
        /// Error of the request.
        error: CatalogError,
    },
    /// The list is empty.
    #[error("the provider's list of models is empty; the catalog was left as it is")]
    Empty,
    /// The catalog can't be written.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Returns true if the provider's models come from its public list.
pub fn is_synchronized(provider: &str) -> bool {
    Provider::from_name(provider).is_some_and(|provider| provider.public_list.is_some())
}

/// Copies the providers' public lists into the catalog and returns the number of listed models. Models that are no
/// longer listed become inactive.
///
/// # Errors
/// Returns an error if a list can't be read or the catalog can't be written. In that case no model of that provider
/// becomes inactive.
pub async fn sync_models(
    state: &State,
    chat: &ChatClient,
    inference: &InferenceConfig,
) -> Result<usize, SyncError> {
    let mut synced = 0;
    for (provider, address) in inference.public_lists() {
        synced += sync_provider(state, chat, inference, provider, address).await?;
    }
    Ok(synced)
}

async fn sync_provider(
    state: &State,
    chat: &ChatClient,
    inference: &InferenceConfig,
    provider: &'static Provider,
    address: &str,
) -> Result<usize, SyncError> {
    let listed = chat.list_public_models(provider, address).await;
    let listed = listed.map_err(|error| SyncError::List { provider, address: address.to_owned(), error })?;
    let offered = gateway_prices(chat, inference, provider).await;
    let now = bench_clock::now();
    let mut models: HashMap<String, ModelRecord> = HashMap::with_capacity(listed.len());
    for model in listed {
        let offer = offered.get(&model.slug).or_else(|| offered.get(model.chute_id.as_ref()?));
        let is_active = if offered.is_empty() { model.is_language_model } else { offer.is_some() };
        let record = ModelRecord {
            id: ModelId::from_name(provider.name, &model.slug),
            slug: model.slug,
            name: model.name,
            provider: provider.name.to_owned(),
            tagline: model.tagline,
            user: model.user,
            logo: model.logo,
            chute_id: model.chute_id,
            instance_count: model.instance_count.into(),
            is_active,
            price: model.price.or_else(|| offer.copied().flatten()),
            synced_at: now,
        };
        models.insert(record.slug.clone(), record);
    }
    let synced = models.len();
    if synced == 0 {
        return Err(SyncError::Empty);
    }
    let vanished = state.models().await?.into_iter().filter(|known| {
        known.provider == provider.name && known.is_active && !models.contains_key(&known.slug)
    });
    let vanished: Vec<ModelRecord> =
        vanished.map(|known| ModelRecord { is_active: false, ..known }).collect();
    let gone = vanished.len();
    let write = |record: ModelRecord| async move { state.put_model(&record).await };
    stream::iter(models.into_values().chain(vanished).map(write))
        .buffer_unordered(WRITES_AT_ONCE)
        .try_collect::<()>()
        .await?;
    tracing::info!(models.count = synced, models.vanished = gone, "synchronized {synced} models");
    Ok(synced)
}

/// Returns the prices of the models that the gateway offers for the operator's key, by name and by the provider's ids.
/// Empty if the gateway's list can't be read.
async fn gateway_prices(
    chat: &ChatClient,
    inference: &InferenceConfig,
    provider: &'static Provider,
) -> HashMap<String, Option<Price>> {
    let Ok(endpoint) = inference.endpoint(provider) else { return HashMap::new() };
    match chat.list_gateway_models(&endpoint).await {
        Ok(models) => models
            .into_iter()
            .filter(|model| model.is_language_model)
            .flat_map(|model| {
                let price = model.price;
                [Some(model.slug), Some(model.name), model.chute_id]
                    .into_iter()
                    .flatten()
                    .map(move |id| (id, price))
            })
            .collect(),
        Err(error) => {
            tracing::warn!(%error, "cannot read the gateway's list of models: {error}");
            HashMap::new()
        }
    }
}
