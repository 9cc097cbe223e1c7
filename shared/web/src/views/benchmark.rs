//! One benchmark of a run.

use std::collections::BTreeMap;

use bench_domain::report::BenchmarkReport;
use bench_domain::run::{BenchmarkStatus, DatasetChoice, DatasetUse, Plan};
use bench_domain::{
    BenchmarkName, Code, ErrorCause, Generation, MaxTokensField, OmittedSetting, Outcome, OutcomeCounts,
    ReasoningEffort, RunSpec, Timestamp,
};
use bench_state::{BenchmarkRecord, RunRecord, ShardCount};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::error::CodeSchema;
use uuid::Uuid;

use super::{CostView, ErrorCount, JudgeView, share};

/// A benchmark of a run: plan, progress and results.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RunBenchmarkView {
    /// Id of the benchmark in this run; it never changes.
    #[schema(value_type = String, format = "uuid")]
    pub id: Uuid,
    /// Name of the benchmark, such as `mmlu_pro`.
    pub benchmark_name: String,
    /// Status: `pending`, `running`, `succeeded`, `failed`, `skipped` or `needs_setup`.
    #[schema(value_type = String)]
    pub status: BenchmarkStatus,
    /// Items of the dataset; 0 until the benchmark is planned if their number isn't known before.
    pub total_items: u64,
    /// Items whose samples are all over.
    pub completed_items: u64,
    /// Planned items; 0 until the benchmark is planned.
    pub sampled_items: u64,
    /// Mean score of the graded samples; null until the benchmark is over, and if the coverage is below
    /// `coverage_min`.
    pub score: Option<f64>,
    /// All metrics of the benchmark; null until it is over. `accuracy` is correct / planned samples: errors count as
    /// wrong.
    #[schema(value_type = Option<MetricsSchema>)]
    pub metrics: Option<Map<String, Value>>,
    /// Problem with the benchmark, or step that the operator has to take.
    pub error_message: Option<String>,
    /// Time at which the benchmark was planned.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// Time at which the benchmark was closed.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,

    /// Code of `error_message`; null if it was stored without a code.
    #[schema(value_type = Option<CodeSchema>)]
    pub error_code: Option<Code>,
    /// Graded / planned samples, 0 to 1; null until planned.
    pub coverage: Option<f64>,
    /// Coverage below which there is no score.
    pub coverage_min: f64,
    /// Correct / planned samples: errors count as wrong. Null until planned.
    pub accuracy_all: Option<f64>,
    /// Mean score of the graded samples, at any coverage.
    pub score_of_graded: Option<f64>,
    /// 95% confidence interval of the score.
    pub interval: Option<IntervalView>,
    /// Number of samples by outcome; null until the benchmark is over.
    #[schema(value_type = Option<std::collections::BTreeMap<String, u64>>)]
    pub outcomes: Option<OutcomeCounts>,
    /// Causes of infrastructure-errors, most frequent first; empty until the benchmark is over, and for gated
    /// datasets: owners of the run find them in the benchmark's details.
    pub error_causes: Vec<ErrorCount>,
    /// Planned samples.
    pub planned_samples: u64,
    /// Samples that are over.
    pub completed_samples: u64,
    /// Graded samples.
    pub graded_samples: u64,
    /// Correct samples.
    pub correct_samples: u64,
    /// Samples per item; null until planned.
    pub samples_per_item: Option<u32>,
    /// Dataset that was used; null until planned.
    pub dataset: Option<DatasetView>,
    /// True if the items are demo data bundled with the program, which say nothing about the real benchmark.
    pub demo: bool,
    /// Short name of the protocol, as in orders; null for the default one until planned.
    pub protocol_name: Option<String>,
    /// Full name of the protocol, with its pinned version.
    pub protocol: Option<String>,
    /// Options of the benchmark that are in effect, including defaults; until planned, only the ordered ones.
    pub options: BTreeMap<String, String>,
    /// Source of the prompt template: `official` or `own`.
    pub prompt_source: Option<String>,
    /// Digest of the prompt template.
    pub prompt_digest: Option<String>,
    /// Judge of the answers; null until planned, and for benchmarks without a judge.
    pub judge: Option<JudgeView>,
    /// Generation settings of the answers; null until planned.
    pub generation: Option<GenerationView>,
    /// Settings that differ from the benchmark's own and can change scores, as phrases: `temperature 0.6 (benchmark: 0)`,
    /// `samples 4 (benchmark: 1)`, `timeout 30 s (benchmark: 1200 s)`.
    pub changed_settings: Vec<String>,
    /// Compact index of the samples, read with `GET /api/runs/{run_id}/items/index`; null for an open benchmark, and if it
    /// was closed by an older version.
    pub index: Option<ItemIndexSizeView>,
    /// Tokens of the prompts so far.
    pub input_tokens: u64,
    /// Tokens of the answers so far.
    pub output_tokens: u64,
    /// Cost of these tokens so far; null if the price isn't known.
    pub cost: Option<CostView>,
    /// Estimated tokens of answers for which the provider sent no counts. They count against the budget, but
    /// `input_tokens`, `output_tokens` and `cost` don't include them.
    pub estimated_tokens: u64,
    /// Tokens of the judge's prompts so far.
    pub judge_input_tokens: u64,
    /// Tokens of the judge's replies so far.
    pub judge_output_tokens: u64,
    /// Estimated part of the judge's tokens, for which its provider sent no counts.
    pub judge_estimated_tokens: u64,
    /// Cost of the judge's tokens so far; null if the judge's price isn't known.
    pub judge_cost: Option<CostView>,
    /// Tokens of the user simulator's prompts so far, with estimates for messages that its provider didn't count.
    pub user_input_tokens: u64,
    /// Tokens of the user simulator's messages so far, likewise.
    pub user_output_tokens: u64,
    /// Estimated part of the user simulator's tokens, for which its provider sent no counts.
    pub user_estimated_tokens: u64,
    /// Cost of the user simulator's tokens so far; null before its first message, or if its price isn't known.
    pub user_cost: Option<CostView>,
}

