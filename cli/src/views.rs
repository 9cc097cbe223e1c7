//! Views of API responses, limited to the fields that are shown. Fields that older or compatible servers lack have
//! defaults.

mod benchmark;
mod judging;
mod waiting;

use bench_domain::{Agent, Code, Price, RunLimits, RunStatus, Timestamp, Visibility, code};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::causes::readable;

use benchmark::BenchmarkSummary;
pub(crate) use benchmark::{Benchmark, Dataset, Interval};
pub(crate) use judging::{Judge, JudgedBenchmark, Judgings, OrderedJudge, Rejudges};
pub(crate) use waiting::Waiting;

/// Run as returned by `/api/runs/{id}`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) status: RunStatus,
    model_slug: String,
    provider: String,
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) notes: Option<String>,
    #[serde(default)]
    pub(crate) visibility: Visibility,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    endpoint_host: Option<String>,
    #[serde(default)]
    pub(crate) overall_score: Option<f64>,
    #[serde(default)]
    overall_score_label: Option<String>,
    #[serde(default)]
    pub(crate) error_message: Option<String>,
    #[serde(default)]
    pub(crate) subset_pct: u32,
    #[serde(default)]
    pub(crate) subset_count: Option<u64>,
    #[serde(default)]
    pub(crate) subset_seed: Option<String>,
    pub(crate) created_at: Timestamp,
    #[serde(default)]
    pub(crate) started_at: Option<Timestamp>,
    #[serde(default)]
    pub(crate) completed_at: Option<Timestamp>,
    #[serde(default)]
    pub(crate) coverage: Option<f64>,
    #[serde(default)]
    pub(crate) demo: bool,
    #[serde(default)]
    pub(crate) queue_position: Option<u64>,
    #[serde(default)]
    pub(crate) cost: Option<Cost>,
    #[serde(default)]
    pub(crate) failure_reason: Option<String>,
    /// Code of `error_message`; `None` if it was stored without a code.
    #[serde(default, deserialize_with = "code::deserialize_known")]
    pub(crate) error_code: Option<Code>,
    #[serde(default)]
    pub(crate) budget: Option<Limits>,
    #[serde(default)]
    pub(crate) spent: Option<Spent>,
    /// Items that the order names, instead of a subset.
    #[serde(default)]
    pub(crate) items: Option<Vec<String>>,
    /// Samples per item, if ordered.
    #[serde(default)]
    pub(crate) samples: Option<u32>,
    /// The first tasks of a run of terminal tasks, as `NAME@HASH12`; `None` for other runs, and before it is planned.
    #[serde(default)]
    pub(crate) tasks: Option<Vec<String>>,
    #[serde(default)]
    generation: Option<Thinking>,
    #[serde(default)]
    pub(crate) limits: Option<RunLimits>,
    #[serde(default)]
    pub(crate) judge: Option<OrderedJudge>,
    #[serde(default)]
    pub(crate) user_model: Option<OrderedJudge>,
    #[serde(default)]
    pub(crate) rejudges: Option<Rejudges>,
    /// True if the run is open, but no process works on it until it is resumed.
    #[serde(default)]
    pub(crate) interrupted: bool,
    /// Number of samples in progress at once when a command worked on the run last.
    #[serde(default)]
    pub(crate) concurrency: Option<u32>,
    /// Wait for a provider that limits the rate of requests or isn't available.
    #[serde(default)]
    pub(crate) waiting: Option<Waiting>,
    pub(crate) benchmarks: Vec<Benchmark>,
}

/// Thinking among the ordered generation settings.
#[derive(Debug, Clone, Deserialize)]
struct Thinking {
    #[serde(default)]
    reasoning_effort: Option<String>,
    #[serde(default)]
    thinking_budget: Option<u32>,
}

/// Budget of a run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Limits {
    #[serde(default)]
    pub(crate) usd: Option<f64>,
    #[serde(default)]
    pub(crate) tokens: Option<u64>,
}

/// Tokens and dollars that a run has spent.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) tokens: u64,
    #[serde(default)]
    pub(crate) usd: Option<f64>,
    #[serde(default)]
    pub(crate) estimated_tokens: u64,
}

/// Cost of tokens, in US dollars.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) total_usd: f64,
    #[serde(default)]
    input_usd: f64,
    #[serde(default)]
    output_usd: f64,
}

impl Cost {
    /// Returns the price at which these tokens have this cost; `None` if it doesn't follow from them.
    #[allow(clippy::cast_precision_loss)] // counts of tokens are far below 2^53
    pub(crate) fn price(&self, input_tokens: u64, output_tokens: u64) -> Option<Price> {
        let per_million = |usd: f64, tokens: u64| (tokens > 0).then(|| usd * 1_000_000.0 / tokens as f64);
        Price::new(per_million(self.input_usd, input_tokens)?, per_million(self.output_usd, output_tokens)?)
    }
}

