//! Orders.

use std::collections::BTreeMap;
use std::fmt;

use bench_benchmarks::Options;
use bench_domain::run::{DatasetChoice, ItemNaming, JudgeSpec, ModelRef, Owner, UserSpec};
use bench_domain::{
    BenchmarkName, Budget, Generation, Price, RunId, RunLabels, RunLimits, RunTemplate, Secret, SessionId,
    Subset,
};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::options::GivenOptions;

/// Order of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Order {
    /// Model: a catalog id, a provider's id, a slug, or `provider/slug`.
    pub model: String,
    /// Provider that must have the model; `None` accepts any.
    pub provider: Option<String>,
    /// Part of each benchmark that is evaluated.
    pub subset: Subset,
    /// Names of the benchmarks; `None` means all.
    pub benchmarks: Option<Vec<String>>,
    /// If not empty, only these items are evaluated, instead of a subset.
    pub items: Vec<String>,
    /// Samples per item; `None` uses the default of each benchmark's protocol.
    pub samples: Option<u32>,
    /// Generation settings that override the protocol's.
    pub generation: Generation,
    /// True to use the demo data bundled with the program.
    pub demo: bool,
    /// Budget of the run.
    pub budget: Budget,
    /// Limits on requests, answers and failures.
    pub limits: RunLimits,
    /// Short names of protocols by benchmark; other benchmarks use their defaults.
    pub protocols: BTreeMap<String, String>,
    /// Options by benchmark; other benchmarks use their defaults.
    pub options: GivenOptions,
    /// Judge for benchmarks that need one; `None` uses the default judge.
    pub judge: Option<JudgeOrder>,
    /// User simulator for benchmarks whose items are conversations. There is no default one.
    pub user: Option<UserOrder>,
    /// Name, tags and notes of the run.
    pub labels: RunLabels,
    /// Free-form JSON of the caller, as text.
    pub config: Option<String>,
    /// Caller's idempotency key: repeating the order with it creates no second run.
    pub idempotency_key: Option<String>,
    /// Settings that only the command line may set.
    pub trusted: TrustedSettings,
    /// Fields of the request that were ignored.
    pub warnings: Vec<OrderWarning>,
}

/// Warning about a field of an order that was ignored. Displays as one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderWarning {
    /// Name of the field.
    pub field: String,
    /// Sentence for people, with the field's name.
    pub text: String,
}

impl fmt::Display for OrderWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Settings that only the command line may set: files and addresses are never taken from a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrustedSettings {
    /// Base URL of the provider.
    pub base_url: Option<String>,
    /// Base URL of the judge's provider.
    pub judge_base_url: Option<String>,
    /// Base URL of the user simulator's provider.
    pub user_base_url: Option<String>,
    /// Key of the object that contains stored responses, for `replay:FILE`.
    pub replay_key: Option<String>,
    /// Sources of items by benchmark.
    pub datasets: BTreeMap<BenchmarkName, DatasetChoice>,
    /// Minimum coverage for a score, 0 to 1.
    pub coverage_min: Option<f64>,
    /// Price of the model, instead of the price in the provider's catalog.
    pub price: Option<Price>,
}

/// Judge in an order.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct JudgeOrder {
    /// Judge: a catalog id, a provider's id, a slug, or `provider/slug`; `None` uses the default judge.
    pub model: Option<String>,
    /// Provider that must have the judge; `None` accepts any.
    pub provider: Option<String>,
    /// Generation settings that override the protocol's.
    pub generation: Generation,
}

/// User simulator in an order: named and set as a judge is.
pub type UserOrder = JudgeOrder;

/// Order to judge a run's answers again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RejudgeOrder {
    /// Judge; settings that are missing stay as in the run.
    pub judge: JudgeOrder,
    /// Budget of the judge's replies.
    pub budget: Budget,
    /// Base URL of the judge. Only the command line may set it.
    pub base_url: Option<String>,
    /// Caller's own key for the model's provider.
    pub api_key: Option<Secret>,
    /// Caller's own key for the judge.
    pub judge_key: Option<Secret>,
    /// Session whose user's account pays for the judge.
    pub session: Option<SessionId>,
    /// Caller's idempotency key: repeating the order with it creates no second run.
    pub idempotency_key: Option<String>,
    /// Fields of the request that were ignored.
    pub warnings: Vec<OrderWarning>,
}

