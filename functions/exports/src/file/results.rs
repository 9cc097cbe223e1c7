//! `results.json` of the signed archive, written as a stream.

use std::io::Write;

use bench_domain::{Generation, Timestamp};
use bench_signing::{CanonicalError, CanonicalStream, SCHEMA_VERSION};
use bench_state::RunRecord;
use bench_web::views::{JudgeView, metrics};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::context::ExportsConfig;
use crate::file::facts::{BenchmarkFacts, RunFacts};
use crate::file::item::ItemRow;
use crate::file::ordered::ordered;

/// Notice wherever a result uses demo data.
pub(crate) const DEMO_NOTICE: &str =
    "DEMO DATA: these items came with the program. The scores say nothing about the real benchmark.";

/// Writes the document incrementally, in the order of its keys: benchmarks with their items, then the run.
pub(crate) struct ResultsWriter<W: Write> {
    stream: CanonicalStream<W>,
    /// Item ids of the current benchmark, written after its items.
    item_ids: Vec<String>,
}

impl<W: Write> ResultsWriter<W> {
    pub(crate) fn begin(output: W) -> Result<Self, CanonicalError> {
        let mut stream = CanonicalStream::new(output);
        stream.begin_object()?;
        stream.key("benchmarks")?;
        stream.begin_array()?;
        Ok(Self { stream, item_ids: Vec::new() })
    }

    pub(crate) fn begin_benchmark(
        &mut self,
        benchmark: &BenchmarkFacts,
        run: &RunFacts,
    ) -> Result<(), CanonicalError> {
        self.item_ids.clear();
        self.stream.begin_object()?;
        self.fields(benchmark_fields(benchmark, &run.run), |key| key < "items")?;
        self.stream.key("items")?;
        self.stream.begin_array()
    }

    pub(crate) fn item(&mut self, item: &ItemRow) -> Result<(), CanonicalError> {
        if item.view.sample == 0 {
            self.item_ids.push(item.view.item_id.clone());
        }
        self.stream.value(item)
    }

    pub(crate) fn end_benchmark(
        &mut self,
        benchmark: &BenchmarkFacts,
        run: &RunFacts,
    ) -> Result<(), CanonicalError> {
        self.stream.end_array()?;
        let mut fields = benchmark_fields(benchmark, &run.run);
        let item_ids = std::mem::take(&mut self.item_ids);
        fields
            .insert("sampled_item_ids".to_owned(), benchmark.plan().map_or(Value::Null, |_| item_ids.into()));
        self.fields(fields, |key| key > "items")?;
        self.stream.end_object()
    }

    pub(crate) fn finish(mut self, run: &RunFacts, config: &ExportsConfig) -> Result<W, CanonicalError> {
        self.stream.end_array()?;
        self.stream.field("exported_at", &run.completed_at.whole_seconds())?;
        self.stream.field("run", &run_fields(run, config))?;
        self.stream.field("schema_version", SCHEMA_VERSION)?;
        self.stream.end_object()?;
        self.stream.finish()
    }

    fn fields(
        &mut self,
        fields: Map<String, Value>,
        select: impl Fn(&str) -> bool,
    ) -> Result<(), CanonicalError> {
        let mut fields: Vec<(String, Value)> = fields.into_iter().filter(|(key, _)| select(key)).collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        fields.iter().try_for_each(|(key, value)| self.stream.field(key, value))
    }
}

