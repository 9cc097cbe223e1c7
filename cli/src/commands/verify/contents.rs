//! Facts about scores from a verified archive: a score means nothing without its dataset and protocol.

use console::style;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::show::{benchmark_name, benchmark_names, prompt_of_benchmark};
use crate::{causes, format};

/// Benchmark as described by the signed manifest. Fields that older manifests lack are null.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct BenchmarkFacts {
    benchmark: String,
    status: Option<String>,
    score: Option<f64>,
    coverage: Option<f64>,
    /// True if the items are demo data instead of the real dataset.
    demo: bool,
    /// Id and revision, separated by `@`.
    dataset: Option<String>,
    /// Name of the protocol, including the pinned version.
    protocol: Option<String>,
    protocol_name: Option<String>,
    /// `official` or `own`.
    prompt_source: Option<String>,
    #[serde(skip)]
    prompt_digest: Option<String>,
    judge: Option<JudgedBy>,
    /// Causes of samples that ended as infrastructure-errors, most frequent first.
    error_causes: Vec<Cause>,
}

/// Cause of infrastructure-errors.
#[derive(Debug, PartialEq, Serialize)]
struct Cause {
    message: String,
    count: u64,
}

/// Run as described by the signed manifest.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct RunFacts {
    /// Answer source: `chutes`, `openai-compatible` and so on.
    provider: Option<String>,
    /// Host of the base URL that was called.
    endpoint_host: Option<String>,
    /// Meaning of the overall score: the score of one benchmark, or a mean.
    overall_score_label: Option<String>,
}

impl RunFacts {
    /// Reads a manifest. Fields that older manifests lack stay `None`.
    pub(super) fn from_manifest(manifest: &Map<String, Value>) -> Self {
        let model = manifest.get("model").and_then(Value::as_object);
        Self {
            provider: model.and_then(|model| text(model, "provider")),
            endpoint_host: model.and_then(|model| text(model, "endpoint_host")),
            overall_score_label: text(manifest, "overall_score_label"),
        }
    }

    /// Returns the provider with its host, for people.
    pub(super) fn answered_by(&self) -> Option<String> {
        let provider = self.provider.as_deref()?;
        Some(bench_domain::run::name_with_host(provider, self.endpoint_host.as_deref()))
    }

    /// Returns the overall score with its meaning.
    pub(super) fn score(&self, overall: Option<f64>) -> String {
        match (&self.overall_score_label, overall) {
            (Some(label), Some(_)) => format!("{} ({label})", format::percent(overall)),
            _ => format::percent(overall),
        }
    }
}

/// Judge of the answers.
#[derive(Debug, PartialEq, Serialize)]
struct JudgedBy {
    model: Option<String>,
    endpoint_host: Option<String>,
    version: Option<u64>,
    prompt_source: Option<String>,
}

/// Returns the benchmarks of a manifest, or none if it doesn't list them.
pub(super) fn benchmark_facts(manifest: &Map<String, Value>) -> Vec<BenchmarkFacts> {
    let listed = manifest.get("benchmarks").and_then(Value::as_array);
    let all_demo =
        manifest.get("demo") == Some(&Value::Bool(true)) && listed.is_some_and(|all| all.len() == 1);
    let objects = listed.into_iter().flatten().filter_map(Value::as_object);
    objects.filter_map(|benchmark| one(benchmark, all_demo)).collect()
}

fn one(benchmark: &Map<String, Value>, all_demo: bool) -> Option<BenchmarkFacts> {
    let dataset = benchmark.get("dataset").and_then(Value::as_object);
    let of_dataset = |name: &str| dataset.and_then(|dataset| text(dataset, name));
    let judge = benchmark.get("judge").and_then(Value::as_object);
    Some(BenchmarkFacts {
        benchmark: text(benchmark, "benchmark_name")?,
        status: text(benchmark, "status"),
        score: benchmark.get("score").and_then(Value::as_f64),
        coverage: benchmark.get("coverage").and_then(Value::as_f64),
        demo: all_demo
            || benchmark.get("demo") == Some(&Value::Bool(true))
            || of_dataset("source").as_deref() == Some("demo"),
        dataset: of_dataset("id").map(|id| match of_dataset("revision") {
            Some(revision) => format!("{id}@{revision}"),
            None => id,
        }),
        protocol: text(benchmark, "protocol"),
        protocol_name: text(benchmark, "protocol_name"),
        prompt_source: text(benchmark, "prompt_source"),
        prompt_digest: text(benchmark, "prompt_digest"),
        judge: judge.map(|judge| JudgedBy {
            model: text(judge, "model"),
            endpoint_host: text(judge, "endpoint_host"),
            version: judge.get("version").and_then(Value::as_u64),
            prompt_source: text(judge, "prompt_source"),
        }),
        error_causes: causes(benchmark),
    })
}

fn causes(benchmark: &Map<String, Value>) -> Vec<Cause> {
    let listed = benchmark.get("error_causes").and_then(Value::as_array).into_iter().flatten();
    let cause = |cause: &Value| {
        let cause = cause.as_object()?;
        Some(Cause { message: text(cause, "message")?, count: cause.get("count")?.as_u64()? })
    };
    listed.filter_map(cause).collect()
}

/// Returns a text field without control characters that a terminal would obey.
fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    let text = fields.get(name)?.as_str()?;
    Some(text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect())
}