/// Metrics of a benchmark that is over: those of the compatible system, the whole report, and further ones of the
/// protocol.
#[derive(Debug, ToSchema)]
#[schema(as = Metrics)]
#[allow(dead_code)] // describes the map that `metrics` returns
struct MetricsSchema {
    /// Correct / planned samples: errors count as wrong.
    accuracy: f64,
    /// Items of the dataset.
    total_items: u64,
    /// Planned items.
    sampled_items: u64,
    /// Ordered share of the items in percent, 1 to 100.
    sampled_pct: u32,
    /// Ordered number of items, which takes precedence over the share; null if the order doesn't name one.
    subset_count: Option<u64>,
    /// Seed that selected the items; null if the order doesn't name one.
    subset_seed: Option<String>,
    /// Correct samples.
    correct: u64,
    /// Mean score of the graded samples; null if the coverage is too low.
    score: Option<f64>,
    /// Counts and score of each group of items; empty without groups.
    groups: BTreeMap<String, GroupMetricsSchema>,
    /// Further metrics, by name.
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// Counts and score of a group of items.
#[derive(Debug, ToSchema)]
#[schema(as = GroupMetrics)]
#[allow(dead_code)] // describes `GroupReport` of the domain
struct GroupMetricsSchema {
    /// Samples that ended.
    ended: u64,
    /// Graded samples.
    graded: u64,
    /// Correct samples.
    correct: u64,
    /// Mean score of the graded samples; null if there are none.
    score: Option<f64>,
}

/// Size of the compact index of a benchmark's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct ItemIndexSizeView {
    /// Number of parts.
    pub parts: u32,
    /// Number of rows, one for each sample.
    pub items: u64,
}

/// Dataset of a run, identified exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DatasetView {
    /// Id at the hub, or name of the file.
    pub id: String,
    /// Commit at the hub, or digest of a local file or of the demo data.
    pub revision: String,
    /// Source: `hub`, `local` or `demo`.
    pub source: String,
    /// SHA-256 of the normalized content.
    pub digest: String,
    /// Files besides the items that sandbox jobs need.
    pub attachments: Vec<AttachmentView>,
    /// Reason why demo data were used without being ordered; null otherwise.
    pub note: Option<String>,
}

