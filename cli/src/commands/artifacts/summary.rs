//! `summary.json`: settings, counts and metrics of a run's attempts, under the names that the reference harness gives them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::code::{Attempts, NO_LEVEL, Prices, round_usd};
use crate::episodes::Episode;

/// Status of an attempt that has no grade because of a failure of ours or the provider's. It doesn't count.
const API_ERROR: &str = "api_error";
/// Status of an attempt that hasn't ended. It doesn't count either.
const PENDING: &str = "pending";

/// Numbers of a task's attempts that have a grade, and of those that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    graded: u32,
    passed: u32,
}

/// Returns the probability that at least one of `k` attempts passes, chosen from those of a task.
fn pass_at(k: u32, Count { graded, passed }: Count) -> f64 {
    let k = k.clamp(1, graded.max(1));
    let failed = graded.saturating_sub(passed);
    if passed == 0 {
        return 0.0;
    }
    // The probability that all `k` are among the failed ones.
    let none: f64 = (0..k)
        .map(|drawn| f64::from(failed.saturating_sub(drawn)) / f64::from(graded.saturating_sub(drawn).max(1)))
        .product();
    1.0 - none
}

/// Returns the summary of all attempts in a folder.
pub(super) fn summary(attempts: &Attempts, samples: &[&Episode], out: &Path) -> Value {
    let view = attempts.view();
    let text = |pointer: &str| view.pointer(pointer).cloned().unwrap_or_default();
    let options = &view["benchmark_options"]["code_lab"];
    let statuses: Vec<&str> = samples.iter().map(|sample| super::code::status(sample)).collect();
    let count = |wanted: &str| statuses.iter().filter(|status| **status == wanted).count();
    let mut tasks: Vec<&str> = samples.iter().map(|sample| sample.task()).collect();
    tasks.dedup();
    let mut status_counts = BTreeMap::<&str, u64>::new();
    let mut task_status = BTreeMap::<&str, &str>::new();
    let mut counts = BTreeMap::<&str, Count>::new();
    for (sample, status) in samples.iter().zip(&statuses) {
        *status_counts.entry(status).or_default() += 1;
        task_status.insert(sample.task(), status);
        if ![API_ERROR, PENDING].contains(status) {
            let count = counts.entry(sample.task()).or_default();
            count.graded += 1;
            count.passed += u32::from(*status == "passed");
        }
    }
    let per_item = samples.iter().map(|sample| sample.sample.saturating_add(1)).max().unwrap_or(1);
    let mean = |k: u32| {
        let each: Vec<f64> = counts.values().map(|count| pass_at(k, *count)).collect();
        (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
    };
    let (first, any) = (mean(1), mean(per_item));
    let total = counts.values().fold(Count::default(), |all, one| Count {
        graded: all.graded + one.graded,
        passed: all.passed + one.passed,
    });
    let success = (total.graded > 0).then(|| f64::from(total.passed) / f64::from(total.graded));
    let (model, level) = (attempts.model(), attempts.level());
    let errors = count(API_ERROR);
    let of_model = |value: Value| Value::Object(Map::from_iter([(model.to_owned(), value)]));
    let by_level = json!({
        "attempts": total.graded, "attempts_including_api_errors": samples.len(), "passed": count("passed"),
        "failed": count("failed"), "error": count("error"), "api_error": errors,
        "model_attempt_success": success, "model_accuracy": any, "pass_at_1": first, "pass_at_k": any,
    });
    let latency: u64 = samples.iter().filter_map(|sample| sample.latency_ms).sum();
    let tokens =
        |each: fn(&Episode) -> Option<u64>| samples.iter().filter_map(|sample| each(sample)).sum::<u64>();
    json!({
        "timestamp_utc": view["created_at"],
        "run_id": view["id"],
        "run_dir": out,
        "run_dir_relative_to_output": ".",
        "output_dir": out,
        "tasks": tasks,
        "models": [model],
        "provider": view["provider"],
        "samples": per_item,
        "temperature": text("/generation/temperature"),
        "max_tokens": text("/generation/max_tokens"),
        "include_tests": options["include_tests"] == "true",
        // Declared packages are installed before, changes are applied exactly, and a reply is never completed.
        "install_deps": false,
        "allow_incomplete_diffs": false,
        "allow_diff_rewrite_fallback": false,
        "thinking_level": (level != NO_LEVEL).then_some(level),
        "sweep_thinking_levels": false,
        "include_thinking_variants": false,
        "requested_models": [model],
        "attempts": samples.iter().map(|sample| attempts.facts(sample)).collect::<Vec<_>>(),
        "patch_fallbacks_used": [],
        "status_counts": status_counts,
        "model_status_counts": of_model(json!(status_counts)),
        "task_status": task_status,
        "attempt_manifest": samples.iter().map(|sample| attempts.manifest(sample)).collect::<Vec<_>>(),
        "metrics": {
            "pass_at_1": of_model(json!(first)),
            "pass_at_k": of_model(json!(any)),
            "model_accuracy": of_model(json!(any)),
            "model_attempt_success": of_model(json!(success)),
            "overall": { "macro_model_accuracy": any, "macro_attempt_success": success },
            "api_errors_excluded": errors,
            "api_errors_by_model": of_model(json!(errors)),
        },
        "metrics_by_thinking_level": of_model(json!({ level: by_level })),
        "timing": {
            "total_duration_seconds": seconds_between(&view["started_at"], &view["completed_at"]),
            "total_api_latency_seconds": latency as f64 / 1e3,
        },
        "token_usage": {
            "prompt_tokens": tokens(|sample| sample.input_tokens),
            "completion_tokens": tokens(|sample| sample.output_tokens),
            "total_cost_usd": view.pointer("/cost/total_usd").and_then(Value::as_f64).map(round_usd),
        },
        // US dollars per token.
        "pricing": attempts.prices().map_or_else(|| json!({}), |Prices { prompt, completion }| {
            of_model(json!({ "prompt": prompt, "completion": completion }))
        }),
    })
}

fn seconds_between(from: &Value, to: &Value) -> Option<f64> {
    let time = |value: &Value| value.as_str()?.parse::<jiff::Timestamp>().ok();
    let between = time(to)?.duration_since(time(from)?);
    Some(between.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_that_one_of_several_attempts_passes() {
        let of = |graded, passed| Count { graded, passed };
        for (k, count, expected) in [
            (1, of(4, 1), 0.25),
            (2, of(4, 1), 0.5),
            (2, of(4, 2), 1.0 - 1.0 / 6.0),
            (4, of(4, 1), 1.0),
            (9, of(4, 1), 1.0),
            (3, of(4, 0), 0.0),
            (1, of(0, 0), 0.0),
            (1, of(1, 1), 1.0),
        ] {
            assert!((pass_at(k, count) - expected).abs() < 1e-12, "{k} {count:?}: {}", pass_at(k, count));
        }
    }
}