/// Returns all fields of a benchmark except `items` and `sampled_item_ids`: first those of the compatible
/// system, then additional ones.
fn benchmark_fields(benchmark: &BenchmarkFacts, run: &RunRecord) -> Map<String, Value> {
    let state = &benchmark.record.state;
    let plan = benchmark.plan();
    let report = state.report();
    let mut fields = object(json!({
        "benchmark_name": benchmark.record.name,
        "status": state.status(),
        "score": benchmark.score(),
        "metrics": report.map(|report| metrics(run, &benchmark.record, report)),
        "total_items": plan.map_or(0, |plan| plan.dataset_items),
        "sampled_items": benchmark.items_planned(),
        "completed_items": benchmark.tally.items_done,

        "error_message": state.error(),
        "started_at": state.started_at().map(Timestamp::whole_seconds),
        "completed_at": state.completed_at().map(Timestamp::whole_seconds),
        "coverage": benchmark.coverage(),
        "accuracy_all": benchmark.accuracy_all(),
        "outcomes": benchmark.tally.outcomes,
        "planned_samples": benchmark.samples_planned(),
        "completed_samples": benchmark.tally.samples_done,
        "graded_samples": benchmark.tally.outcomes.graded(),
        "unjudged_samples": benchmark.tally.samples_unjudged,
        "samples_per_item": plan.map(|plan| plan.samples_per_item),
        "dataset": dataset(benchmark),
        "demo": benchmark.is_demo(),
        "protocol": plan.map(|plan| &plan.protocol),
        "protocol_name": protocol_name(benchmark),
        "prompt_digest": plan.map(|plan| &plan.prompt_digest),
        "prompt_source": plan.map(|plan| &plan.prompt_source),
        "templates": plan.map(|plan| &plan.templates),
        "judge": judge(benchmark),
        "generation": plan.map(|plan| generation(&plan.generation)),
        "models_reported": benchmark.tally.models,
    }));
    if let Some(options) = options(benchmark) {
        fields.insert("options".to_owned(), options);
    }
    // Written only if present, so that results under the benchmark's own settings keep their bytes.
    if let Some(changed) = changed_settings(benchmark) {
        fields.insert("changed_settings".to_owned(), changed);
    }
    // Written only if present, so that results without errors keep their bytes.
    if let Some(code) = state.error_code() {
        fields.insert("error_code".to_owned(), json!(code));
    }
    let causes = benchmark.error_causes();
    if !causes.is_empty() {
        fields.insert("error_causes".to_owned(), json!(causes));
    }
    if benchmark.is_demo() {
        fields.insert("demo_notice".to_owned(), DEMO_NOTICE.into());
    }
    let ours = report.map(|report| {
        let mut ours = object(json!({
            "coverage_min": report.coverage_min,
            "score_of_graded": report.score_of_graded,
            "intervals": { "wilson_95": report.wilson_95, "clustered": report.clustered },
            "mean_of_items": report.mean_of_items,
            "pass_at": report.pass_at,
            "pass_hat": report.pass_hat,
            "truncated_answers": report.truncated_answers,
            "usage": report.usage,
            "without_usage": report.without_usage,
            "cost_usd": report.cost.map(|cost| cost.total_usd()),
            "judge_usage": report.judge_usage,
            "judge_cost_usd": report.judge_cost.map(|cost| cost.total_usd()),
            "latency_percentiles_ms": report.latency_ms,
            "groups": report.groups,
        }));
        // Written only if present, so that a run whose tokens were all counted keeps its bytes.
        for (name, spent) in
            [("estimated_tokens", report.spent), ("judge_estimated_tokens", report.judge_spent)]
        {
            if let Some(spent) = spent.filter(|spent| spent.estimated_tokens > 0) {
                ours.insert(name.to_owned(), spent.estimated_tokens.into());
            }
        }
        if let Some(spent) = report.user_spent {
            ours.insert("user_usage".to_owned(), json!(spent));
            ours.insert("user_cost_usd".to_owned(), json!(report.user_cost.map(|cost| cost.total_usd())));
        }
        ours
    });
    fields.extend(ours.unwrap_or_default());
    fields
}