impl From<&DatasetUse> for DatasetView {
    fn from(dataset: &DatasetUse) -> Self {
        let DatasetUse { id, revision, source, digest, attachments, note, .. } = dataset.clone();
        let attachments = attachments.into_iter().map(|(name, file)| AttachmentView {
            name,
            sha256: file.sha256,
            bytes: file.bytes,
        });
        Self { id, revision, source, digest, attachments: attachments.collect(), note }
    }
}

/// File besides the items that sandbox jobs need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AttachmentView {
    /// Name of the file in the benchmark.
    pub name: String,
    /// SHA-256 of its content.
    pub sha256: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// Generation settings. Null leaves a setting to the provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct GenerationView {
    /// Temperature, 0 to 2.
    pub temperature: Option<f64>,
    /// Nucleus sampling, 0 to 1.
    pub top_p: Option<f64>,
    /// Maximum length of an answer in tokens.
    pub max_tokens: Option<u32>,
    /// Texts that end an answer.
    pub stop: Vec<String>,
    /// Seed of the provider's sampler.
    pub seed: Option<i64>,
    /// Number of the most probable tokens to sample from.
    #[serde(default)]
    pub top_k: Option<u32>,
    /// System message in front of every prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Effort of the model's reasoning.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Maximum number of tokens of the model's reasoning.
    #[serde(default)]
    pub thinking_budget: Option<u32>,
    /// Fields that are added to the body of every request.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub extra_body: Option<Value>,
    /// Settings of the benchmark that requests leave out.
    #[serde(default)]
    #[schema(value_type = Vec<String>, required = true)]
    pub omit: Vec<OmittedSetting>,
    /// Name of the request's field for `max_tokens`, if ordered.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub max_tokens_field: Option<MaxTokensField>,
}

impl From<&Generation> for GenerationView {
    fn from(generation: &Generation) -> Self {
        let Generation {
            temperature,
            top_p,
            max_tokens,
            stop,
            seed,
            top_k,
            system_prompt,
            reasoning_effort,
            thinking_budget,
            extra_body,
            omit,
            max_tokens_field,
        } = generation.clone();
        Self {
            temperature,
            top_p,
            max_tokens,
            stop,
            seed,
            top_k,
            system_prompt,
            reasoning_effort,
            thinking_budget,
            extra_body: extra_body.and_then(|text| serde_json::from_str(&text).ok()),
            omit,
            max_tokens_field,
        }
    }
}

/// Minimum width of an interval around a mean; a narrower one has a width only because of rounding.
const WIDTH_MIN: f64 = 1e-9;

/// 95% confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct IntervalView {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Method: `wilson` for one sample per item, or a single item, if each sample is right or wrong; otherwise `clustered` by
    /// item. That of a single item says how sure the item's own share is, and nothing about other items.
    pub method: &'static str,
}

impl IntervalView {
    /// Returns the interval that fits the report; `None` if it can't be determined, as for scores that are all equal.
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
    pub fn from_report(report: &BenchmarkReport) -> Option<Self> {
        // If scores can differ from 0 and 1, the share of correct answers isn't the score.
        let right = report.outcomes.get(Outcome::Correct) as f64;
        let is_share =
            report.score_of_graded.is_none_or(|score| (score * report.graded as f64 - right).abs() < 1e-6);
        // Samples of a single item are independent tries at it.
        let independent = report.samples_per_item == 1 || report.items == 1;
        let independent = independent && report.outcomes.get(Outcome::Partial) == 0;
        let wilson = report.wilson_95.filter(|_| independent && is_share);
        // For scores that are all equal, the interval would have no width and claim false certainty.
        let clustered = || {
            let interval = report.clustered.and_then(|mean| mean.interval);
            interval.filter(|interval| interval.high - interval.low > WIDTH_MIN)
        };
        let (interval, method) = match wilson {
            Some(interval) => (interval, "wilson"),
            None => (clustered()?, "clustered"),
        };
        Some(Self { low: interval.low, high: interval.high, method })
    }
}

