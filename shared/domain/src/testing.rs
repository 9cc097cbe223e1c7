//! Test values for this crate and others. Tests change single fields with struct update syntax.

use std::collections::BTreeMap;

use crate::run::{AuthMode, DatasetUse, ModelRef, Owner, Plan};
use crate::{BenchmarkName, Generation, ModelId, RunId, RunSpec, RunTemplate, Timestamp};

/// Creates a model from its name with its provider, such as `openrouter/acme/model`.
///
/// # Panics
/// If the name has no `/`.
#[must_use]
pub fn model(name: &str) -> ModelRef {
    let (provider, slug) = name.split_once('/').unwrap_or_else(|| panic!("`{name}` names no provider"));
    ModelRef {
        id: ModelId::from_name(provider, slug),
        provider: provider.to_owned(),
        slug: slug.to_owned(),
        base_url: None,
        replay_key: None,
        endpoint_host: None,
    }
}

/// Creates a template of all items of a benchmark, one sample each, with a model named with its provider.
///
/// # Panics
/// If a name is invalid.
#[must_use]
pub fn template(model_name: &str, benchmark: &str) -> RunTemplate {
    let name: BenchmarkName =
        benchmark.parse().unwrap_or_else(|error| panic!("`{benchmark}` is not a benchmark name: {error}"));
    RunTemplate::new(model(model_name), vec![name])
}

/// Creates a run of this machine's user.
#[must_use]
pub fn spec(run: RunId, template: RunTemplate) -> RunSpec {
    RunSpec {
        id: run,
        template,
        rejudges: None,
        owner: Owner::Local,
        auth: AuthMode::System,
        session: None,
        schedule: None,
        software: "test".to_owned(),
        created_at: Timestamp::from_micros(0),
    }
}

/// Creates a plan of `items` items, one sample each, of a dataset that doesn't exist.
#[must_use]
pub fn plan(items: u32, shards: u32) -> Plan {
    Plan {
        attempt: 1,
        shards,
        items: items.into(),
        samples_per_item: 1,
        dataset_items: items.into(),
        dataset: DatasetUse {
            id: "acme/data".to_owned(),
            revision: "0123abcd".to_owned(),
            source: "hub".to_owned(),
            digest: "ab".repeat(32),
            data_key: "datasets/none".to_owned(),
            documents: None,
            attachments: BTreeMap::new(),
            note: None,
            demo_support: false,
        },
        prompt_digest: "cd".repeat(32),
        prompt_source: "own".to_owned(),
        protocol: "none".to_owned(),
        protocol_name: "none".to_owned(),
        options: BTreeMap::new(),
        generation: Generation::default(),
        protocol_generation: None,
        protocol_samples: None,
        timeout: None,
        templates: BTreeMap::new(),
        judge: None,
    }
}
