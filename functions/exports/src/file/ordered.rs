//! What was ordered, as results and manifest have it.

use bench_domain::{RunSpec, RunTemplate, Subset};
use serde_json::{Map, Value, json};

use crate::file::results::{generation, object};

/// What was sampled and how, under the same names in the run of `results.json` and in `sampling` of the manifest.
pub(crate) fn ordered(spec: &RunSpec) -> Map<String, Value> {
    // Named one by one: a new field is told here, or is left out on purpose.
    let RunTemplate {
        model: _,
        benchmarks: _,
        selected_benchmarks: _,
        subset: Subset { pct, count, seed },
        items: _,
        item_naming: _,
        samples,
        generation: answers,
        datasets: _,
        protocols,
        options: _,
        judge,
        config: _,
        coverage_min: _,
        price: _,
        budget: _,
    } = &spec.template;
    object(json!({
        "subset_pct": pct,
        "subset_count": count,
        "subset_seed": seed,
        "samples": samples,
        "generation": generation(answers),
        "protocols": protocols,
        // Without its address but for the host.
        "judge": judge.as_ref().map(|judge| json!({
            "model": judge.model.qualified(),
            "endpoint_host": judge.model.endpoint_host,
            "generation": generation(&judge.generation),
            "price": judge.price,
        })),
    }))
}
