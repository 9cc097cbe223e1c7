//! Comparison of two runs on the same items.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_benchmarks::{agent_choice, has_agent_in};
use bench_domain::statistics::{Interval, PairedComparison};
use bench_domain::{BenchmarkName, Code, RunId, RunSpec};
use bench_state::{BenchmarkRecord, CompareError, ComparisonResult, RunRecord, RunWithBenchmarks};
use bench_web::error::ErrorBody;
use bench_web::views::{DatasetView, JudgeView, RejudgesView};
use bench_web::{ApiError, Identity, Path};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::runs::requests::{run_id, run_not_found};

/// Maximum number of samples of both runs together that can be read within API Gateway's 29 seconds.
const SAMPLES_IN_TIME_MAX: u64 = 300_000;

/// Comparison of two runs, by benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ComparisonView {
    /// First run.
    pub a: ComparedRun,
    /// Second run.
    pub b: ComparedRun,
    /// Benchmarks that both runs have.
    pub benchmarks: Vec<BenchmarkComparison>,
    /// Benchmarks that only the first run has.
    pub only_in_a: Vec<String>,
    /// Benchmarks that only the second run has.
    pub only_in_b: Vec<String>,
}

/// One of two compared runs.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ComparedRun {
    /// Id of the run.
    #[schema(value_type = String, format = "uuid")]
    pub id: RunId,
    /// Model of the run, with its provider.
    pub model: String,
    /// Effort or budget of the model's thinking, such as `high` or `8192 tokens`; null if it wasn't ordered.
    pub thinking_level: Option<String>,
    /// Host of the provider's base URL; null for models that aren't called over the network.
    pub endpoint_host: Option<String>,
    /// Agent that asked the model in the episodes of the run; null if it has none, or its agent asks no model.
    pub agent: Option<String>,
    /// Status of the run.
    pub status: String,
    /// Overall score of the run.
    pub overall_score: Option<f64>,
    /// Description of that score: `score of mmlu_pro` or `mean of 3 benchmark scores`.
    pub overall_score_label: String,
    /// Run whose answers it judges again; null if it asked the model itself.
    pub rejudges: Option<RejudgesView>,
}

/// Comparison of one benchmark, over the items that both runs have graded.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct BenchmarkComparison {
    /// Name of the benchmark.
    pub benchmark_name: String,
    /// Score in the first run.
    pub score_a: Option<f64>,
    /// Score in the second run.
    pub score_b: Option<f64>,
    /// Graded / planned samples of the first run.
    pub coverage_a: Option<f64>,
    /// Graded / planned samples of the second run.
    pub coverage_b: Option<f64>,
    /// Dataset of the first run.
    pub dataset_a: Option<DatasetView>,
    /// Dataset of the second run.
    pub dataset_b: Option<DatasetView>,
    /// Short name of the first run's protocol; null until planned.
    pub protocol_a: Option<String>,
    /// Short name of the second run's protocol; null until planned.
    pub protocol_b: Option<String>,
    /// Source of the first run's prompt: `official` or `own`.
    pub prompt_source_a: Option<String>,
    /// Source of the second run's prompt: `official` or `own`.
    pub prompt_source_b: Option<String>,
    /// Judge of the first run; null without a judge.
    pub judge_a: Option<JudgeView>,
    /// Judge of the second run; null without a judge.
    pub judge_b: Option<JudgeView>,
    /// True if both runs used the same items, according to their digest. If not, items are matched by the dataset's
    /// own ids, or by the index of the row if a run has no such ids; one id may then name two versions of an item.
    pub same_dataset: bool,
    /// True if both runs used the same protocol, options, prompt template, generation settings, samples per item and user model.
    pub same_protocol: bool,
    /// True if both runs used the same judge with the same prompt and settings, or none. A host that an older version
    /// didn't record counts as equal, with a warning.
    pub same_judge: bool,
    /// Reasons to doubt the comparison, one sentence each.
    pub warnings: Vec<String>,
    /// Comparison on the items that both runs have graded.
    #[serde(flatten)]
    pub paired: PairedView,
}