impl RunBenchmarkView {
    /// Creates the view of a benchmark. `known_items` returns the size of its dataset as far as it is known
    /// without a plan, or 0.
    pub fn new(
        run: &RunRecord,
        record: &BenchmarkRecord,
        counts: &ShardCount,
        known_items: impl Fn(&RunSpec, &BenchmarkName) -> u64,
    ) -> Self {
        let (spec, state) = (&run.spec, &record.state);
        let plan = record.plan.as_ref();
        let report = state.report();
        let planned_samples = plan.map_or(0, Plan::samples);
        let demo = match plan {
            Some(plan) => plan.dataset.is_demo(),
            None => spec.datasets.get(&record.name) == Some(&DatasetChoice::Demo),
        };
        Self {
            id: spec.id.derive(record.name.as_str()),
            benchmark_name: record.name.to_string(),
            status: state.status(),
            total_items: plan.map_or_else(|| known_items(spec, &record.name), |plan| plan.dataset_items),
            completed_items: plan.map_or(0, |plan| counts.done / u64::from(plan.samples_per_item.max(1))),
            sampled_items: plan.map_or(0, |plan| plan.items),
            score: report.and_then(|report| report.score),
            metrics: report.map(|report| metrics(run, record, report)),
            error_message: state.error().map(str::to_owned),
            error_code: state.error_code(),
            started_at: state.started_at(),
            completed_at: state.completed_at(),
            coverage: share(counts.graded, planned_samples),
            coverage_min: spec.coverage_min,
            accuracy_all: share(counts.correct, planned_samples),
            score_of_graded: report.and_then(|report| report.score_of_graded),
            interval: report.and_then(IntervalView::from_report),
            outcomes: report.map(|report| report.outcomes),
            error_causes: report.map(error_causes).unwrap_or_default(),
            planned_samples,
            completed_samples: counts.done,
            graded_samples: counts.graded,
            correct_samples: counts.correct,
            samples_per_item: plan.map(|plan| plan.samples_per_item),
            dataset: plan.map(|plan| DatasetView::from(&plan.dataset)),
            demo,
            protocol_name: plan
                .map(|plan| plan.protocol_name.clone())
                .filter(|name| !name.is_empty())
                .or_else(|| spec.protocols.get(&record.name).cloned()),
            protocol: plan.map(|plan| plan.protocol.clone()),
            options: match plan {
                Some(plan) => plan.options.clone(),
                None => spec.options.get(&record.name).cloned().unwrap_or_default(),
            },
            prompt_source: plan.map(|plan| plan.prompt_source.clone()),
            prompt_digest: plan.map(|plan| plan.prompt_digest.clone()),
            judge: plan.and_then(|plan| plan.judge.as_ref()).map(JudgeView::from),
            generation: plan.map(|plan| GenerationView::from(&plan.generation)),
            changed_settings: plan.map(Plan::changed_settings).unwrap_or_default(),
            index: record
                .current_index()
                .map(|index| ItemIndexSizeView { parts: index.parts, items: index.items }),
            input_tokens: counts.input_tokens,
            output_tokens: counts.output_tokens,
            cost: plan.and_then(|_| CostView::new(spec.price, counts.input_tokens, counts.output_tokens)),
            estimated_tokens: counts.spent_estimated,
            judge_input_tokens: counts.judge_spent_input,
            judge_output_tokens: counts.judge_spent_output,
            judge_estimated_tokens: counts.judge_spent_estimated,
            judge_cost: plan.and_then(|plan| plan.judge.as_ref()).and(spec.judge.as_ref()).and_then(
                |judge| CostView::new(judge.price, counts.judge_spent_input, counts.judge_spent_output),
            ),
            user_input_tokens: counts.user_spent_input,
            user_output_tokens: counts.user_spent_output,
            user_estimated_tokens: counts.user_spent_estimated,
            user_cost: spec.user.as_ref().filter(|_| counts.user_spent().total() > 0).and_then(|user| {
                CostView::new(user.price, counts.user_spent_input, counts.user_spent_output)
            }),
        }
    }
}