/// Returns the owner's name in idempotency keys.
pub(crate) fn idempotency_name(owner: &Owner) -> String {
    owner.key_name()
}

/// Returns a warning for a known field that has no effect in this order.
pub fn no_effect_warning(field: &str, why: &str) -> OrderWarning {
    OrderWarning { field: field.to_owned(), text: format!("`{field}` has no effect: {why}") }
}

/// Part of a run's template that is resolved when the run is ordered.
#[derive(Debug)]
pub(crate) struct ResolvedFields {
    pub(crate) model: ModelRef,
    pub(crate) benchmarks: Vec<BenchmarkName>,
    pub(crate) selected_benchmarks: Option<Vec<String>>,
    pub(crate) datasets: BTreeMap<BenchmarkName, DatasetChoice>,
    pub(crate) protocols: BTreeMap<BenchmarkName, String>,
    pub(crate) options: BTreeMap<BenchmarkName, Options>,
    pub(crate) judge: Option<JudgeSpec>,
    pub(crate) user: Option<UserSpec>,
    pub(crate) coverage_min: f64,
    pub(crate) price: Option<Price>,
}

impl Order {
    /// Returns the template of the order's runs, from the resolved fields and the fields of the order.
    pub(crate) fn into_template(self, resolved: ResolvedFields) -> RunTemplate {
        // All fields are named, so that each new field is either used or left out on purpose.
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
            limits,
            protocols: _,
            options: _,
            judge: _,
            user: _,
            labels,
            config,
            idempotency_key: _,
            trusted: _,
            warnings: _,
        } = self;
        let ResolvedFields {
            model,
            benchmarks,
            selected_benchmarks,
            datasets,
            protocols,
            options,
            judge,
            user,
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
            user,
            config,
            coverage_min,
            price,
            budget,
            labels,
            limits,
        }
    }

    /// Returns the digest of the order: equal for equal orders.
    pub fn digest(&self) -> String {
        // All fields are named, so that each new field is either in the digest or left out on purpose.
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
            limits,
            protocols,
            options,
            judge,
            user,
            labels,
            config,
            idempotency_key: _,
            trusted,
            warnings: _,
        } = self;
        let TrustedSettings {
            base_url,
            judge_base_url,
            user_base_url,
            replay_key,
            datasets,
            coverage_min,
            price,
        } = trusted;
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
        // Included only if set, so that orders of older versions keep their digests.
        if let (Value::Array(parts), true) = (&mut parts, budget.is_set() || price.is_some()) {
            parts.push(json!([budget, price]));
        }
        let chooses = !protocols.is_empty() || judge.is_some() || judge_base_url.is_some();
        if let (Value::Array(parts), true) = (&mut parts, chooses) {
            parts.push(json!({ "protocols": protocols, "judge": judge, "judge_base_url": judge_base_url }));
        }
        if let (Value::Array(parts), true) = (&mut parts, user.is_some() || user_base_url.is_some()) {
            parts.push(json!({ "user": user, "user_base_url": user_base_url }));
        }
        if let (Value::Array(parts), false) = (&mut parts, options.is_empty()) {
            parts.push(json!({ "options": options }));
        }
        if let (Value::Array(parts), false) = (&mut parts, labels.is_empty()) {
            parts.push(json!({ "labels": labels }));
        }
        if let (Value::Array(parts), true) = (&mut parts, limits.is_set()) {
            parts.push(json!({ "limits": limits }));
        }
        hex::encode(Sha256::digest(parts.to_string().as_bytes()))
    }
}

impl RejudgeOrder {
    /// Returns the digest of the order: equal for equal orders.
    pub fn digest(&self, run: RunId) -> String {
        let parts = json!(["rejudge", run, self.judge, self.budget, self.base_url]);
        hex::encode(Sha256::digest(parts.to_string().as_bytes()))
    }
}
