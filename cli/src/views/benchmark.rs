//! Benchmarks of runs.

use std::collections::BTreeMap;

use bench_domain::{Agent, Code, ErrorCause, Outcome, code};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Cost, Judge};

/// A benchmark of a run.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Benchmark {
    pub(crate) benchmark_name: String,
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) score: Option<f64>,
    #[serde(default)]
    pub(crate) score_of_graded: Option<f64>,
    #[serde(default)]
    pub(crate) interval: Option<Interval>,
    #[serde(default)]
    pub(crate) coverage: Option<f64>,
    #[serde(default)]
    pub(crate) accuracy_all: Option<f64>,
    #[serde(default)]
    pub(crate) error_message: Option<String>,
    /// Code of `error_message`; `None` if it was stored without a code.
    #[serde(default, deserialize_with = "code::deserialize_known")]
    pub(crate) error_code: Option<Code>,
    #[serde(default)]
    pub(crate) outcomes: Option<BTreeMap<String, u64>>,
    /// Causes of its infrastructure-errors.
    #[serde(default)]
    pub(crate) error_causes: Vec<ErrorCause>,
    /// Items of the dataset; 0 if their number isn't known yet.
    #[serde(default)]
    pub(crate) total_items: u64,
    #[serde(default)]
    pub(crate) sampled_items: u64,
    #[serde(default)]
    pub(crate) planned_samples: u64,
    #[serde(default)]
    pub(crate) completed_samples: u64,
    #[serde(default)]
    pub(crate) graded_samples: u64,
    #[serde(default)]
    pub(crate) correct_samples: u64,
    #[serde(default)]
    pub(crate) samples_per_item: Option<u32>,
    #[serde(default)]
    pub(crate) dataset: Option<Dataset>,
    #[serde(default)]
    pub(crate) demo: bool,
    #[serde(default)]
    pub(crate) protocol_name: Option<String>,
    /// Benchmark-specific settings in effect.
    #[serde(default)]
    pub(crate) options: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) protocol: Option<String>,
    #[serde(default)]
    pub(crate) prompt_source: Option<String>,
    #[serde(default)]
    pub(crate) prompt_digest: Option<String>,
    #[serde(default)]
    pub(crate) judge: Option<Judge>,
    #[serde(default)]
    pub(crate) generation: Option<Map<String, Value>>,
    /// Settings that differ from the benchmark's own, as phrases.
    #[serde(default)]
    pub(crate) changed_settings: Vec<String>,
    #[serde(default)]
    pub(crate) input_tokens: u64,
    #[serde(default)]
    pub(crate) output_tokens: u64,
    #[serde(default)]
    pub(crate) cost: Option<Cost>,
    #[serde(default)]
    pub(crate) judge_input_tokens: u64,
    #[serde(default)]
    pub(crate) judge_output_tokens: u64,
    /// Estimated tokens of answers that the provider did not count. Not included in the other counts.
    #[serde(default)]
    pub(crate) estimated_tokens: u64,
    /// Part of the judge's tokens that its provider did not count.
    #[serde(default)]
    pub(crate) judge_estimated_tokens: u64,
    #[serde(default)]
    pub(crate) judge_cost: Option<Cost>,
    #[serde(default)]
    pub(crate) user_input_tokens: u64,
    #[serde(default)]
    pub(crate) user_output_tokens: u64,
    /// Part of the user simulator's tokens that its provider did not count.
    #[serde(default)]
    pub(crate) user_estimated_tokens: u64,
    #[serde(default)]
    pub(crate) user_cost: Option<Cost>,
    #[serde(default)]
    pub(crate) metrics: Option<Map<String, Value>>,
}

/// A 95% interval.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Source of the items.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Dataset {
    pub(crate) id: String,
    pub(crate) revision: String,
    pub(crate) source: String,
    #[serde(default)]
    pub(crate) digest: String,
    #[serde(default)]
    pub(crate) note: Option<String>,
}

