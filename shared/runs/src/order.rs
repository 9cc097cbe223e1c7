//! What is ordered.

use std::collections::BTreeMap;

use bench_benchmarks::Options;
use bench_domain::run::{DatasetChoice, ItemNaming, JudgeSpec, ModelRef, Owner};
use bench_domain::{BenchmarkName, Budget, Generation, Price, RunId, RunTemplate, Secret, Subset};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::options::GivenOptions;

/// An order for a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Order {
    /// The model: a catalogue id, a provider's id, a slug, or `provider/slug`.
    pub model: String,
    /// The provider that must have it; `None` leaves it open.
    pub provider: Option<String>,
    /// Which part of each benchmark.
    pub subset: Subset,
    /// The benchmarks by name; `None` means all.
    pub benchmarks: Option<Vec<String>>,
    /// Only these items instead of a subset. Empty: no such choice.
    pub items: Vec<String>,
    /// Samples per item; `None` leaves it to each benchmark's protocol.
    pub samples: Option<u32>,
    /// Settings of the answers that replace the protocol's, where set.
    pub generation: Generation,
    /// Use the items that the program brings along.
    pub demo: bool,
    /// What the answers may cost before the run is stopped.
    pub budget: Budget,
    /// The protocol by its short name, by benchmark; the others have their default one.
    pub protocols: BTreeMap<String, String>,
    /// Settings of benchmarks of their own, by benchmark; the others have their defaults.
    pub options: GivenOptions,
    /// Who judges, where a benchmark needs that; `None` takes the default judge.
    pub judge: Option<JudgeOrder>,
    /// Free-form JSON of the caller, as text.
    pub config: Option<String>,
    /// The caller's key for this order: a repeat makes no second run.
    pub idempotency_key: Option<String>,
    /// What only the command line may set.
    pub trusted: Trusted,
    /// Fields of the request that were ignored, each in one sentence.
    pub warnings: Vec<String>,
}

/// What only the command line may set: files and addresses are never taken from a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trusted {
    /// Where the provider answers.
    pub base_url: Option<String>,
    /// Where the judge's provider answers.
    pub judge_base_url: Option<String>,
    /// The object that holds stored responses, for `replay:FILE`.
    pub replay_key: Option<String>,
    /// Where the items of a benchmark come from.
    pub datasets: BTreeMap<BenchmarkName, DatasetChoice>,
    /// Coverage below which a benchmark has no score, 0 to 1.
    pub coverage_min: Option<f64>,
    /// What the model costs, instead of what the provider's catalogue says.
    pub price: Option<Price>,
}

/// Who judges, as it was ordered.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct JudgeOrder {
    /// The judge: a catalogue id, a provider's id, a slug, or `provider/slug`; `None` takes the default one.
    pub model: Option<String>,
    /// The provider that must have it; `None` leaves it open.
    pub provider: Option<String>,
    /// Settings of its replies that replace the protocol's, where set.
    pub generation: Generation,
}

/// An order to judge a run's answers again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RejudgeOrder {
    /// Who judges; what is not set is as it was.
    pub judge: JudgeOrder,
    /// What the judge's replies may cost before the run is stopped.
    pub budget: Budget,
    /// Where the judge answers. Only the command line may set it.
    pub base_url: Option<String>,
    /// The caller's own keys: for the model's provider, and for the judge.
    pub api_key: Option<Secret>,
    /// See above.
    pub judge_key: Option<Secret>,
    /// The caller's key for this order: a repeat makes no second run.
    pub idempotency_key: Option<String>,
    /// Fields of the request that were ignored, each in one sentence.
    pub warnings: Vec<String>,
}

/// The owner's name in idempotency keys.
pub(crate) fn idempotency_name(owner: &Owner) -> String {
    match owner {
        Owner::Local => "local".to_owned(),
        Owner::Key(hash) => format!("key-{hash}"),
    }
}

/// A warning for a field that is known and changes nothing in this order.
pub fn no_effect(field: &str, why: &str) -> String {
    format!("`{field}` has no effect: {why}")
}

/// The part of a run's template that is looked up when it is ordered.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) model: ModelRef,
    pub(crate) benchmarks: Vec<BenchmarkName>,
    pub(crate) selected_benchmarks: Option<Vec<String>>,
    pub(crate) datasets: BTreeMap<BenchmarkName, DatasetChoice>,
    pub(crate) protocols: BTreeMap<BenchmarkName, String>,
    pub(crate) options: BTreeMap<BenchmarkName, Options>,
    pub(crate) judge: Option<JudgeSpec>,
    pub(crate) coverage_min: f64,
    pub(crate) price: Option<Price>,
}

impl Order {
    /// The template of the order's runs: what was resolved, and the rest as it was ordered.
    pub(crate) fn into_template(self, resolved: Resolved) -> RunTemplate {
        // Named one by one: a new field is taken over, or is left out on purpose.
        let Self {
            model: _,
            provider: _,
            subset,
            benchmarks: _,
            items,
            samples,
            generation,
            demo: _,
            budget,
            protocols: _,
            options: _,
            judge: _,
            config,
            idempotency_key: _,
            trusted: _,
            warnings: _,
        } = self;
        let Resolved {
            model,
            benchmarks,
            selected_benchmarks,
            datasets,
            protocols,
            options,
            judge,
            coverage_min,
            price,
        } = resolved;
        RunTemplate {
            model,
            benchmarks,
            selected_benchmarks,
            subset,
            items,
            item_naming: ItemNaming::SourceId,
            samples,
            generation,
            datasets,
            protocols,
            options,
            judge,
            config,
            coverage_min,
            price,
            budget,
        }
    }

    /// Digest of what is ordered: equal for equal orders.
    pub fn digest(&self) -> String {
        // Named one by one: a new field is in the digest, or is left out on purpose.
        let Self {
            model,
            provider,
            subset,
            benchmarks,
            items,
            samples,
            generation,
            demo,
            budget,
            protocols,
            options,
            judge,
            config,
            idempotency_key: _,
            trusted,
            warnings: _,
        } = self;
        let Trusted { base_url, judge_base_url, replay_key, datasets, coverage_min, price } = trusted;
        let mut parts = json!([
            model,
            provider,
            subset,
            benchmarks,
            items,
            samples,
            generation,
            demo,
            config,
            base_url,
            replay_key,
            datasets,
            coverage_min,
        ]);
        // Only where there is one, so that orders of an older program keep their digests.
        if let (Value::Array(parts), true) = (&mut parts, budget.is_set() || price.is_some()) {
            parts.push(json!([budget, price]));
        }
        let chooses = !protocols.is_empty() || judge.is_some() || judge_base_url.is_some();
        if let (Value::Array(parts), true) = (&mut parts, chooses) {
            parts.push(json!({ "protocols": protocols, "judge": judge, "judge_base_url": judge_base_url }));
        }
        if let (Value::Array(parts), false) = (&mut parts, options.is_empty()) {
            parts.push(json!({ "options": options }));
        }
        hex::encode(Sha256::digest(parts.to_string().as_bytes()))
    }
}

impl RejudgeOrder {
    /// Digest of what is ordered: equal for equal orders.
    pub fn digest(&self, run: RunId) -> String {
        let parts = json!(["rejudge", run, self.judge, self.budget, self.base_url]);
        hex::encode(Sha256::digest(parts.to_string().as_bytes()))
    }
}