/// Returns the fields of the run: first those of the compatible system, then additional ones. They contain no key,
/// owner or URL. Of the base URL, only the host is included, since the same model name at two hosts may be two models.
fn run_fields(facts: &RunFacts, config: &ExportsConfig) -> Map<String, Value> {
    let run = &facts.run;
    let spec = &run.spec;
    let mut fields = object(json!({
        "id": spec.id,
        "model_id": spec.model.id,
        "model_slug": spec.model.slug,
        "provider": spec.model.provider,
        "status": run.state.status(),
        "selected_benchmarks": spec.selected_benchmarks,
        "overall_score": run.state.overall_score(),
        "error_message": run.state.error(),
        "provider_metadata": null,
        "started_at": run.state.started_at().map(Timestamp::whole_seconds),
        "completed_at": facts.completed_at.whole_seconds(),
        "created_at": spec.created_at.whole_seconds(),
        "code_version": config.software_version,
        "git_sha": config.git_sha,

        "coverage": facts.coverage(),
        "coverage_min": spec.coverage_min,
        "demo": facts.is_demo(),
        "software": software(config),
        "planned_by": spec.software,
        "selected_items": if spec.items.is_empty() { Value::Null } else { json!(spec.items) },
        "rejudges": spec.rejudges,
        "generation_number": run.generation,
        "price": spec.price,
        "budget": spec.budget.is_set().then_some(spec.budget),
        "failure_reason": run.state.failure_reason(),
        "models_reported": facts.models(),
        "endpoint_host": spec.model.endpoint_host,
        "overall_score_label": facts.overall_score_label,
    }));
    fields.extend(ordered(spec));
    // Written only if present, so that runs without an error code keep their bytes.
    if let Some(code) = run.state.error_code() {
        fields.insert("error_code".to_owned(), json!(code));
    }
    if !spec.options.is_empty() {
        fields.insert("benchmark_options".to_owned(), json!(spec.options));
    }
    if facts.is_demo() {
        fields.insert("demo_notice".to_owned(), DEMO_NOTICE.into());
    }
    fields
}

/// Returns the name and version of the program that made the export.
pub(crate) fn software(config: &ExportsConfig) -> Value {
    json!({ "name": "bench-runner", "version": config.software_version, "git_sha": config.git_sha })
}

/// Returns the exact dataset.
pub(crate) fn dataset(benchmark: &BenchmarkFacts) -> Value {
    benchmark.dataset().map_or(Value::Null, |dataset| {
        let mut fields = json!({
            "id": dataset.id,
            "revision": dataset.revision,
            "source": dataset.source,
            "digest": dataset.digest,
            "note": dataset.note,
        });
        if !dataset.attachments.is_empty() {
            let files = dataset.attachments.iter();
            let files =
                files.map(|(name, file)| (name, json!({ "sha256": file.sha256, "bytes": file.bytes })));
            fields["attachments"] = files.map(|(name, file)| (name.clone(), file)).collect();
        }
        fields
    })
}

/// Returns the benchmark options in effect; `None` if the benchmark has none.
pub(crate) fn options(benchmark: &BenchmarkFacts) -> Option<Value> {
    benchmark.plan().filter(|plan| !plan.options.is_empty()).map(|plan| json!(plan.options))
}

/// Describes the settings that differ from the benchmark's own; `None` if none do.
pub(crate) fn changed_settings(benchmark: &BenchmarkFacts) -> Option<Value> {
    let changed = benchmark.plan()?.changed_settings();
    (!changed.is_empty()).then(|| json!(changed))
}

/// Returns the short name of the protocol; `None` for plans of older versions.
pub(crate) fn protocol_name(benchmark: &BenchmarkFacts) -> Option<&str> {
    benchmark.plan().map(|plan| plan.protocol_name.as_str()).filter(|name| !name.is_empty())
}

/// Returns the judge exactly as used; `None` if the benchmark isn't judged.
pub(crate) fn judge(benchmark: &BenchmarkFacts) -> Option<JudgeView> {
    benchmark.plan().and_then(|plan| plan.judge.as_ref()).map(JudgeView::from)
}

/// Returns all sampling settings of the model; null leaves a setting to the provider.
pub(crate) fn generation(generation: &Generation) -> Value {
    json!(generation)
}

/// Serializes a value and returns its fields. A value that isn't a JSON object has none.
pub(crate) fn object(value: impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