/// Comparison on the items that both runs have graded. Every item has the same weight, whatever the number of its samples,
/// so the means may differ from the runs' own scores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct PairedView {
    /// Number of items graded in both runs.
    pub items: u64,
    /// Number of items graded only in the first run.
    pub only_in_a: u64,
    /// Number of items graded only in the second run.
    pub only_in_b: u64,
    /// Mean over these items of the first run's mean score; null without common items.
    pub mean_a: Option<f64>,
    /// Mean over these items of the second run's mean score; null without common items.
    pub mean_b: Option<f64>,
    /// Second mean minus the first: positive if the second run is better. Null without common items.
    pub difference: Option<f64>,
    /// Standard error of the difference; null with fewer than two common items.
    pub standard_error: Option<f64>,
    /// 95% interval of the difference; null with fewer than two common items.
    pub interval: Option<DifferenceIntervalView>,
    /// Number of items that both runs got right. An item is right if more than half of its samples are.
    pub both_right: u64,
    /// Number of items that only the first run got right.
    pub only_a_right: u64,
    /// Number of items that only the second run got right.
    pub only_b_right: u64,
    /// Number of items that neither run got right.
    pub both_wrong: u64,
    /// Exact two-sided p-value of McNemar's test on the two counts above; null without common items.
    pub mcnemar_p: Option<f64>,
}

/// 95% confidence interval of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct DifferenceIntervalView {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl From<PairedComparison> for PairedView {
    fn from(paired: PairedComparison) -> Self {
        let PairedComparison {
            items,
            only_in_a,
            only_in_b,
            mean_a,
            mean_b,
            difference,
            standard_error,
            interval,
            both_right,
            only_a_right,
            only_b_right,
            both_wrong,
            mcnemar_p,
        } = paired;
        let interval = interval.map(|Interval { low, high }| DifferenceIntervalView { low, high });
        Self {
            items,
            only_in_a,
            only_in_b,
            mean_a,
            mean_b,
            difference,
            standard_error,
            interval,
            both_right,
            only_a_right,
            only_b_right,
            both_wrong,
            mcnemar_p,
        }
    }
}

/// Compares two runs that are over.
///
/// For each benchmark that both have: the difference of their scores on the items that both have graded, its
/// confidence interval, and the exact McNemar test.
#[utoipa::path(
    get, path = "/api/runs/{run_id}/compare/{other_id}", tag = "runs",
    params(
        ("run_id" = String, Path, description = "Id of the first run"),
        ("other_id" = String, Path, description = "Id of the second run"),
    ),
    responses(
        (status = 200, body = ComparisonView),
        (status = 400, body = ErrorBody, description = "A run isn't over, or the runs have no benchmark in common"),
        (status = 404, body = ErrorBody, description = "The run doesn't exist"),
    ),
)]
pub(crate) async fn get_comparison(
    State(api): State<Arc<Api>>,
    Path((a, b)): Path<(String, String)>,
    identity: Identity,
) -> Result<Json<ComparisonView>, ApiError> {
    let is_visible = |run: &RunRecord| identity.reader().sees_run(&run.spec);
    compare_visible(&api, run_id(&a)?, run_id(&b)?, is_visible).await.map(Json)
}

/// Compares two runs that are over.
///
/// # Errors
/// 404 when a run doesn't exist; 400 when one is not over or they have no benchmark in common.
pub async fn compare_runs(api: &Api, a: RunId, b: RunId) -> Result<ComparisonView, ApiError> {
    compare_visible(api, a, b, |_| true).await
}

