//! The catalog of models.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_catalog::SyncError;
use bench_domain::{ModelId, UnusualStatus};
use bench_inference::ModelSource;
use bench_inference::catalog::CatalogError;
use bench_state::ModelRecord;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldReader, Identity};
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;

const SEARCH_CHARS_MAX: usize = 512;

/// A model that can be ordered.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ModelView {
    /// Id of the model.
    #[schema(value_type = String, format = "uuid")]
    pub id: ModelId,
    /// Name of the model at its provider.
    pub slug: String,
    /// Display name.
    pub name: String,
    /// Source of the answers: the name of a provider, or `oracle`.
    pub provider: String,
    /// Description in one line.
    pub tagline: Option<String>,
    /// Publisher of the model.
    pub user: Option<String>,
    /// URL of a logo.
    pub logo: Option<String>,
    /// The provider's own id.
    pub chute_id: Option<String>,
    /// Number of instances that serve the model; 0 if it isn't known.
    pub instance_count: i64,
    /// Always true: inactive models aren't listed.
    pub is_active: bool,

    /// Name of the model with its provider, as in orders.
    pub model: String,
    /// Price of a million prompt tokens in US dollars; null if it isn't known.
    pub input_per_million_usd: Option<f64>,
    /// Price of a million answer tokens in US dollars; null if it isn't known.
    pub output_per_million_usd: Option<f64>,
}

impl From<ModelRecord> for ModelView {
    fn from(record: ModelRecord) -> Self {
        let price = record.price;
        Self {
            model: qualified(&record.provider, &record.slug),
            id: record.id,
            slug: record.slug,
            name: record.name,
            provider: record.provider,
            tagline: record.tagline,
            user: record.user,
            logo: record.logo,
            chute_id: record.chute_id,
            instance_count: record.instance_count,
            is_active: record.is_active,
            input_per_million_usd: price.map(|price| price.input_per_million_usd),
            output_per_million_usd: price.map(|price| price.output_per_million_usd),
        }
    }
}

/// Page of models.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelsView {
    models: Vec<ModelView>,
    /// Number of all matching models.
    total: usize,
}

/// Result of a synchronization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SyncedView {
    /// Number of models in the provider's list.
    synced: usize,
    message: String,
}

fn qualified(provider: &str, slug: &str) -> String {
    if provider == ModelSource::Oracle.as_str() { slug.to_owned() } else { format!("{provider}/{slug}") }
}

/// Lists the models that can be ordered, those with most instances first.
///
/// The list is never empty, since it includes the oracle.
#[utoipa::path(
    get, path = "/api/models", tag = "catalog",
    params(
        ("search" = Option<String>, Query, description = "Part of the display name, or of the name with its provider such as `openrouter/vendor`, case-insensitive"),
        ("provider" = Option<String>, Query, description = "Only models of this provider"),
        ("limit" = Option<u64>, Query, description = "Number of models, at most 500, default 100"),
        ("offset" = Option<u64>, Query, description = "Number of models to skip, default 0"),
    ),
    responses((status = 200, body = ModelsView), (status = 422, body = ErrorBody)),
)]
pub(crate) async fn get_models(State(api): State<Arc<Api>>, uri: Uri) -> Result<Json<ModelsView>, ApiError> {
    let mut fields = FieldReader::from_query(&uri);
    let search = fields.maybe_text("search", SEARCH_CHARS_MAX).unwrap_or_default();
    let provider = fields.maybe_text("provider", SEARCH_CHARS_MAX);
    let limit = fields.integer("limit", 100, 0, 500);
    let offset = fields.integer("offset", 0, 0, u64::MAX);
    fields.finish()?;
    let matching = list_models(&api, &search, provider.as_deref()).await?;
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let total = matching.len();
    let models = matching.into_iter().skip(place(offset)).take(place(limit)).collect();
    Ok(Json(ModelsView { models, total }))
}

/// Returns the active models that can be ordered and whose name, or name with its provider, contains `search`
/// (case-insensitive), in catalog order. On a public server, these don't include models of a program such as LM Studio on the server's own machine,
/// unless the operator configured its address.
///
/// # Errors
/// When the catalog can't be read.
pub async fn list_models(
    api: &Api,
    search: &str,
    provider: Option<&str>,
) -> Result<Vec<ModelView>, ApiError> {
    let wanted = search.to_lowercase();
    let mut models = api.orders.models().await?;
    models.retain(|model| {
        let matches = wanted.is_empty()
            || model.name.to_lowercase().contains(&wanted)
            || qualified(&model.provider, &model.slug).to_lowercase().contains(&wanted);
        let can_order =
            ModelSource::from_name(&model.provider).is_some_and(|source| api.orders.can_order(source));
        let is_meant = provider.is_none_or(|provider| model.provider == provider);
        model.is_active && matches && is_meant && can_order
    });
    models.sort_by(|a, b| b.instance_count.cmp(&a.instance_count).then_with(|| a.name.cmp(&b.name)));
    Ok(models.into_iter().map(ModelView::from).collect())
}

/// Imports the provider's list of models.
///
/// Models that are no longer listed become inactive. If the list can't be read, nothing changes.
#[utoipa::path(
    post, path = "/api/admin/sync-models", tag = "catalog", security(("admin" = []), ("session" = [])),
    responses((status = 200, body = SyncedView), (status = 401, body = ErrorBody), (status = 500, body = ErrorBody)),
)]
pub(crate) async fn post_sync(
    State(api): State<Arc<Api>>,
    identity: Identity,
) -> Result<Json<SyncedView>, ApiError> {
    identity.caller()?.must_operate()?;
    let synced = sync_models(&api).await?;
    Ok(Json(SyncedView { synced, message: format!("Synced {synced} models") }))
}

/// Replaces the catalog with the provider's public list of models and returns the list's length. Models that
/// the provider no longer lists become inactive.
///
/// # Errors
/// When the list can't be read or the catalog can't be written. No model becomes inactive then.
pub async fn sync_models(api: &Api) -> Result<usize, ApiError> {
    api.orders.sync_models().await.map_err(|error| match error {
        SyncError::List { provider, address, error: CatalogError::Request(failure) } => ApiError::unusual(
            UnusualStatus::SyncWithUnreachableProvider,
            format!(
                "{} can't be reached at `{address}`, so the list of models is unchanged: {failure}",
                provider.display_name
            ),
        ),
        other => ApiError::internal(other),
    })
}
