//! Creation of the table in the embedded stack. In deployments, `template.yaml` creates the same table.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType, TimeToLiveSpecification,
};

use crate::keys::{BY_STATUS, BY_TIME};
use crate::{State, StateError};

fn element(name: &str, kind: KeyType) -> Result<KeySchemaElement, StateError> {
    let built = KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    built.map_err(|error| StateError::damaged("table", error))
}

fn attribute(name: &str) -> Result<AttributeDefinition, StateError> {
    let built =
        AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build();
    built.map_err(|error| StateError::damaged("table", error))
}

fn index(name: &str, partition: &str) -> Result<GlobalSecondaryIndex, StateError> {
    let projection = Projection::builder()
        .projection_type(ProjectionType::Include)
        .non_key_attributes("model_slug_lower")
        .non_key_attributes("model_id")
        .build();
    GlobalSecondaryIndex::builder()
        .index_name(name)
        .key_schema(element(partition, KeyType::Hash)?)
        .key_schema(element("index_sort", KeyType::Range)?)
        .projection(projection)
        .build()
        .map_err(|error| StateError::damaged("table", error))
}

impl State {
    /// Creates the table, its indexes and its time to live if they don't exist.
    pub async fn ensure_table(&self) -> Result<(), StateError> {
        if self.client.describe_table().table_name(&self.table).send().await.is_ok() {
            return Ok(());
        }
        let created = self
            .client
            .create_table()
            .table_name(&self.table)
            .billing_mode(BillingMode::PayPerRequest)
            .attribute_definitions(attribute("pk")?)
            .attribute_definitions(attribute("sk")?)
            .attribute_definitions(attribute("index_all")?)
            .attribute_definitions(attribute("index_status")?)
            .attribute_definitions(attribute("index_sort")?)
            .key_schema(element("pk", KeyType::Hash)?)
            .key_schema(element("sk", KeyType::Range)?)
            .global_secondary_indexes(index(BY_TIME, "index_all")?)
            .global_secondary_indexes(index(BY_STATUS, "index_status")?)
            .send()
            .await;
        match created {
            Ok(_) => {}
            Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_in_use_exception()) => {}
            Err(error) => return Err(StateError::sdk("create the table", error)),
        }
        let ttl = TimeToLiveSpecification::builder().attribute_name("expires_at").enabled(true).build();
        let ttl = ttl.map_err(|error| StateError::damaged("table", error))?;
        let set = self.client.update_time_to_live().table_name(&self.table).time_to_live_specification(ttl);
        set.send().await.map(drop).map_err(|error| StateError::sdk("set the time to live", error))
    }
}