/// A page of runs.
#[derive(Debug, Deserialize)]
pub(crate) struct RunsPage {
    pub(crate) runs: Vec<Run>,
    pub(crate) total: u64,
}

/// Run as printed by `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct RunSummary<'a> {
    id: &'a str,
    status: RunStatus,
    name: Option<&'a str>,
    tags: &'a [String],
    notes: Option<&'a str>,
    visibility: Visibility,
    model: String,
    /// Effort or budget of the model's thinking, if ordered.
    thinking_level: Option<String>,
    endpoint_host: Option<&'a str>,
    /// The first tasks of a run of terminal tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<&'a [String]>,
    /// Names only. `results` has the scores.
    benchmarks: Vec<&'a str>,
    score: Option<f64>,
    /// `score of mmlu_pro` or `mean of 3 benchmark scores`.
    score_label: Option<&'a str>,
    coverage: Option<f64>,
    demo: bool,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    error: Option<&'a str>,
    error_code: Option<Code>,
    failure_reason: Option<&'a str>,
    budget: Option<Limits>,
    spent: Option<Spent>,
    rejudges: Option<&'a Rejudges>,
    interrupted: bool,
    waiting: Option<&'a Waiting>,
    results: Vec<BenchmarkSummary<'a>>,
}

/// Returns what stands in the place of a model: `agent` for an agent that asks none and works on all these benchmarks.
pub(crate) fn model_label<'a>(model: &str, benchmarks: impl IntoIterator<Item = &'a str>) -> &'static str {
    let is_agent = Agent::in_place_of_model(model).is_some();
    let mut benchmarks = benchmarks.into_iter().peekable();
    let has_episodes = |name: &str| bench_benchmarks::find(name).is_some_and(|found| found.has_agent());
    match is_agent && benchmarks.peek().is_some() && benchmarks.all(has_episodes) {
        true => "agent",
        false => "model",
    }
}

impl Run {
    /// Returns the model's name with the host that answers for it, if the server gives the host, and its thinking level, if
    /// ordered.
    pub(crate) fn located_model(&self) -> String {
        self.with_level(bench_domain::run::name_with_host(&self.model(), self.endpoint_host.as_deref()))
    }

    /// Returns the model's name with its thinking level, if ordered: two levels of a model are two results.
    pub(crate) fn leveled_model(&self) -> String {
        self.with_level(self.model())
    }

    /// Adds the thinking level to a name of the model.
    pub(crate) fn with_level(&self, model: String) -> String {
        match self.thinking_level() {
            Some(level) => format!("{model} (thinking {level})"),
            None => model,
        }
    }

    /// Returns the effort or the budget of the model's thinking that was ordered.
    pub(crate) fn thinking_level(&self) -> Option<String> {
        let Thinking { reasoning_effort, thinking_budget } = self.generation.as_ref()?;
        thinking_budget.map(|tokens| format!("{tokens} tokens")).or_else(|| reasoning_effort.clone())
    }

