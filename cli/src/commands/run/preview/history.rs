//! Tokens and latencies of earlier runs of the same benchmarks.

use bench_estimate::{EarlierBenchmark, History, LengthBasis, PerSample, Sums};

use crate::client::Client;
use crate::views::{Benchmark, Run, RunsPage};

/// Number of runs to read.
const RUNS_MAX: u32 = 100;

/// Returns the sums of a benchmark's samples; `None` if no sample has tokens yet.
fn sums(benchmark: &Benchmark) -> Option<Sums> {
    // The tokens that the provider didn't count are mostly those of answers.
    let output = benchmark.output_tokens.saturating_add(benchmark.estimated_tokens);
    let sums = Sums::new(benchmark.completed_samples, benchmark.input_tokens, output)?
        .with_judge(benchmark.judge_input_tokens, benchmark.judge_output_tokens)
        .with_user(benchmark.user_input_tokens, benchmark.user_output_tokens);
    Some(match benchmark.latency() {
        Some(latency) => sums.with_latency_ms(latency.p50, latency.p95),
        None => sums,
    })
}

/// Returns what a sample of a benchmark of a run took so far; `None` if no sample has tokens yet.
pub(super) fn per_sample(benchmark: &Benchmark) -> Option<PerSample> {
    Some(sums(benchmark)?.per_sample(LengthBasis::ThisRun))
}

/// Reads the latest runs. Without them, estimates are less exact, so a failure is only logged.
pub(super) async fn load(client: &Client, benchmarks: &[&str]) -> History {
    match client.get::<RunsPage>(&format!("/api/runs?limit={RUNS_MAX}&status=succeeded")).await {
        Ok(page) => earlier(&page.runs, benchmarks),
        Err(error) => {
            tracing::debug!(%error, "Earlier runs can't be read");
            History::default()
        }
    }
}

fn earlier(runs: &[Run], names: &[&str]) -> History {
    let benchmarks = runs.iter().flat_map(|run| run.benchmarks.iter().map(move |found| (run, found)));
    let wanted = benchmarks
        .filter(|(_, found)| names.contains(&found.benchmark_name.as_str()) && !found.demo)
        .filter_map(|(run, found)| {
            let (model, benchmark) = (run.model(), found.benchmark_name.clone());
            Some(EarlierBenchmark { model, benchmark, sums: sums(found)? })
        });
    wanted.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_wanted_benchmarks_of_earlier_runs_count() {
        let run = |model: &str, output: u64, demo: bool| -> Run {
            serde_json::from_value(json!({
                "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": "succeeded", "model_slug": model,
                "provider": "chutes", "created_at": "2026-01-02T03:04:05Z",
                "benchmarks": [{
                    "benchmark_name": "hle", "status": "succeeded", "planned_samples": 10, "completed_samples": 10,
                    "input_tokens": 1_000, "output_tokens": output, "judge_input_tokens": 500, "demo": demo,
                    "judge_output_tokens": 50, "metrics": { "latency_ms": { "p50": 2_000.0, "p95": 7_000.0 } },
                }],
            }))
            .unwrap()
        };
        let runs =
            [run("a", 2_000, false), run("a", 4_000, false), run("a", 9_000, true), run("b", 0, false)];
        let same = earlier(&runs, &["hle"]).of("chutes/a", "hle").unwrap();
        assert_eq!((same.input, same.output, same.judge), (100.0, 300.0, Some((50.0, 5.0))));
        assert_eq!(same.latency_s, Some(3.0));
        assert_eq!(earlier(&runs, &["mmlu_pro"]).of("chutes/a", "hle"), None);
        assert_eq!(per_sample(&runs[3].benchmarks[0]), None, "no model was asked");
    }
}