/// Benchmark of a run as printed by `--json`.
#[derive(Debug, Serialize)]
pub(super) struct BenchmarkSummary<'a> {
    benchmark: &'a str,
    status: &'a str,
    score: Option<f64>,
    interval_95: Option<Interval>,
    coverage: Option<f64>,
    score_of_graded: Option<f64>,
    accuracy_all: Option<f64>,
    items: u64,
    samples_per_item: Option<u32>,
    planned: u64,
    done: u64,
    graded: u64,
    correct: u64,
    outcomes: Option<&'a BTreeMap<String, u64>>,
    error_causes: &'a [ErrorCause],
    input_tokens: u64,
    output_tokens: u64,
    estimated_tokens: u64,
    cost_usd: Option<f64>,
    judge_input_tokens: u64,
    judge_output_tokens: u64,
    judge_estimated_tokens: u64,
    judge_cost_usd: Option<f64>,
    user_input_tokens: u64,
    user_output_tokens: u64,
    user_estimated_tokens: u64,
    user_cost_usd: Option<f64>,
    latency_ms: Option<Latency>,
    dataset: Option<&'a Dataset>,
    demo: bool,
    protocol_name: Option<&'a str>,
    protocol: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    options: &'a BTreeMap<String, String>,
    prompt_source: Option<&'a str>,
    prompt_digest: Option<&'a str>,
    judge: Option<&'a Judge>,
    generation: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    changed_settings: &'a [String],
    metrics: Option<&'a Map<String, Value>>,
    error: Option<&'a str>,
}

/// Time from the request to the end of the answer, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p95: f64,
}

impl Benchmark {
    /// Returns the number of samples that ended with an infrastructure-error.
    pub(crate) fn infrastructure_errors(&self) -> u64 {
        let outcomes = self.outcomes.as_ref();
        outcomes
            .and_then(|outcomes| outcomes.get(Outcome::InfrastructureError.as_str()))
            .copied()
            .unwrap_or(0)
    }