    /// Returns what [`Self::located_model`] is: `model`, or `agent` in a run of episodes that ask no model.
    pub(crate) fn model_label(&self) -> &'static str {
        model_label(&self.model(), self.benchmarks.iter().map(|benchmark| benchmark.benchmark_name.as_str()))
    }

    /// Returns the host that answers for the model, if the server gives it.
    pub(crate) fn endpoint_host(&self) -> Option<&str> {
        self.endpoint_host.as_deref()
    }

    /// Returns the overall score. In a run of several benchmarks it includes a label, since a mean of scores of
    /// different benchmarks is not a score of any of them. Benchmarks without a score don't count.
    pub(crate) fn overall(&self) -> String {
        let score = crate::format::percent(self.overall_score);
        match &self.overall_score_label {
            Some(label) if self.overall_score.is_some() && self.benchmarks.len() > 1 => {
                format!("{score} ({label})")
            }
            _ => score,
        }
    }

    /// Returns the model as `--model` takes it.
    pub(crate) fn model(&self) -> String {
        match &self.model {
            Some(model) => model.clone(),
            None => format!("{}/{}", self.provider, self.model_slug),
        }
    }

    /// Returns true if agents work on items of the run.
    pub(crate) fn has_episodes(&self) -> bool {
        self.benchmarks.iter().any(Benchmark::has_agent)
    }

    /// Returns name, tags and notes that the run has, and its visibility if it isn't public, each with what it is.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&'static str, String)> {
        let tags = (!self.tags.is_empty()).then(|| self.tags.join(", "));
        let visibility = (!self.visibility.is_public()).then(|| self.visibility.to_string());
        let labels = [
            ("name", self.name.clone()),
            ("tags", tags),
            ("visibility", visibility),
            ("notes", self.notes.clone()),
        ];
        labels.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// Returns the reason why the run failed, for people, and the advice in it. A run that a provider refused has
    /// advice, which follows the reason after a semicolon.
    pub(crate) fn error_and_advice(&self) -> Option<(String, Option<String>)> {
        let error = self.error_message.as_deref()?;
        let parts = error.rsplit_once("; ").filter(|_| self.is_refused());
        Some(match parts {
            Some((error, advice)) => (readable(error).into_owned(), Some(advice.to_owned())),
            None => (readable(error).into_owned(), None),
        })
    }

    /// Returns the benchmark's error for people, unless the run's error already says it or is its reason: without
    /// answers, a benchmark has no score.
    pub(crate) fn own_error(&self, benchmark: &Benchmark) -> Option<String> {
        let error = benchmark.error_message.as_deref()?;
        let is_said = self.error_message.as_ref().is_some_and(|of_run| of_run.contains(error));
        (!is_said && !self.is_refused()).then(|| readable(error).into_owned())
    }

    /// Returns true if the run was stopped because its provider refused its requests.
    pub(crate) fn is_refused(&self) -> bool {
        self.failure_reason.as_deref() == Some("refused")
    }

    /// Returns the provider's name.
    pub(crate) fn provider(&self) -> &str {
        &self.provider
    }

    /// Returns the model's name at its provider, for narrow columns.
    pub(crate) fn model_slug(&self) -> &str {
        &self.model_slug
    }

    /// Returns the number of samples that ended with an infrastructure-error.
    pub(crate) fn infrastructure_errors(&self) -> u64 {
        self.benchmarks.iter().map(Benchmark::infrastructure_errors).sum()
    }

    /// Returns true if the run won't change any more. A run that was stopped by its budget or by refusals still
    /// receives the answers that were in progress, until its benchmarks are closed.
    pub(crate) fn is_over(&self) -> bool {
        let awaits_answers = self.failure_reason.is_some() && self.has_open_benchmarks();
        !self.status.is_open() && !awaits_answers
    }

    /// Returns true if the run is over and its benchmarks are closed. After a failure or cancellation, they close soon.
    pub(crate) fn is_settled(&self) -> bool {
        !self.status.is_open() && !self.has_open_benchmarks()
    }

    fn has_open_benchmarks(&self) -> bool {
        self.benchmarks.iter().any(|benchmark| matches!(benchmark.status.as_str(), "pending" | "running"))
    }

    /// Returns the summary for `--json`.
    pub(crate) fn summary(&self) -> RunSummary<'_> {
        RunSummary {
            id: &self.id,
            status: self.status,
            name: self.name.as_deref(),
            tags: &self.tags,
            notes: self.notes.as_deref(),
            visibility: self.visibility,
            model: self.model(),
            thinking_level: self.thinking_level(),
            endpoint_host: self.endpoint_host.as_deref(),
            tasks: self.tasks.as_deref(),
            benchmarks: self.benchmarks.iter().map(|benchmark| benchmark.benchmark_name.as_str()).collect(),
            score: self.overall_score,
            score_label: self.overall_score_label.as_deref(),
            coverage: self.coverage,
            demo: self.demo,
            created_at: self.created_at,
            started_at: self.started_at,
            completed_at: self.completed_at,
            error: self.error_message.as_deref(),
            error_code: self.error_code,
            failure_reason: self.failure_reason.as_deref(),
            budget: self.budget,
            spent: self.spent,
            rejudges: self.rejudges.as_ref(),
            interrupted: self.interrupted,
            waiting: self.waiting.as_ref(),
            results: self.benchmarks.iter().map(Benchmark::summary).collect(),
        }
    }
}

/// A sample of `/api/runs/{id}/benchmarks/{name}`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Item {
    /// Name of the benchmark, which the command adds.
    #[serde(default)]
    pub(crate) benchmark: String,
    pub(crate) item_id: String,
    #[serde(default)]
    pub(crate) source_id: Option<String>,
    #[serde(default)]
    pub(crate) sample: u32,
    #[serde(default)]
    pub(crate) group: Option<String>,
    #[serde(default)]
    pub(crate) outcome: Option<String>,
    pub(crate) score: Option<f64>,
    #[serde(default)]
    pub(crate) extracted: Option<String>,
    pub(crate) expected: Option<String>,
    pub(crate) latency_ms: Option<u64>,
    #[serde(default)]
    pub(crate) reason: Option<String>,
    pub(crate) error: Option<String>,
    /// `None` for a sample that hasn't ended.
    #[serde(default)]
    pub(crate) detail: Option<Map<String, Value>>,
}

