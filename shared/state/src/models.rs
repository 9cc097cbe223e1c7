//! Catalog of models.

use bench_domain::{ModelId, Price, Timestamp};
use serde::{Deserialize, Serialize};

use crate::attributes::{Reader, json, text};
use crate::keys::{MODELS, key};
use crate::{State, StateError};

/// Model that users can create runs for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// Version 5 UUID of provider and slug.
    pub id: ModelId,
    /// The model's name at the provider.
    pub slug: String,
    /// Display name.
    pub name: String,
    /// Name of the provider.
    pub provider: String,
    /// Description in one line.
    pub tagline: Option<String>,
    /// Publisher of the model.
    pub user: Option<String>,
    /// URL of a picture.
    pub logo: Option<String>,
    /// The provider's own id.
    pub chute_id: Option<String>,
    /// Number of instances that serve it.
    pub instance_count: i64,
    /// True if runs should be created for it.
    pub is_active: bool,
    /// The provider's price.
    pub price: Option<Price>,
    /// Time of the last synchronization.
    pub synced_at: Timestamp,
}

impl State {
    /// Writes a model, replacing an older record.
    pub async fn put_model(&self, model: &ModelRecord) -> Result<(), StateError> {
        let sort = format!("{}#{}", model.provider, model.slug);
        self.client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(key(MODELS, &sort)))
            .item("model", json(&sort, model)?)
            .send()
            .await
            .map(drop)
            .map_err(|error| StateError::sdk("write a model", error))
    }

    /// Lists all models of the catalog, by provider and slug.
    pub async fn models(&self) -> Result<Vec<ModelRecord>, StateError> {
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :models")
            .expression_attribute_values(":models", text(MODELS))
            .into_paginator()
            .items()
            .send();
        let mut models = Vec::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list models", error))?;
            models.push(Reader::new(&record).json("model")?);
        }
        Ok(models)
    }
}