    pub(super) fn summary(&self) -> BenchmarkSummary<'_> {
        BenchmarkSummary {
            benchmark: &self.benchmark_name,
            status: &self.status,
            score: self.score,
            interval_95: self.interval,
            coverage: self.coverage,
            score_of_graded: self.score_of_graded,
            accuracy_all: self.accuracy_all,
            items: self.sampled_items,
            samples_per_item: self.samples_per_item,
            planned: self.planned_samples,
            done: self.completed_samples,
            graded: self.graded_samples,
            correct: self.correct_samples,
            outcomes: self.outcomes.as_ref(),
            error_causes: &self.error_causes,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            estimated_tokens: self.estimated_tokens,
            cost_usd: self.cost.map(|cost| cost.total_usd),
            judge_input_tokens: self.judge_input_tokens,
            judge_output_tokens: self.judge_output_tokens,
            judge_estimated_tokens: self.judge_estimated_tokens,
            judge_cost_usd: self.judge_cost.map(|cost| cost.total_usd),
            user_input_tokens: self.user_input_tokens,
            user_output_tokens: self.user_output_tokens,
            user_estimated_tokens: self.user_estimated_tokens,
            user_cost_usd: self.user_cost.map(|cost| cost.total_usd),
            latency_ms: self.latency(),
            dataset: self.dataset.as_ref(),
            demo: self.demo,
            protocol_name: self.protocol_name.as_deref(),
            options: &self.options,
            protocol: self.protocol.as_deref(),
            prompt_source: self.prompt_source.as_deref(),
            prompt_digest: self.prompt_digest.as_deref(),
            judge: self.judge.as_ref(),
            generation: self.generation.as_ref(),
            changed_settings: &self.changed_settings,
            metrics: self.metrics.as_ref(),
            error: self.error_message.as_deref(),
        }
    }

    /// Returns this program's own entry for the benchmark, under the protocol and options that were used.
    pub(crate) fn known(&self) -> Option<&'static dyn bench_benchmarks::Benchmark> {
        let known = bench_benchmarks::find(&self.benchmark_name)?;
        let known = bench_benchmarks::with_protocol(known, self.protocol_name.as_deref()).ok()?;
        Some(known.with_options(&self.options).ok()?.unwrap_or(known))
    }

    /// Returns true if agents work on its items.
    pub(crate) fn has_agent(&self) -> bool {
        self.known().is_some_and(|known| known.has_agent())
    }

    /// Returns the maximum length of an answer in tokens, if the benchmark is planned and has one.
    pub(crate) fn max_tokens(&self) -> Option<u32> {
        u32::try_from(self.generation.as_ref()?.get("max_tokens")?.as_u64()?).ok()
    }

    /// Returns the name for people: `ifbench (IFEval)` if the name alone reads like another benchmark's.
    pub(crate) fn listed_name(&self) -> String {
        bench_benchmarks::listed_name(&self.benchmark_name)
    }

    /// Returns the agent that asked the model, if the run's options name one.
    pub(crate) fn agent(&self) -> Option<&str> {
        let has_agent = self.known().is_some_and(|known| known.has_agent());
        let named = self.options.get("agent").filter(|_| has_agent).map(String::as_str);
        // A custom agent stands in the place of the model.
        named.filter(|agent| *agent != Agent::Custom.as_str())
    }

    /// Returns the latencies, if the benchmark is over.
    pub(crate) fn latency(&self) -> Option<Latency> {
        let latency = self.metrics.as_ref()?.get("latency_ms")?;
        Some(Latency { p50: latency.get("p50")?.as_f64()?, p95: latency.get("p95")?.as_f64()? })
    }

    /// Returns the metrics over several samples per item: the mean over items of each item's mean, its standard error
    /// clustered by item, pass@k by k, and pass^k by k from 2, since pass^1 equals pass@1.
    pub(crate) fn sampled(&self) -> Option<SamplingMetrics> {
        let metrics = self.metrics.as_ref().filter(|_| self.samples_per_item.is_some_and(|n| n > 1))?;
        let clustered = metrics.get("clustered").filter(|value| !value.is_null())?;
        let mean = metrics.get("mean_of_items").and_then(Value::as_f64);
        let by_k = |name: &str, k_min: u32| {
            let estimates = metrics.get(name).and_then(Value::as_object).into_iter().flatten();
            let mut by_k: Vec<(u32, f64)> = estimates
                .filter_map(|(k, estimate)| Some((k.parse().ok()?, estimate.get("value")?.as_f64()?)))
                .filter(|(k, _)| *k >= k_min)
                .collect();
            by_k.sort_by_key(|(k, _)| *k);
            by_k
        };
        let mut pass_at = by_k("pass_at", 1);
        // Adds the benchmark's own metrics, for the k that its users expect.
        for (name, value) in metrics {
            let k = name.strip_prefix("pass@").and_then(|k| k.parse::<u32>().ok());
            let Some((k, value)) = k.zip(value.as_f64()) else { continue };
            if pass_at.iter().all(|(known, _)| *known != k) {
                pass_at.push((k, value));
            }
        }
        pass_at.sort_by_key(|(k, _)| *k);
        Some(SamplingMetrics {
            mean: mean.or_else(|| clustered.get("mean")?.as_f64())?,
            standard_error: clustered.get("standard_error").and_then(Value::as_f64),
            pass_at,
            pass_hat: by_k("pass_hat", 2),
        })
    }

    /// Returns the outcomes that occurred, in their usual order.
    pub(crate) fn outcomes(&self) -> Vec<(Outcome, u64)> {
        let Some(outcomes) = &self.outcomes else { return Vec::new() };
        let all = Outcome::ALL.into_iter();
        all.filter_map(|outcome| Some((outcome, *outcomes.get(outcome.as_str())?)))
            .filter(|(_, n)| *n > 0)
            .collect()
    }
}

/// Metrics over several samples per item.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SamplingMetrics {
    pub(crate) mean: f64,
    pub(crate) standard_error: Option<f64>,
    pub(crate) pass_at: Vec<(u32, f64)>,
    pub(crate) pass_hat: Vec<(u32, f64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_that_did_not_occur_are_left_out() {
        let outcomes = BTreeMap::from([("truncated".to_owned(), 2), ("correct".to_owned(), 0)]);
        let benchmark = Benchmark { outcomes: Some(outcomes), ..Benchmark::default() };
        assert_eq!(benchmark.outcomes(), [(Outcome::Truncated, 2)]);
    }
}
