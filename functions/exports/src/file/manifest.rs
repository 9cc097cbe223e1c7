//! Fields of the signed manifest in addition to those of the compatible system.

use bench_domain::ReportedModels;
use serde_json::{Map, Value, json};

use crate::context::ExportsConfig;
use crate::file::facts::{BenchmarkFacts, RunFacts};
use crate::file::ordered::ordered;
use crate::file::results::{
    DEMO_NOTICE, changed_settings, dataset, generation, judge, object, options, protocol_name, software,
};

/// Maximum number of items that the manifest names. If there are more, it has only their number; the results
/// list all of them.
const SELECTED_ITEMS_MAX: usize = 100;

/// Returns the additional fields. No name collides with a field of the compatible system.
pub(crate) fn additional(facts: &RunFacts, config: &ExportsConfig) -> Map<String, Value> {
    let spec = &facts.run.spec;
    let selected = (1..=SELECTED_ITEMS_MAX).contains(&spec.items.len()).then_some(&spec.items);
    let mut sampling = ordered(spec);
    sampling.insert("selected_items".to_owned(), json!(selected));
    sampling.insert("selected_items_count".to_owned(), json!(spec.items.len()));
    let mut fields = object(json!({
        "software": software(config),
        "run_status": facts.run.state.status(),
        "overall_score": facts.run.state.overall_score(),
        "overall_score_label": facts.overall_score_label,
        "coverage": facts.coverage(),
        "coverage_min": spec.coverage_min,
        "demo": facts.is_demo(),
        "model": {
            "provider": spec.model.provider,
            "slug": spec.model.slug,
            "endpoint_host": spec.model.endpoint_host,
            "reported": facts.models().into_iter().take(ReportedModels::MAX).collect::<Vec<_>>(),
        },
        "sampling": sampling,
        "rejudges": spec.rejudges,
        "benchmarks": facts.benchmarks.iter().map(benchmark).collect::<Vec<_>>(),
    }));
    if facts.is_demo() {
        fields.insert("demo_notice".to_owned(), DEMO_NOTICE.into());
    }
    fields
}

fn benchmark(benchmark: &BenchmarkFacts) -> Value {
    let plan = benchmark.plan();
    let mut fields = json!({
        "benchmark_name": benchmark.record.name,
        "status": benchmark.record.state.status(),
        "score": benchmark.score(),
        "coverage": benchmark.coverage(),
        "outcomes": benchmark.tally.outcomes,
        "items": benchmark.items_planned(),
        "samples_per_item": plan.map(|plan| plan.samples_per_item),
        "dataset": dataset(benchmark),
        "demo": benchmark.is_demo(),
        "protocol": plan.map(|plan| &plan.protocol),
        "prompt_digest": plan.map(|plan| &plan.prompt_digest),
        "prompt_source": plan.map(|plan| &plan.prompt_source),
        "protocol_name": protocol_name(benchmark),
        "judge": judge(benchmark),
        "generation": plan.map(|plan| generation(&plan.generation)),
    });
    if let Some(options) = options(benchmark) {
        fields["options"] = options;
    }
    if let Some(changed) = changed_settings(benchmark) {
        fields["changed_settings"] = changed;
    }
    let causes = benchmark.error_causes();
    if !causes.is_empty() {
        fields["error_causes"] = json!(causes);
    }
    fields
}