/// Describes the benchmarks in lines that follow those about the archive.
pub(super) fn describe(all: &[BenchmarkFacts]) -> Vec<String> {
    let mut lines = Vec::new();
    let demo = benchmark_names(all.iter().filter(|one| one.demo).map(|one| one.benchmark.as_str()));
    if !demo.is_empty() {
        let text = format!(
            " DEMO DATA in {}: the items are bundled with the program. The scores say nothing about the real benchmark. ",
            demo
        );
        lines.push(format!("  {}", style(text).yellow().reverse().bold()));
    }
    for one in all {
        lines.push(format!(
            "  {}{}: score {}, coverage {}{}",
            style(benchmark_name(&one.benchmark)).bold(),
            if one.demo { " (DEMO)" } else { "" },
            format::percent(one.score),
            format::percent(one.coverage),
            one.status.as_ref().map(|status| format!(", {status}")).unwrap_or_default()
        ));
        let mut field = |name: &str, value: Option<String>| {
            lines.extend(value.map(|value| format!("    {:<10}{value}", format!("{name}:"))));
        };
        let marked = |dataset: &String| match dataset.strip_prefix("demo@") {
            Some(revision) if one.demo => format!("DEMO@{revision}"),
            _ if one.demo => format!("DEMO {dataset}"),
            _ => dataset.clone(),
        };
        field("dataset", one.dataset.as_ref().map(marked));
        field("protocol", named(one.protocol_name.as_deref(), one.protocol.as_deref()));
        let prompt = one.prompt_source.as_deref();
        let digest = one.prompt_digest.as_deref();
        field("prompt", prompt.and_then(|source| prompt_of_benchmark(&one.benchmark, source, digest)));
        field("judge", one.judge.as_ref().map(judged_by));
        for cause in &one.error_causes {
            field(
                "errors",
                Some(causes::times(cause.count, &causes::one_line(&causes::readable(&cause.message)))),
            );
        }
    }
    lines
}

fn named(name: Option<&str>, protocol: Option<&str>) -> Option<String> {
    match (name, protocol) {
        (Some(name), Some(protocol)) => Some(format!("{name} ({protocol})")),
        (name, protocol) => name.or(protocol).map(str::to_owned),
    }
}

fn judged_by(judge: &JudgedBy) -> String {
    let model = judge.model.as_deref().unwrap_or("unknown");
    let mut text = bench_domain::run::name_with_host(model, judge.endpoint_host.as_deref());
    if let Some(version) = judge.version {
        text = format!("{text}, version {version}");
    }
    match judge.prompt_source.as_deref() {
        Some("own") => format!("{text}, prompt in OWN wording"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts_of(manifest: &Value) -> Vec<BenchmarkFacts> {
        benchmark_facts(manifest.as_object().unwrap())
    }

    #[test]
    fn scores_are_shown_with_dataset_protocol_and_judge() {
        let all = facts_of(&json!({ "demo": true, "benchmarks": [
            { "benchmark_name": "hle", "status": "completed", "score": 1.0, "coverage": 1.0, "demo": true,
              "dataset": { "id": "bench/hle", "revision": "abc", "source": "demo" },
              "protocol": "pinned", "protocol_name": "text-only", "prompt_source": "own",
              "judge": { "model": "openai/j", "version": 2, "prompt_source": "own" } },
            { "benchmark_name": "mmlu_pro", "status": "failed", "score": null, "coverage": 0.5, "demo": false,
              "dataset": { "id": "TIGER-Lab/MMLU-Pro", "revision": "def", "source": "hub" },
              "protocol": "p", "protocol_name": null, "prompt_source": "official", "judge": null,
              "error_causes": [{ "count": 1_500, "message": "HTTP 500\u{1b}[2J" }, { "count": 2 }] },
        ]}));
        let text = describe(&all).join("\n");
        let (demo, real) = text.split_once("mmlu_pro: ").unwrap();
        for part in [
            "DEMO DATA in hle:",
            "hle (DEMO): score 100.0%, coverage 100.0%, completed",
            "DEMO bench/hle@abc",
            "text-only (pinned)",
            "prompt:   OWN wording",
            "openai/j, version 2, prompt in OWN wording",
        ] {
            assert!(demo.contains(part), "{part}: {demo}");
        }
        let errors = "errors:   1,500 × HTTP 500 [2J";
        for part in ["coverage 50.0%, failed", "TIGER-Lab/MMLU-Pro@def", "prompt:   official", errors] {
            assert!(real.contains(part), "{part}: {real}");
        }
        assert!(!demo.contains("errors:") && real.matches("errors:").count() == 1, "{demo}{real}");
        assert!(!real.contains("DEMO") && !real.contains("OWN") && !real.contains("judge"), "{real}");
    }

    #[test]
    fn fields_that_a_manifest_lacks_are_left_out() {
        for manifest in [json!({}), json!({ "benchmarks": 7 }), json!({ "benchmarks": [null, {}, "x"] })] {
            assert_eq!(facts_of(&manifest), []);
        }
        let old = facts_of(&json!({ "benchmarks": [{ "benchmark_name": "a\u{1b}b", "score": 0.5 }] }));
        assert_eq!(
            describe(&old),
            ["  a b: score 50.0%, coverage –"].map(|line| { line.replace('–', &format::percent(None)) })
        );
    }
}