/// An event of `/api/runs/{id}/events`.
#[derive(Debug, Deserialize)]
pub(crate) struct Event {
    #[serde(default)]
    pub(crate) sequence: u64,
    pub(crate) event_type: String,
    pub(crate) benchmark_name: Option<String>,
    pub(crate) message: String,
    pub(crate) created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The compatible system's response has none of our own fields.
    #[test]
    fn a_run_of_the_compatible_system_is_understood() {
        let run: Run = serde_json::from_value(json!({
            "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "model_id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f91",
            "model_slug": "a/b", "provider": "chutes", "subset_pct": 50, "subset_count": null, "subset_seed": null,
            "status": "succeeded", "selected_benchmarks": null, "overall_score": 0.5, "error_message": null,
            "provider_metadata": null, "started_at": null, "completed_at": null,
            "created_at": "2026-01-02T03:04:05.000001",
            "benchmarks": [{"id": "x", "benchmark_name": "mmlu_pro", "status": "succeeded", "total_items": 10,
                "completed_items": 5, "sampled_items": 5, "score": 0.5, "metrics": {"accuracy": 0.5},
                "error_message": null, "started_at": null, "completed_at": null}]
        }))
        .unwrap();
        let summary = serde_json::to_value(run.summary()).unwrap();
        assert_eq!(summary["model"], "chutes/a/b");
        assert_eq!(summary["benchmarks"], json!(["mmlu_pro"]));
        assert_eq!(summary["score"], 0.5);
        assert_eq!(summary["coverage"], Value::Null);
    }

    #[test]
    fn a_custom_agent_stands_in_the_place_of_the_model() {
        let run: Run = serde_json::from_value(json!({
            "id": "r", "status": "failed", "model_slug": "tiny@1", "model": "custom/tiny@1", "provider": "custom",
            "created_at": "2026-01-02T03:04:05.000001",
            "benchmarks": [{ "benchmark_name": "terminal_tasks", "status": "failed",
                "options": { "agent": "custom", "agent.content_hash": "0a" } }],
        }))
        .unwrap();
        assert_eq!((run.model().as_str(), run.model_label()), ("custom/tiny@1", "agent"));
        assert_eq!(run.benchmarks[0].agent(), None);
    }

    #[test]
    fn an_error_is_told_once_with_its_advice_apart() {
        let run = |reason: Option<&str>, error: &str, of_benchmark: &str| -> Run {
            serde_json::from_value(json!({
                "id": "r", "status": "failed", "model_slug": "m", "provider": "chutes",
                "created_at": "2026-01-02T03:04:05Z", "failure_reason": reason, "error_message": error,
                "benchmarks": [{ "benchmark_name": "hle", "status": "failed", "error_message": of_benchmark }],
            }))
            .unwrap()
        };
        let body = r#"HTTP 400 from X: {"error":{"message":"no; never"}}"#;
        let refused = run(Some("refused"), &format!("refused: {body}; use `--omit temperature`"), body);
        assert_eq!(
            refused.error_and_advice(),
            Some(("refused: HTTP 400 from X: no; never".into(), Some("use `--omit temperature`".into())))
        );
        assert_eq!(refused.own_error(&refused.benchmarks[0]), None);
        let other = run(None, "no key; no run", body);
        assert_eq!(other.error_and_advice(), Some(("no key; no run".into(), None)));
        assert_eq!(other.own_error(&other.benchmarks[0]).as_deref(), Some("HTTP 400 from X: no; never"));
    }

    #[test]
    fn an_overall_score_says_what_it_is_where_a_run_has_several_benchmarks() {
        let overall = |benchmarks: &[&str], label: Option<&str>| {
            let benchmarks: Vec<Value> = benchmarks
                .iter()
                .map(|name| json!({ "benchmark_name": name, "status": "succeeded" }))
                .collect();
            let run = json!({
                "id": "r", "status": "succeeded", "model_slug": "m", "provider": "chutes",
                "created_at": "2026-01-02T03:04:05Z", "overall_score": 0.5, "overall_score_label": label,
                "benchmarks": benchmarks,
            });
            serde_json::from_value::<Run>(run).unwrap().overall()
        };
        assert_eq!(overall(&["hle"], Some("score of hle")), "50.0%");
        let three = ["hle", "mmlu_pro", "ifbench"];
        // One of the three has no score.
        let label = "mean of 2 benchmark scores";
        assert_eq!(overall(&three, Some(label)), "50.0% (mean of 2 benchmark scores)");
        assert_eq!(overall(&three, Some("score of hle")), "50.0% (score of hle)");
        assert_eq!(overall(&three, None), "50.0%", "an older server sends no label");
    }
}
