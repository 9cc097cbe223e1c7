//! The ordered settings, for results and manifest.

use bench_domain::{RunSpec, RunTemplate, Subset};
use serde_json::{Map, Value, json};

use crate::file::results::{generation, object};

/// Returns the ordered sampling settings. The run in `results.json` and `sampling` in the manifest use the same names.
pub(crate) fn ordered(spec: &RunSpec) -> Map<String, Value> {
    // Every field is listed: a new one must be added here or left out on purpose.
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
        user,
        config: _,
        coverage_min: _,
        price: _,
        budget: _,
        // They may change after the export was signed, and a file must stay the same for one version of a run.
        labels: _,
        limits,
    } = &spec.template;
    let mut fields = object(json!({
        "subset_pct": pct,
        "subset_count": count,
        "subset_seed": seed,
        "samples": samples,
        "generation": generation(answers),
        "protocols": protocols,
        // Contains the host of the base URL, but not the URL.
        "judge": judge.as_ref().map(|judge| json!({
            "model": judge.model.qualified(),
            "endpoint_host": judge.model.endpoint_host,
            "generation": generation(&judge.generation),
            "price": judge.price,
        })),
    }));
    // Written only with one, so that archives of other runs keep their bytes.
    if let Some(user) = user {
        let user = json!({
            "model": user.model.qualified(),
            "endpoint_host": user.model.endpoint_host,
            "generation": generation(&user.generation),
            "price": user.price,
        });
        fields.insert("user_model".to_owned(), user);
    }
    // Written only if set, so that archives of runs without limits keep their bytes.
    if limits.is_set() {
        fields.insert("limits".to_owned(), json!(limits));
    }
    fields
}