fn error_causes(report: &BenchmarkReport) -> Vec<ErrorCount> {
    let causes = report.error_causes.iter();
    let count = |cause: &ErrorCause| ErrorCount {
        message: cause.message.clone(),
        code: cause.code,
        count: cause.count,
    };
    causes.map(count).collect()
}

/// Returns the metrics of a benchmark that is over: those of the protocol, then the whole report, then the
/// eight keys of the compatible system, which override the others.
///
/// `accuracy` follows the compatible system: correct / planned samples. `score` is over graded samples, and
/// null when too few were graded.
pub fn metrics(run: &RunRecord, record: &BenchmarkRecord, report: &BenchmarkReport) -> Map<String, Value> {
    let subset = &run.spec.subset;
    let mut metrics = report.extra.clone();
    if let Ok(Value::Object(mut all)) = serde_json::to_value(report) {
        all.remove("extra");
        // Not a metric: archives and samples have the ids.
        all.remove("reported_models");
        metrics.extend(all);
    }
    metrics.extend(
        [
            ("accuracy", json!(report.accuracy_all)),
            ("total_items", json!(record.plan.as_ref().map_or(0, |plan| plan.dataset_items))),
            ("sampled_items", json!(report.items)),
            ("sampled_pct", json!(subset.pct)),
            ("subset_count", json!(subset.count)),
            ("subset_seed", json!(subset.seed)),
            ("correct", json!(report.outcomes.get(Outcome::Correct))),
            ("score", json!(report.score)),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcomes: Value, graded: u64, score: f64) -> BenchmarkReport {
        let interval = |low: f64, high: f64| json!({ "low": low, "high": high });
        serde_json::from_value(json!({
            "score": score, "score_of_graded": score, "accuracy_all": 0.5, "coverage": 1.0, "coverage_min": 0.9,
            "planned": graded, "graded": graded, "items": graded, "samples_per_item": 1, "outcomes": outcomes,
            "truncated_answers": 0, "wilson_95": interval(0.2, 0.8),
            "clustered": {
                "mean": score, "standard_error": 0.1, "interval": interval(-0.3, 0.3), "items": graded, "samples": graded,
            },
            "usage": { "input_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0 },
            "without_usage": 0, "cost": null, "latency_ms": null,
        }))
        .unwrap()
    }

    #[test]
    fn the_interval_is_that_of_the_score() {
        for (outcomes, score, method) in [
            (json!({"correct": 5, "incorrect": 5}), 0.5, "wilson"),
            // Wrong answers count against the model, so the share of correct ones isn't its score.
            (json!({"correct": 5, "incorrect": 5}), 0.0, "clustered"),
            (json!({"correct": 4, "no-answer": 6}), 0.4, "wilson"),
            (json!({"correct": 5, "partial": 5}), 0.5, "clustered"),
        ] {
            let interval = IntervalView::from_report(&report(outcomes, 10, score)).unwrap();
            assert_eq!(interval.method, method, "{score}");
            assert_eq!(interval.low, if method == "wilson" { 0.2 } else { -0.3 });
        }
    }

    #[test]
    fn samples_of_a_single_item_have_the_interval_of_its_share() {
        let mut report = report(json!({"correct": 10}), 10, 1.0);
        report.samples_per_item = 10;
        report.clustered.as_mut().unwrap().interval = None;
        assert_eq!(IntervalView::from_report(&report), None, "items with equal scores");
        report.items = 1;
        assert_eq!(IntervalView::from_report(&report).unwrap().method, "wilson");
        report.outcomes = serde_json::from_value(json!({"correct": 9, "partial": 1})).unwrap();
        assert_eq!(IntervalView::from_report(&report), None);
    }

    #[test]
    fn scores_that_are_not_shares_have_the_interval_of_a_mean_or_none() {
        // The number of correct answers matches the score by chance; the score still isn't a share of correct answers.
        let mut report = report(json!({"correct": 0, "no-answer": 10}), 10, 0.0).without_share_interval();
        assert_eq!(IntervalView::from_report(&report).unwrap().method, "clustered");
        let mean = report.clustered.as_mut().unwrap();
        mean.interval = Some(bench_domain::statistics::Interval { low: 0.0, high: 0.0 });
        assert_eq!(IntervalView::from_report(&report), None);
    }
}