async fn compare_visible(
    api: &Api,
    a: RunId,
    b: RunId,
    is_visible: impl Fn(&RunRecord) -> bool,
) -> Result<ComparisonView, ApiError> {
    let (a, b) = (over(api, a, &is_visible).await?, over(api, b, &is_visible).await?);
    if !api.config.streaming {
        let in_both = |of: &RunWithBenchmarks, other: &RunWithBenchmarks| -> u64 {
            let records =
                of.benchmarks.iter().filter(|record| other.benchmark(record.name.as_str()).is_some());
            records.map(planned).sum()
        };
        let samples = in_both(&a, &b).saturating_add(in_both(&b, &a));
        if samples > SAMPLES_IN_TIME_MAX {
            return Err(ApiError::new(
                Code::ComparisonTooLarge,
                format!(
                    "the runs have {samples} samples to compare, and this server compares at most \
                     {SAMPLES_IN_TIME_MAX}; export both and compare them elsewhere"
                ),
            ));
        }
    }
    let mut benchmarks = Vec::new();
    for record in &a.benchmarks {
        if let Some(other) = b.benchmark(record.name.as_str()) {
            benchmarks.push(compare_benchmarks(api, (&a, record), (&b, other)).await?);
        }
    }
    if benchmarks.is_empty() {
        return Err(ApiError::new(Code::NothingToCompare, "the runs have no benchmark in common"));
    }
    let only = |of: &RunWithBenchmarks, other: &RunWithBenchmarks| {
        let names = of.benchmarks.iter().map(|record| &record.name);
        names.filter(|name| other.benchmark(name.as_str()).is_none()).map(BenchmarkName::to_string).collect()
    };
    let (only_in_a, only_in_b) = (only(&a, &b), only(&b, &a));
    Ok(ComparisonView { a: side(&a), b: side(&b), benchmarks, only_in_a, only_in_b })
}

async fn over(
    api: &Api,
    run: RunId,
    is_visible: impl Fn(&RunRecord) -> bool,
) -> Result<RunWithBenchmarks, ApiError> {
    let found = api.state.run_with_benchmarks(run).await?.filter(|found| is_visible(&found.run));
    let found = found.ok_or_else(run_not_found)?;
    if found.run.state.status().is_open() {
        return Err(ApiError::new(Code::RunNotOver, format!("run `{run}` is not over; compare it later")));
    }
    Ok(found)
}

fn side(found: &RunWithBenchmarks) -> ComparedRun {
    ComparedRun {
        id: found.run.spec.id,
        model: found.run.spec.model.qualified(),
        thinking_level: found.run.spec.generation.thinking_level(),
        endpoint_host: found.run.spec.model.endpoint_host.clone(),
        agent: agent(&found.run.spec),
        status: found.run.state.status().to_string(),
        overall_score: found.run.state.overall_score(),
        overall_score_label: found.overall_score_label(),
        rejudges: found.run.spec.rejudges.map(RejudgesView::from),
    }
}

/// Returns the agent that asked the model in a run's episodes.
fn agent(spec: &RunSpec) -> Option<String> {
    // Conversations have an agent of their own.
    let is_conversation = |name: &BenchmarkName| {
        bench_benchmarks::find(name.as_str()).is_some_and(|benchmark| benchmark.dialogue().is_some())
    };
    let benchmark = spec.benchmarks.iter().find(|name| has_agent_in(spec, name) && !is_conversation(name))?;
    let choice = agent_choice(&spec.model.provider, spec.options.get(benchmark));
    choice.agent.asks_model().then(|| choice.agent.to_string())
}

async fn compare_benchmarks(
    api: &Api,
    (run_a, a): (&RunWithBenchmarks, &BenchmarkRecord),
    (run_b, b): (&RunWithBenchmarks, &BenchmarkRecord),
) -> Result<BenchmarkComparison, ApiError> {
    let compared = api.state.compare_benchmarks((run_a.run.spec.id, a), (run_b.run.spec.id, b)).await;
    let ComparisonResult { same_dataset, mut same_protocol, same_judge, mut warnings, paired } = compared
        .map_err(|error| match error {
            CompareError::State(error) => error.into(),
            too_many @ CompareError::TooMany { .. } => {
                ApiError::new(Code::ComparisonTooLarge, too_many.to_string())
            }
        })?;
    if let Some(warning) = user_difference(&run_a.run.spec, &run_b.run.spec, &a.name) {
        same_protocol = false;
        warnings.insert(0, warning);
    }
    let dataset =
        |record: &BenchmarkRecord| record.plan.as_ref().map(|plan| DatasetView::from(&plan.dataset));
    let (dataset_a, dataset_b) = (dataset(a), dataset(b));
    let protocol = |record: &BenchmarkRecord| {
        let name = record.plan.as_ref().map(|plan| plan.protocol_name.clone());
        name.filter(|name| !name.is_empty())
    };
    let source = |record: &BenchmarkRecord| record.plan.as_ref().map(|plan| plan.prompt_source.clone());
    let judge = |record: &BenchmarkRecord| Some(JudgeView::from(record.plan.as_ref()?.judge.as_ref()?));
    let coverage = |record: &BenchmarkRecord| record.state.report().map(|report| report.coverage);
    let score = |record: &BenchmarkRecord| record.state.report().and_then(|report| report.score);
    let is_share = bench_benchmarks::find_for_run(&run_a.run.spec, &a.name)
        .is_some_and(|known| known.scores_are_shares());
    let paired = if is_share { paired.with_clamped_interval() } else { paired };
    Ok(BenchmarkComparison {
        benchmark_name: a.name.to_string(),
        score_a: score(a),
        score_b: score(b),
        coverage_a: coverage(a),
        coverage_b: coverage(b),
        dataset_a,
        dataset_b,
        protocol_a: protocol(a),
        protocol_b: protocol(b),
        prompt_source_a: source(a),
        prompt_source_b: source(b),
        judge_a: judge(a),
        judge_b: judge(b),
        same_dataset,
        same_protocol,
        same_judge,
        warnings,
        paired: paired.into(),
    })
}

/// Describes the user simulators of two runs of conversations that differ; `None` if they are the same, or for other benchmarks.
fn user_difference(a: &RunSpec, b: &RunSpec, benchmark: &BenchmarkName) -> Option<String> {
    bench_benchmarks::find(benchmark.as_str())?.dialogue()?;
    let name = |spec: &RunSpec| match &spec.user {
        Some(user) => user.model.name_with_host(),
        None => "none".to_owned(),
    };
    let settings = |spec: &RunSpec| spec.user.as_ref().map(|user| user.generation.clone());
    let (name_a, name_b) = (name(a), name(b));
    if name_a != name_b {
        return Some(format!("The runs had different user models: {name_a} and {name_b}."));
    }
    (settings(a) != settings(b)).then(|| format!("The user model {name_a} had different settings."))
}

fn planned(benchmark: &BenchmarkRecord) -> u64 {
    benchmark.plan.as_ref().map_or(0, bench_domain::run::Plan::samples)
}

#[cfg(test)]
mod tests {
    use bench_domain::run::{AuthMode, Owner};
    use bench_domain::{ModelId, RunId, Subset, Timestamp};
    use serde_json::{Value, json};

    use super::*;

    fn spec(user: Option<(&str, f64)>) -> RunSpec {
        let model = |name: &str| json!({ "id": ModelId::from_name("openrouter", name), "provider": "openrouter", "slug": name });
        let user = user.map_or(Value::Null, |(name, temperature)| {
            json!({ "model": model(name), "auth": AuthMode::System, "generation": { "temperature": temperature } })
        });
        let spec = json!({
            "id": RunId::random(), "benchmarks": ["tau_bench_telecom"], "selected_benchmarks": null,
            "model": model("a"), "user": user, "subset": Subset::default(), "owner": Owner::Local,
            "auth": AuthMode::System, "coverage_min": 0.9, "software": "0.1.0", "created_at": Timestamp::default(),
        });
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn user_models_that_differ_are_named() {
        let between =
            |a, b, benchmark: &str| user_difference(&spec(a), &spec(b), &benchmark.parse().unwrap());
        let talks = |a, b| between(a, b, "tau_bench_telecom");
        let (u, v) = (Some(("u", 0.0)), Some(("v", 0.0)));
        assert_eq!(talks(u, u), None);
        assert_eq!(
            talks(u, v).unwrap(),
            "The runs had different user models: openrouter/u and openrouter/v."
        );
        assert_eq!(talks(u, None).unwrap(), "The runs had different user models: openrouter/u and none.");
        let warmer = Some(("u", 1.0));
        assert_eq!(talks(u, warmer).unwrap(), "The user model openrouter/u had different settings.");
        // Without conversations, it has no effect.
        assert_eq!(between(u, v, "mmlu_pro"), None);
    }
}
